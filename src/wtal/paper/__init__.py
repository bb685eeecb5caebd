"""The paper's tables and figures as runs over recipes: what has to be trained, and what comes out."""

#: name -> "module:attribute" of the experiment, so that the command line knows the names before anything is loaded
EXPERIMENTS = {
    "components": "wtal.paper.tables:COMPONENTS",
    "templates": "wtal.paper.tables:TEMPLATES_COMPARED",
    "temperature": "wtal.paper.tables:TEMPERATURE",
    "plugin": "wtal.paper.tables:PLUGIN",
    "qualitative": "wtal.paper.qualitative:QUALITATIVE",
    "comparison": "wtal.paper.tables:COMPARISON",
    "thresholds": "wtal.paper.tables:THRESHOLDS",
    "labels": "wtal.paper.targets:TARGETS",
    "ablation": "wtal.paper.tables:ABLATION",
}
