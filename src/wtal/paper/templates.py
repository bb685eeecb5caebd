"""The table of templates: NMS and four ways of fusion, used to make labels in training, or at test."""

from wtal.figures.page import Section
from wtal.figures.table import Cell, Table
from wtal.paper import variants
from wtal.paper.finished import Finished
from wtal.paper.plan import Variant
from wtal.paper.published import cells, published
from wtal.paper.setting import Experiment, Setting, columns
from wtal.propose import Nms

NAMES = {"nms": "NMS", "student_t": "Student-t"}


def wanted(setting: Setting) -> list[Variant]:
    """The base model for the test, and labels of each template for training; Δ is off, as in the paper."""
    labelled = [variants.raw_labels(setting.stem, setting.recipe, each) for each in variants.WAYS]
    return [variants.base(setting.stem, setting.recipe), *labelled]


def section(setting: Setting, finished: Finished) -> Section:
    """Two tables: what labels of each template teach (NMS at test), and what each finds with the base model."""
    paper = published("templates")
    tiou = paper["tiou"]
    test = setting.recipe.test.proposer
    base, *labelled = (variant.name for variant in wanted(setting))
    tables = []
    for when, title in (("training", "Templates in training"), ("testing", "Templates at test")):
        rows: list[tuple[Cell, ...]] = []
        for template, labels in zip(variants.WAYS, labelled, strict=True):
            row: list[Cell] = [NAMES.get(template, template), *cells(paper[when].get(template), len(tiou) + 1)]
            for protocol in setting.protocols:
                if when == "training":
                    row += finished.cells(labels, test.by(Nms), protocol, tiou)
                else:
                    row += finished.cells(base, variants.with_way(test, template), protocol, tiou)
            rows.append(tuple(row))
        how = "Raw labels, NMS at test." if when == "training" else "The base model, without any labels."
        said = f"{how} Recipe {setting.stem}, {finished.conditions}. Paper: {paper['source']}."
        heads = columns("template", tiou, setting.protocols)
        tables.append(Table(f"templates-{when}", f"{title}, mAP in %", heads, tuple(rows), said, sections={1: ""}))
    return Section("templates", "Templates", tuple(tables))


EXPERIMENT = Experiment("templates", "The template table", wanted, section)
