"""The paper's tables as rows: a variant's runs with settings of the test, beside what the paper has there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from wtal.errors import InputError
from wtal.figures.page import PageBlock, Plot, Side, Text
from wtal.figures.plots import Line, line_plot
from wtal.figures.table import Cell, Column, Measure, Table, measured_at, score_columns
from wtal.models import MODELS
from wtal.paper.plan import Variant
from wtal.paper.setting import Setting, way_of, with_way
from wtal.paper.trained import TrainedRuns
from wtal.propose import Fusion, Nms, Proposer
from wtal.pseudo.templates import TEMPLATES
from wtal.training.config import Recipe, read_recipe
from wtal.training.fork import beginning, first_labels, training_of

#: the data sets of the paper, and what a table calls them
DATA_SETS = {"thumos14": "THUMOS14", "activitynet13": "ActivityNet1.3"}
#: the ways of combining candidates that are compared, in the paper's order, and what a table calls them
WAYS = {"nms": "NMS", **{template: template for template in TEMPLATES}, "student_t": "Student-t"}
TRAINING_TEMPERATURES = (0.02, 0.05, 0.1, 0.2, 0.5)
TEST_TEMPERATURES = (0.003, 0.01, 0.03, 0.1, 0.3)
#: about what the released code's learning rate has fallen to when most of its labels act
LOW_RATE = 0.01
WEIGHTS = (0.1, 3.0)

Figures = Sequence[float | None]


@dataclass(frozen=True)
class TableRow:
    """One row; without a variant there is nothing to train, and ours stays empty.

    `paper` are the published figures, `part` is the title of the part of the table that begins here, if one does.
    """

    title: str
    variant: Variant | None
    proposer: Proposer
    paper: Figures | None = None
    part: str | None = None
    strong: bool = False


def variants_of(rows: Iterable[TableRow]) -> list[Variant]:
    """What has to be trained for these rows."""
    return list({row.variant.name: row.variant for row in rows if row.variant is not None}.values())


@cache
def published(table: str) -> dict[str, Any]:
    """One of the paper's tables.

    >>> published("components")["rows"]["base"]
    [55.8, 38.2, 12.5, 45.1]
    """
    text = files("wtal.paper").joinpath("published.yaml").read_text(encoding="utf-8")
    content: dict[str, Any] = yaml.safe_load(text)[table]
    return content


def component_rows(setting: Setting) -> list[TableRow]:
    """The base model, then one part of the method after the other; first with NMS, then with fusion at test."""
    paper, fused = published("components")["rows"], setting.recipe.test.proposer
    lines = [
        ("base model", "base", setting.base()),
        ("base model, trained as long", None, setting.no_targets()),
        ("LinPro labels from NMS", "labels-nms", setting.raw_targets("nms")),
        ("LinPro labels from fusion", "labels-gaussian", setting.raw_targets()),
        ("Δ labels from fusion", "full", setting.delta_targets()),
    ]
    if all(variant.recipe != setting.recipe for _, _, variant in lines):
        lines.append(("the recipe as it is", None, setting.full()))
    rows = [TableRow(title, variant, fused.by(Nms), paper.get(key)) for title, key, variant in lines]
    for title, key, variant in lines:
        figures = paper["full-fused"] if key == "full" else None
        rows.append(TableRow(title, variant, fused, figures, strong=variant.recipe == setting.recipe))
    rows[0] = replace(rows[0], part="NMS at test")
    rows[len(lines)] = replace(rows[len(lines)], part=f"{way_of(fused)} fusion at test")
    return rows


def components(setting: Setting, trained: TrainedRuns) -> list[PageBlock]:
    """The table of components."""
    note = f"The paper has no control that is trained as long. Recipe {setting.stem} (in bold: as it is)"
    return [_beside_paper("components", "Components", "", component_rows(setting), setting, trained, note)]


def template_rows(setting: Setting) -> dict[str, list[TableRow]]:
    """NMS and four ways of fusion: to make labels in training (Δ is off, as in the paper), or at test."""
    test, paper, base = setting.recipe.test.proposer, published("templates"), setting.base()
    rows: dict[str, list[TableRow]] = {"training": [], "testing": []}
    for way, name in WAYS.items():
        part = "" if way == "uniform" else None
        rows["training"].append(
            TableRow(name, setting.raw_targets(way), test.by(Nms), paper["training"].get(way), part=part)
        )
        rows["testing"].append(TableRow(name, base, with_way(test, way), paper["testing"].get(way), part=part))
    return rows


def templates(setting: Setting, trained: TrainedRuns) -> list[PageBlock]:
    """Two tables: what labels of each template teach (NMS at test), and what each finds with the base model."""
    words = {
        "training": ("Templates in training", "Raw labels, NMS at test."),
        "testing": ("Templates at test", "The base model, without any labels."),
    }
    tables: list[PageBlock] = []
    for when, rows in template_rows(setting).items():
        title, how = words[when]
        note = f"{how} Recipe {setting.stem}"
        table = _beside_paper("templates", title, "template", rows, setting, trained, note)
        tables.append(replace(table, name=f"templates-{when}"))
    return tables


def temperature_rows(setting: Setting) -> dict[str, list[TableRow]]:
    """How sharp the fusion's weights are: in training with NMS at test, and at test with the recipe's own training."""
    test, full, paper = setting.recipe.test.proposer, setting.full(), published("temperature")["testing"]
    return {
        "test": [
            TableRow(f"{t:g}", full, test.by(Fusion, temperature=t), [paper.get(t)], part=None if n else "")
            for n, t in enumerate(TEST_TEMPERATURES)
        ],
        "training": [TableRow(f"{t:g}", setting.at_temperature(t), test.by(Nms)) for t in TRAINING_TEMPERATURES],
    }


def temperature(setting: Setting, trained: TrainedRuns) -> list[PageBlock]:
    """Two figures and their table."""
    by_use, test = temperature_rows(setting), setting.recipe.test.proposer.combine
    own = sorted({stage.temperature for stage in setting.recipe.targets.stages if stage.relabel})
    at_test = f"{test.temperature:g}" if isinstance(test, Fusion) else "none, by suppression"
    captions = {
        "training": f"Temperature of the labels' fusion, NMS at test; {trained.conditions}. The recipe's own: "
        f"{', '.join(f'{t:g}' for t in own)}.",
        "test": f"Temperature of the fusion at test; {trained.conditions}. The recipe's own: {at_test}.",
    }
    rows: list[tuple[Cell, ...]] = []
    plots = []
    for use, said in captions.items():
        ours = [
            [trained.average(row.variant, row.proposer, protocol) for protocol in setting.protocols]
            for row in by_use[use]
        ]
        for row, averages in zip(by_use[use], ours, strict=True):
            rows.append((row.title, use, *_cells(row.paper, 1), *averages))
        plots.append(Plot(f"temperature-{use}", _over_temperature(by_use[use], ours, setting.protocols), said))
    table = Table(
        "temperature",
        "Temperature, average mAP in %",
        (Column("T"), Column("used in"), Column("paper"), *(Column(p, "ours") for p in setting.protocols)),
        tuple(rows),
        f"Recipe {setting.stem}, {trained.conditions}. Paper: {published('temperature')['source']}.",
        sections=_parts([*by_use["training"], *by_use["test"]]),
    )
    return [Side(tuple(plots)), table]


def _over_temperature(
    rows: Sequence[TableRow], ours: Sequence[Sequence[Measure | None]], protocols: Sequence[str]
) -> Any:
    temperatures = [float(row.title) for row in rows]
    lines = []
    for number, protocol in enumerate(protocols):
        known = {t: value for t, averages in zip(temperatures, ours, strict=True) if (value := averages[number])}
        several = any(value.spread is not None for value in known.values())
        spread = [value.spread or 0.0 for value in known.values()] if several else None
        y = [value.mean for value in known.values()]
        lines.append(Line(protocol, list(known), y, number, spread, marker="o"))
    ticks = lines[0].x
    paper = {t: row.paper[0] for t, row in zip(temperatures, rows, strict=True) if row.paper and row.paper[0]}
    if paper:
        lines.append(Line("paper", list(paper), list(paper.values()), len(lines), marker="D"))
    return line_plot(lines, x="temperature T", y="average mAP, %", ticks=ticks, logarithmic=True)


def chosen_levels(levels: tuple[float, ...], n: int) -> tuple[float, ...]:
    """`n` of the levels, spread evenly with both ends; the middle one alone.

    >>> chosen_levels((0.1, 0.2, 0.3, 0.4, 0.5), 3), chosen_levels((0.1, 0.2, 0.3), 1)
    ((0.1, 0.3, 0.5), (0.2,))
    """
    if n == 1:
        return (levels[len(levels) // 2],)
    return tuple(levels[round(k * (len(levels) - 1) / (n - 1))] for k in range(n))


def threshold_rows(setting: Setting) -> list[TableRow]:
    """Fewer and fewer levels at test, which the paper does not have: what fusion gains, it gains from many."""
    test = setting.recipe.test.proposer
    levels = test.cut.thresholds
    counts = [*(n for n in (1, 2, 5, 10) if n < len(levels)), len(levels)]
    cuts = {n: replace(test.cut, thresholds=chosen_levels(levels, n)) for n in counts}
    return [TableRow(str(n), setting.full(), replace(test, cut=cut)) for n, cut in cuts.items()]


def thresholds(setting: Setting, trained: TrainedRuns) -> list[PageBlock]:
    """NMS and fusion with fewer and fewer levels."""
    table = _nms_and_own("thresholds", "Activation levels at test", "levels", threshold_rows(setting), setting, trained)
    levels = setting.recipe.test.proposer.cut.thresholds
    return [replace(table, caption=f"{table.caption} Levels from {min(levels):g} to {max(levels):g}.")]


def ablation_rows(setting: Setting) -> list[TableRow]:
    """The recipe, and one change at a time of the way from a map to a target; those that change nothing are left out.

    Most changes go to what the authors' released code does. With `--fold` all is scored on held-out training videos,
    which is how the recipe's own settings may be chosen.
    """
    recipe, targets = setting.recipe, setting.recipe.targets
    named = {
        "the recipe": setting.full(),
        "no labels": setting.no_targets(),
        **(
            {"labels as they are, no Δ": setting.raw_targets()}
            if setting.uses_delta
            else {"Δ labels": setting.delta_targets()}
        ),
    }
    of_targets: dict[str, tuple[str, dict[str, Any]]] = {
        "rows of sums": ("sum-rows", {"rows": "sum"}),
        "classes from the model's scores, not the tags": ("scores", {"classes": "scores"}),
        "dropout stays on while labels are made": ("dropout", {"dropout": True}),
        "a label for background, too": ("background", {"background": True}),
        "any minimal solution": ("vertex", {"solution": "vertex"}),
    }
    for factor in WEIGHTS:
        stages = tuple(replace(stage, weight=stage.weight * factor) for stage in targets.stages)
        of_targets[f"weight × {factor:g}"] = (f"weight-{factor:g}", {"stages": stages})
    changed = {
        said: setting.variant(kind, replace(recipe, targets=replace(targets, **settings)))
        for said, (kind, settings) in of_targets.items()
    }
    first = targets.stages[0].from_epoch
    slow = [(until, rate * LOW_RATE) for until, rate in recipe.learning_rate if until > first]
    rates = (*beginning(recipe, first).learning_rate, *slow)
    changed[f"learning rate × {LOW_RATE:g} from the labels on"] = setting.variant(
        "low-rate", replace(recipe, learning_rate=rates)
    )
    named |= {said: variant for said, variant in changed.items() if variant.recipe != recipe}
    test = recipe.test.proposer
    return [
        TableRow(said, each, test, part="" if n in (1, 3) else None) for n, (said, each) in enumerate(named.items())
    ]


def ablation(setting: Setting, trained: TrainedRuns) -> list[PageBlock]:
    """One table: average mAP by each protocol, with NMS and with the recipe's own fusion at test."""
    rows = ablation_rows(setting)
    return [_nms_and_own("ablation", "One change of the labels at a time", "labels", rows, setting, trained)]


def missing_models(setting: Setting) -> dict[str, str]:
    """The models of the plug-in table that cannot be run here, each with what it lacks."""
    lacks = {}
    for model in published("plugin")["names"]:
        gone = [name for name in _recipes_of(setting, model) if name not in setting.recipes]
        if model not in MODELS:
            lacks[model] = "wtal.models has no such model yet"
        elif gone:
            lacks[model] = f"no recipe {' and '.join(gone)}"
    return lacks


def plugin_rows(setting: Setting) -> list[TableRow]:
    """Each model of the plug-in table, alone and with the method; what they share is trained once."""
    paper, lacks = published("plugin"), missing_models(setting)
    rows: list[TableRow] = []
    if set(lacks) == set(paper["names"]):
        raise InputError(f"there is nothing to plug into yet: {'; '.join(f'{m}: {why}' for m, why in lacks.items())}")
    for model, name in paper["names"].items():
        alone, plugged = (None, None) if model in lacks else _pair(setting, model)
        own, fused = ((one.recipe if one else setting.recipe).test.proposer for one in (alone, plugged))
        rows += [
            TableRow(name, alone, own, paper["base"].get(model), part="" if rows else None),
            TableRow(f"{name} + fusion at test", alone, fused),
            TableRow(f"{name} + the method", plugged, fused, paper["gaufuse"].get(model)),
        ]
    return rows


def plugin(setting: Setting, trained: TrainedRuns) -> list[PageBlock]:
    """The table, with rows for each model, whether it can be run or not."""
    named = ", ".join(_recipes_of(setting, model)[0] for model in published("plugin")["names"])
    note = f"Recipes {named}, each with and without -gaufuse, trained alike long"
    rows = plugin_rows(setting)
    table = _beside_paper("plugin", "Plugged into other models", "model", rows, setting, trained, note)
    lacking = [Text(f"{model}: not run, {why}.", "warning") for model, why in missing_models(setting).items()]
    return [*lacking, table]


def _recipes_of(setting: Setting, model: str) -> tuple[str, str]:
    """The names of a model's recipes alone and with the method; of two pairs, the short one."""
    stem = f"{setting.stem.partition('-')[0]}-{model}"
    usual, short = ((f"{stem}{end}", f"{stem}-gaufuse{end}") for end in ("", "-short"))
    return short if all(name in setting.recipes for name in short) else usual


def _pair(setting: Setting, model: str) -> tuple[Variant, Variant]:
    alone, plugged = _recipes_of(setting, model)
    base, recipe = read_recipe(setting.recipes[alone]), read_recipe(setting.recipes[plugged])
    name, first = f"{alone}-beginning", first_labels(recipe)
    shared = first if _agree(base, recipe, first) else None
    return Variant(alone, base, name, shared), Variant(plugged, recipe, name, first)


def _agree(base: Recipe, recipe: Recipe, epochs: int | None) -> bool:
    """Whether two recipes are the same for so many epochs, and both go on after them."""
    if not epochs or base.epochs <= epochs or base.targets.stages:
        return False
    return training_of(beginning(base, epochs)) == training_of(beginning(recipe, epochs))


def comparison(setting: Setting, trained: TrainedRuns) -> list[PageBlock]:
    """Published figures and ours among them: one table per data set of the paper that the recipe is scored on."""
    full, test, n = setting.full(), setting.recipe.test.proposer, len(trained.seeds)
    tables: list[PageBlock] = []
    for data_set, called in DATA_SETS.items():
        paper = published(data_set)
        if not set(paper["protocols"]) & set(setting.protocols):
            continue
        rows: list[tuple[Cell, ...]] = []
        parts = {}
        for title, methods in paper["sections"].items():
            parts[len(rows)] = title
            rows += [(f"{name} ({where})", *_cells(figures, 0)) for name, where, *figures in methods]
        n_published = len(rows)
        parts[n_published] = f"ours, trained with tags: {setting.stem}, {n} seed{'s' if n > 1 else ''}"
        for protocol in setting.protocols:
            scores = trained.scores(full, test, protocol)
            ours = measured_at(paper["tiou"], [one.at for one in scores])
            averages = measured_at(paper["averages"], [one.average for one in scores])
            rows.append((f"scored by {protocol}", *ours, *averages))
        tables.append(
            Table(
                f"comparison-{data_set}",
                f"{called}, test videos",
                (Column("method"), *score_columns(paper["tiou"], paper["averages"])),
                tuple(rows),
                f"Published: {paper['source']}. Ours: last epoch, {trained.ambiguity}, on the videos of this data set.",
                strong=frozenset(range(n_published, len(rows))),
                sections=parts,
            )
        )
    return tables


def _beside_paper(
    key: str, title: str, first: str, rows: Sequence[TableRow], setting: Setting, trained: TrainedRuns, note: str
) -> Table:
    """A table of mAP at the paper's thresholds and its average: published under `key`, then ours by each protocol."""
    paper = published(key)
    tiou = paper["tiou"]
    content: list[tuple[Cell, ...]] = []
    for row in rows:
        cells: list[Cell] = [row.title, *_cells(row.paper, len(tiou) + 1)]
        for protocol in setting.protocols:
            cells += measured_at(tiou, [one.at for one in trained.scores(row.variant, row.proposer, protocol)])
            cells.append(trained.average(row.variant, row.proposer, protocol))
        content.append(tuple(cells))
    heads = [
        Column(head, group)
        for group in ("paper", *(f"ours, {protocol}" for protocol in setting.protocols))
        for head in (*(f"{t:g}" for t in tiou), "AVG")
    ]
    return Table(
        key,
        f"{title}, mAP in %",
        (Column(first), *heads),
        tuple(content),
        f"{note}, {trained.conditions}. Paper: {paper['source']}.",
        strong=frozenset(n for n, row in enumerate(rows) if row.strong),
        sections=_parts(rows),
    )


def _nms_and_own(
    name: str, title: str, first: str, rows: Sequence[TableRow], setting: Setting, trained: TrainedRuns
) -> Table:
    """A table of average mAP by each protocol, with NMS and with the recipe's own fusion at test."""
    content: list[tuple[Cell, ...]] = []
    for row in rows:
        ways = (row.proposer.by(Nms), row.proposer)
        averages = [trained.average(row.variant, way, protocol) for protocol in setting.protocols for way in ways]
        content.append((row.title, *averages))
    names = ("NMS", way_of(setting.recipe.test.proposer))
    heads = (Column(first), *(Column(way, protocol) for protocol in setting.protocols for way in names))
    note = f"Recipe {setting.stem}, {trained.conditions}."
    return Table(name, f"{title}, average mAP in %", heads, tuple(content), note, sections=_parts(rows))


def _parts(rows: Iterable[TableRow]) -> dict[int, str]:
    return {n: row.part for n, row in enumerate(rows) if row.part is not None}


def _cells(figures: Figures | None, n: int) -> tuple[Measure | None, ...]:
    """Published figures as cells of a table; dashes where there are none."""
    return tuple(None if value is None else Measure((value,)) for value in figures or [None] * n)
