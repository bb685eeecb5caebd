"""The paper's tables and figures as runs over recipes: what has to be trained, and what comes out."""
