"""The paper's tables: what each row trains, how it tests, and what the paper has there."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from wtal.errors import InputError
from wtal.figures.page import PageBlock, Plot, Side
from wtal.figures.plots import Line, line_plot
from wtal.figures.table import Cell, Column, Measure, Table, measured_at, score_columns
from wtal.models import MODELS
from wtal.paper.experiment import (
    Experiment,
    PlannedTable,
    TableRow,
    experiment_of,
    parts_of,
    published,
    published_cells,
    variants_of,
)
from wtal.paper.plan import Variant
from wtal.paper.setting import Setting, way_of, with_way
from wtal.paper.trained import TrainedRuns
from wtal.propose import Fusion, Nms
from wtal.pseudo.templates import TEMPLATES
from wtal.training.config import Recipe, read_recipe
from wtal.training.fork import beginning, first_targets, training_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: the data sets of the paper, and what a table calls them
DATA_SETS = {"thumos14": "THUMOS14", "activitynet13": "ActivityNet1.3"}
#: the ways of combining candidates that are compared, in the paper's order, and what a table calls them
WAYS = {"nms": "NMS", **{template: template for template in TEMPLATES}, "student_t": "Student-t"}
TRAINING_TEMPERATURES = (0.02, 0.05, 0.1, 0.2, 0.5)
TEST_TEMPERATURES = (0.003, 0.01, 0.03, 0.1, 0.3)
#: about what the released code's learning rate has fallen to when most of its labels act
LOW_RATE = 0.01
WEIGHTS = (0.1, 3.0)


def components(setting: Setting) -> list[PlannedTable]:
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
    note = f"The paper has no control that is trained as long. Recipe {setting.stem} (in bold: as it is)"
    return [PlannedTable("components", "Components", "", rows, note, "components")]


COMPONENTS = experiment_of("The component table", components)


def templates(setting: Setting) -> list[PlannedTable]:
    """NMS and four ways of fusion: what labels of each teach (Δ is off, as in the paper), and what each finds."""
    test, paper, base = setting.recipe.test.proposer, published("templates"), setting.base()
    training, testing = [], []
    for way, name in WAYS.items():
        part = "" if way == "uniform" else None
        taught = setting.raw_targets(way)
        training.append(TableRow(name, taught, test.by(Nms), paper["training"].get(way), part=part))
        testing.append(TableRow(name, base, with_way(test, way), paper["testing"].get(way), part=part))
    recipe = f"Recipe {setting.stem}"
    notes = f"Raw labels, NMS at test. {recipe}", f"The base model, without any labels. {recipe}"
    return [
        PlannedTable("templates-training", "Templates in training", "template", training, notes[0], "templates"),
        PlannedTable("templates-testing", "Templates at test", "template", testing, notes[1], "templates"),
    ]


TEMPLATES_COMPARED = experiment_of("The template table", templates)


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
    own = sorted({stage.temperature or 0.0 for stage in setting.recipe.targets.stages if stage.relabel})
    at_test = f"{test.temperature:g}" if isinstance(test, Fusion) else "none, by suppression"
    captions = {
        "training": f"Temperature of the labels' fusion, NMS at test; {trained.conditions}. The recipe's own: "
        f"{', '.join(f'{t:g}' if t else 'that of targets.proposer' for t in own)}.",
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
            rows.append((row.title, use, *published_cells(row.paper, 1), *averages))
        plots.append(Plot(f"temperature-{use}", _over_temperature(by_use[use], ours, setting.protocols), said))
    table = Table(
        "temperature",
        "Temperature, average mAP in %",
        (Column("T"), Column("used in"), Column("paper"), *(Column(p, "ours") for p in setting.protocols)),
        tuple(rows),
        f"Recipe {setting.stem}, {trained.conditions}. Paper: {published('temperature')['source']}.",
        sections=parts_of([*by_use["training"], *by_use["test"]]),
    )
    return [Side(tuple(plots)), table]


TEMPERATURE = Experiment(
    "The temperature figure",
    lambda setting: variants_of(chain(*temperature_rows(setting).values())),
    temperature,
)


def _over_temperature(
    rows: Sequence[TableRow], ours: Sequence[Sequence[Measure | None]], protocols: Sequence[str]
) -> "Figure":
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


def thresholds(setting: Setting) -> list[PlannedTable]:
    """Fewer and fewer levels at test, which the paper does not have: what fusion gains, it gains from many."""
    test = setting.recipe.test.proposer
    levels = test.cut.thresholds
    counts = [*(n for n in (1, 2, 5, 10) if n < len(levels)), len(levels)]
    cuts = {n: replace(test.cut, thresholds=chosen_levels(levels, n)) for n in counts}
    rows = [TableRow(str(n), setting.full(), replace(test, cut=cut)) for n, cut in cuts.items()]
    note = f"Levels from {min(levels):g} to {max(levels):g}. Recipe {setting.stem}"
    return [PlannedTable("thresholds", "Activation levels at test", "levels", rows, note)]


THRESHOLDS = experiment_of("Fewer activation levels", thresholds)


def ablation(setting: Setting) -> list[PlannedTable]:
    """The recipe, and one change at a time of the way from a map to a target; those that change nothing are left out.

    Most changes go to what the authors' released code does. With `--fold` all is scored on held-out training videos,
    which is how the recipe's own settings may be chosen.
    """
    recipe, targets = setting.recipe, setting.recipe.targets
    first = targets.stages[0].from_epoch
    slow = [(until, rate * LOW_RATE) for until, rate in recipe.learning_rate if until > first]

    def having(kind: str, **settings: Any) -> Variant:
        return setting.variant(kind, replace(recipe, targets=replace(targets, **settings)))

    changed = {
        "rows of sums": having("sum-rows", rows="sum"),
        "classes from the model's scores, not the tags": having("scores", classes="scores"),
        "dropout stays on while labels are made": having("dropout", dropout=True),
        "a label for background, too": having("background", background=True),
        f"learning rate × {LOW_RATE:g} from the labels on": setting.variant(
            "low-rate", replace(recipe, learning_rate=(*beginning(recipe, first).learning_rate, *slow))
        ),
        "any minimal solution": having("vertex", solution="vertex"),
    }
    for factor in WEIGHTS:
        stages = tuple(replace(stage, weight=stage.weight * factor) for stage in targets.stages)
        changed[f"weight × {factor:g}"] = having(f"weight-{factor:g}", stages=stages)
    named = {"the recipe": setting.full(), "no labels": setting.no_targets()}
    if setting.uses_delta:
        named["labels as they are, no Δ"] = setting.raw_targets()
    else:
        named["Δ labels"] = setting.delta_targets()
    named |= {said: variant for said, variant in changed.items() if variant.recipe != recipe}
    rows = [
        TableRow(said, each, recipe.test.proposer, part="" if n in (1, 3) else None)
        for n, (said, each) in enumerate(named.items())
    ]
    title = "One change of the labels at a time"
    return [PlannedTable("ablation", title, "labels", rows, f"Recipe {setting.stem}")]


ABLATION = experiment_of("The labels' settings", ablation)


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


def plugin(setting: Setting) -> list[PlannedTable]:
    """Each model alone and with the method, whether it can be run or not; what they share is trained once."""
    paper, lacks = published("plugin"), missing_models(setting)
    if set(lacks) == set(paper["names"]):
        raise InputError(f"there is nothing to plug into yet: {'; '.join(f'{m}: {why}' for m, why in lacks.items())}")
    rows: list[TableRow] = []
    for model, name in paper["names"].items():
        alone, plugged = (None, None) if model in lacks else _pair(setting, model)
        own, fused = ((one.recipe if one else setting.recipe).test.proposer for one in (alone, plugged))
        rows += [
            TableRow(name, alone, own, paper["base"].get(model), part="" if rows else None),
            TableRow(f"{name} + fusion at test", alone, fused),
            TableRow(f"{name} + the method", plugged, fused, paper["gaufuse"].get(model)),
        ]
    named = ", ".join(_recipes_of(setting, model)[0] for model in paper["names"])
    note = f"Recipes {named}, each with and without -gaufuse, trained alike long"
    return [PlannedTable("plugin", "Plugged into other models", "model", rows, note, "plugin")]


PLUGIN = replace(
    experiment_of("The plug-in table", plugin),
    notes=lambda setting: [f"{model}: not run, {why}" for model, why in missing_models(setting).items()],
)


def _recipes_of(setting: Setting, model: str) -> tuple[str, str]:
    """The names of a model's recipes alone and with the method; of two pairs, the short one."""
    stem = f"{setting.stem.partition('-')[0]}-{model}"
    usual, short = ((f"{stem}{end}", f"{stem}-gaufuse{end}") for end in ("", "-short"))
    return short if all(name in setting.recipes for name in short) else usual


def _pair(setting: Setting, model: str) -> tuple[Variant, Variant]:
    alone, plugged = _recipes_of(setting, model)
    base, recipe = read_recipe(setting.recipes[alone]), read_recipe(setting.recipes[plugged])
    name, first = f"{alone}-beginning", first_targets(recipe)
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
            rows += [(f"{name} ({where})", *published_cells(figures, 0)) for name, where, *figures in methods]
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


COMPARISON = Experiment("The comparison tables", lambda setting: [setting.full()], comparison)
