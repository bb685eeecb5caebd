"""The table of components: the base model, then one part of the method after the other."""

from wtal.experiments import variants
from wtal.experiments.finished import Finished
from wtal.experiments.plan import Variant
from wtal.experiments.published import cells, published
from wtal.experiments.setting import Experiment, Setting, columns
from wtal.report.blocks import Section
from wtal.report.table import Cell, Table


def wanted(setting: Setting) -> list[Variant]:
    """The base model, the same trained as long, labels from NMS and from fusion, Δ labels, and the recipe as it is."""
    stem, recipe = setting.stem, setting.recipe
    return [
        variants.base(stem, recipe),
        variants.no_labels(stem, recipe),
        variants.raw_labels(stem, recipe, "nms"),
        variants.raw_labels(stem, recipe, recipe.labels.proposer.combine),
        variants.delta_labels(stem, recipe),
        variants.full(stem, recipe),
    ]


def section(setting: Setting, finished: Finished) -> Section:
    """The table, ours beside the paper's."""
    paper = published("components")
    tiou = paper["tiou"]
    fused = setting.recipe.test.proposer
    nms = variants.with_nms(fused)
    base, alone, boxes, labels, delta, full = (variant.name for variant in wanted(setting))
    lines = [
        ("base model", "base", base, nms),
        ("base model, trained as long", None, alone, nms),
        ("+ LinPro labels from NMS", "labels-nms", boxes, nms),
        ("+ fusion instead of NMS for labels", "labels-gaussian", labels, nms),
        ("+ Δ labels", "full", delta, nms),
        ("+ fusion at test", "full-fused", delta, fused),
    ]
    if delta != full:
        lines.append(("the recipe: without Δ labels, fusion at test", None, full, fused))
    rows: list[tuple[Cell, ...]] = []
    for name, key, variant, proposer in lines:
        row: list[Cell] = [name, *cells(paper["rows"].get(key), len(tiou) + 1)]
        for protocol in setting.protocols:
            row += finished.cells(variant, proposer, protocol, tiou)
        rows.append(tuple(row))
    table = Table(
        "components",
        "Components, mAP in %",
        columns("", tiou, setting.protocols),
        tuple(rows),
        f"Recipe {setting.stem}, seeds {', '.join(map(str, finished.seeds))}, {finished.ambiguity}. Paper: "
        f"{paper['source']}. The second row is a control that the paper does not have.",
        strong=frozenset({len(rows) - 1}),
        sections={2: "", 5: ""},
    )
    return Section("components", "Components", (table,))


EXPERIMENT = Experiment("components", "The component table", wanted, section)
