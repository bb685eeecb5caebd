"""The table of components: the base model, then one part of the method after the other."""

from dataclasses import replace

from wtal.figures.page import Section
from wtal.paper import variants
from wtal.paper.experiment import Entry, Experiment, Setting, beside_paper
from wtal.paper.plan import Variant
from wtal.paper.published import published
from wtal.paper.trained import TrainedRuns
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


def section(setting: Setting, trained: TrainedRuns) -> Section:
    """The table, ours beside the paper's."""
    fused = setting.recipe.test.proposer
    base, alone, boxes, labels, delta, full = wanted(setting)
    lines = [
        ("base model", "base", base),
        ("base model, trained as long", None, alone),
        ("LinPro labels from NMS", "labels-nms", boxes),
        ("LinPro labels from fusion", "labels-gaussian", labels),
        ("Δ labels from fusion", "full", delta),
    ]
    if full.recipe not in (labels.recipe, delta.recipe):
        lines.append(("the recipe as it is", None, full))
    paper = published("components")["rows"]
    with_nms = fused.by(Nms)
    entries = [Entry(title, paper.get(key), variant.name, with_nms) for title, key, variant in lines]
    entries += [
        Entry(title, paper["full-fused"] if key == "full" else None, variant.name, fused)
        for title, key, variant in lines
    ]
    own = max(number for number, (_, _, variant) in enumerate(lines) if variant.recipe == setting.recipe)
    note = f"The paper has no control that is trained as long. Recipe {setting.stem} (in bold: as it is)"
    table = replace(
        beside_paper("components", entries, setting, trained, title="Components", note=note),
        strong=frozenset({len(lines) + own}),
        sections={0: "NMS at test", len(lines): f"{variants.way_of(fused)} fusion at test"},
    )
    return Section("components", "Components", (table,))


EXPERIMENT = Experiment("components", "The component table", wanted, section)
