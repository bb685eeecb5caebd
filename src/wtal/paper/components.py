"""The table of components: the base model, then one part of the method after the other."""

from wtal.figures.page import Section
from wtal.figures.table import Cell, Table
from wtal.paper import variants
from wtal.paper.finished import Finished
from wtal.paper.plan import Variant
from wtal.paper.published import cells, published
from wtal.paper.setting import Experiment, Setting, columns
from wtal.propose import Nms


def wanted(setting: Setting) -> list[Variant]:
    """The base model, the same trained as long, labels from NMS and from fusion, Δ labels, and the recipe as it is."""
    stem, recipe = setting.stem, setting.recipe
    return [
        variants.base(stem, recipe),
        variants.no_labels(stem, recipe),
        variants.raw_labels(stem, recipe, "nms"),
        variants.raw_labels(stem, recipe, variants.way_of(recipe.targets.proposer)),
        variants.delta_targets(stem, recipe),
        variants.full(stem, recipe),
    ]


def section(setting: Setting, finished: Finished) -> Section:
    """The table, ours beside the paper's."""
    paper = published("components")
    tiou = paper["tiou"]
    fused = setting.recipe.test.proposer
    base, alone, boxes, labels, delta, full = wanted(setting)
    trained = [
        ("base model", "base", base),
        ("base model, trained as long", None, alone),
        ("LinPro labels from NMS", "labels-nms", boxes),
        ("LinPro labels from fusion", "labels-gaussian", labels),
        ("Δ labels from fusion", "full", delta),
    ]
    if full.recipe not in (labels.recipe, delta.recipe):
        trained.append(("the recipe as it is", None, full))
    lines = [(name, key, variant, fused.by(Nms)) for name, key, variant in trained]
    lines += [(name, "full-fused" if key == "full" else None, variant, fused) for name, key, variant in trained]
    rows: list[tuple[Cell, ...]] = []
    for name, key, variant, proposer in lines:
        row: list[Cell] = [name, *cells(paper["rows"].get(key), len(tiou) + 1)]
        for protocol in setting.protocols:
            row += finished.cells(variant.name, proposer, protocol, tiou)
        rows.append(tuple(row))
    last = max(number for number, (_, _, variant, _) in enumerate(lines) if variant.recipe == setting.recipe)
    table = Table(
        "components",
        "Components, mAP in %",
        columns("", tiou, setting.protocols),
        tuple(rows),
        f"Recipe {setting.stem} (in bold: as it is), {finished.conditions}. Paper: {paper['source']}; it has no "
        "control that is trained as long.",
        strong=frozenset({last}),
        sections={0: "NMS at test", len(trained): f"{variants.way_of(fused)} fusion at test"},
    )
    return Section("components", "Components", (table,))


EXPERIMENT = Experiment("components", "The component table", wanted, section)
