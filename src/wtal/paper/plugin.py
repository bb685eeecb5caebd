"""The plug-in table: other base models, alone and with the method."""

from pathlib import Path

from wtal.errors import InputError
from wtal.figures.page import Section, Text
from wtal.figures.table import Cell, Table
from wtal.models import MODELS
from wtal.paper.finished import Finished
from wtal.paper.plan import Variant
from wtal.paper.published import cells, published
from wtal.paper.setting import Experiment, Setting, columns
from wtal.training.config import Recipe, read_recipe
from wtal.training.fork import beginning, first_labels, training_of


def recipes_of(setting: Setting, model: str) -> tuple[Path, Path]:
    """The recipes of a model alone and with the method, by their names; of two, the short one."""
    stem = f"{setting.stem.partition('-')[0]}-{model}"
    published, short = (
        (setting.recipes / f"{stem}{end}.yaml", setting.recipes / f"{stem}-gaufuse{end}.yaml") for end in ("", "-short")
    )
    return short if all(path.exists() for path in short) else published


def missing(setting: Setting) -> dict[str, str]:
    """The models that cannot be run here, each with what it lacks."""
    lacks = {}
    for model in published("plugin")["names"]:
        gone = [path for path in recipes_of(setting, model) if not path.exists()]
        if model not in MODELS:
            lacks[model] = "wtal.models has no such model yet"
        elif gone:
            lacks[model] = f"no recipe {' and '.join(map(str, gone))}"
    return lacks


def wanted(setting: Setting) -> list[Variant]:
    """Each model that is there, alone and with the method; what they share is trained once."""
    variants = []
    for model in published("plugin")["names"]:
        if model not in missing(setting):
            alone, plugged = recipes_of(setting, model)
            base, recipe = read_recipe(alone), read_recipe(plugged)
            name, first = f"{alone.stem}-beginning", first_labels(recipe)
            variants.append(Variant(alone.stem, base, name, first if _agree(base, recipe, first) else None))
            variants.append(Variant(plugged.stem, recipe, name, first))
    if not variants:
        lacking = "; ".join(f"{model}: {why}" for model, why in missing(setting).items())
        raise InputError(f"there is nothing to plug into yet: {lacking}")
    return variants


def _agree(base: Recipe, recipe: Recipe, epochs: int | None) -> bool:
    """Whether two recipes are the same for so many epochs, and both go on after them."""
    if not epochs or base.epochs <= epochs or base.targets.stages:
        return False
    return training_of(beginning(base, epochs)) == training_of(beginning(recipe, epochs))


def section(setting: Setting, finished: Finished) -> Section:
    """The table, with a row for each model, whether it can be run or not."""
    paper = published("plugin")
    tiou = paper["tiou"]
    rows: list[tuple[Cell, ...]] = []
    for model, name in paper["names"].items():
        alone, plugged = (path.stem for path in recipes_of(setting, model))
        lines = [
            (name, "base", alone, alone),
            (f"{name} + fusion at test", None, alone, plugged),
            (f"{name} + the method", "gaufuse", plugged, plugged),
        ]
        for title, key, trained, tested in lines:
            row: list[Cell] = [title, *cells(paper[key].get(model) if key else None, len(tiou) + 1)]
            for protocol in setting.protocols:
                if finished.has(trained):
                    row += finished.cells(trained, finished.recipe(tested).test.proposer, protocol, tiou)
                else:
                    row += [None] * (len(tiou) + 1)
            rows.append(tuple(row))
    table = Table(
        "plugin",
        "Plugged into other models, mAP in %",
        columns("model", tiou, setting.protocols),
        tuple(rows),
        f"Recipes {', '.join(recipes_of(setting, model)[0].stem for model in paper['names'])}, each with and without "
        f"-gaufuse, trained alike long; {finished.conditions}. Paper: {paper['source']}.",
        sections=dict.fromkeys(range(3, len(rows), 3), ""),
    )
    lacking = [Text(f"{model}: not run, {why}.", "warning") for model, why in missing(setting).items()]
    return Section("plugin", "Plug-in", (*lacking, table))


EXPERIMENT = Experiment(
    "plugin",
    "The plug-in table",
    wanted,
    section,
    lambda setting: [f"{model} is left out: {why}" for model, why in missing(setting).items()],
)
