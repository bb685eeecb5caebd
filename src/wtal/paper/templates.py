"""The table of templates: NMS and four ways of fusion, used to make labels in training, or at test."""

from dataclasses import replace

from wtal.figures.page import Section
from wtal.paper import variants
from wtal.paper.experiment import Entry, Experiment, Setting, beside_paper
from wtal.paper.plan import Variant
from wtal.paper.published import published
from wtal.paper.trained import TrainedRuns
from wtal.propose import Nms

NAMES = {"nms": "NMS", "student_t": "Student-t"}


def wanted(setting: Setting) -> list[Variant]:
    """The base model for the test, and labels of each template for training; Δ is off, as in the paper."""
    labelled = [variants.raw_labels(setting.stem, setting.recipe, each) for each in variants.WAYS]
    return [variants.base(setting.stem, setting.recipe), *labelled]


def section(setting: Setting, trained: TrainedRuns) -> Section:
    """Two tables: what labels of each template teach (NMS at test), and what each finds with the base model."""
    test = setting.recipe.test.proposer
    base, *labelled = (variant.name for variant in wanted(setting))
    ways = {
        "training": ("Templates in training", "Raw labels, NMS at test."),
        "testing": ("Templates at test", "The base model, without any labels."),
    }
    tables = []
    for when, (title, how) in ways.items():
        entries = [
            Entry(
                NAMES.get(template, template),
                published("templates")[when].get(template),
                labels if when == "training" else base,
                test.by(Nms) if when == "training" else variants.with_way(test, template),
            )
            for template, labels in zip(variants.WAYS, labelled, strict=True)
        ]
        note = f"{how} Recipe {setting.stem}"
        table = beside_paper("templates", entries, setting, trained, title=title, first="template", note=note)
        tables.append(replace(table, name=f"templates-{when}", sections={1: ""}))
    return Section("templates", "Templates", tuple(tables))


EXPERIMENT = Experiment("templates", "The template table", wanted, section)
