"""The plug-in table: other base models, alone and with the method."""

from dataclasses import replace

from wtal.errors import InputError
from wtal.figures.page import Section, Text
from wtal.models import MODELS
from wtal.paper.experiment import Entry, Experiment, Setting, beside_paper
from wtal.paper.plan import Variant
from wtal.paper.published import published
from wtal.paper.trained import TrainedRuns
from wtal.training.config import Recipe, read_recipe
from wtal.training.fork import beginning, first_labels, training_of


def recipes_of(setting: Setting, model: str) -> tuple[str, str]:
    """The names of a model's recipes alone and with the method; of two pairs, the short one."""
    stem = f"{setting.stem.partition('-')[0]}-{model}"
    published, short = ((f"{stem}{end}", f"{stem}-gaufuse{end}") for end in ("", "-short"))
    return short if all(name in setting.recipes for name in short) else published


def missing(setting: Setting) -> dict[str, str]:
    """The models that cannot be run here, each with what it lacks."""
    lacks = {}
    for model in published("plugin")["names"]:
        gone = [name for name in recipes_of(setting, model) if name not in setting.recipes]
        if model not in MODELS:
            lacks[model] = "wtal.models has no such model yet"
        elif gone:
            lacks[model] = f"no recipe {' and '.join(gone)}"
    return lacks


def wanted(setting: Setting) -> list[Variant]:
    """Each model that is there, alone and with the method; what they share is trained once."""
    variants = []
    for model in published("plugin")["names"]:
        if model not in missing(setting):
            alone, plugged = recipes_of(setting, model)
            base, recipe = read_recipe(setting.recipes[alone]), read_recipe(setting.recipes[plugged])
            name, first = f"{alone}-beginning", first_labels(recipe)
            variants.append(Variant(alone, base, name, first if _agree(base, recipe, first) else None))
            variants.append(Variant(plugged, recipe, name, first))
    if not variants:
        lacking = "; ".join(f"{model}: {why}" for model, why in missing(setting).items())
        raise InputError(f"there is nothing to plug into yet: {lacking}")
    return variants


def _agree(base: Recipe, recipe: Recipe, epochs: int | None) -> bool:
    """Whether two recipes are the same for so many epochs, and both go on after them."""
    if not epochs or base.epochs <= epochs or base.targets.stages:
        return False
    return training_of(beginning(base, epochs)) == training_of(beginning(recipe, epochs))


def section(setting: Setting, trained: TrainedRuns) -> Section:
    """The table, with a row for each model, whether it can be run or not."""
    paper, entries = published("plugin"), []
    for model, name in paper["names"].items():
        alone, plugged = recipes_of(setting, model)
        tests = [
            (trained.recipe(recipe) if trained.has(recipe) else setting.recipe).test.proposer
            for recipe in (alone, plugged)
        ]
        entries += [
            Entry(name, paper["base"].get(model), alone, tests[0]),
            Entry(f"{name} + fusion at test", None, alone, tests[1]),
            Entry(f"{name} + the method", paper["gaufuse"].get(model), plugged, tests[1]),
        ]
    named = ", ".join(recipes_of(setting, model)[0] for model in paper["names"])
    note = f"Recipes {named}, each with and without -gaufuse, trained alike long"
    table = beside_paper(
        "plugin", entries, setting, trained, title="Plugged into other models", first="model", note=note
    )
    table = replace(table, sections=dict.fromkeys(range(3, len(entries), 3), ""))
    lacking = [Text(f"{model}: not run, {why}.", "warning") for model, why in missing(setting).items()]
    return Section("plugin", "Plug-in", (*lacking, table))


EXPERIMENT = Experiment(
    "plugin",
    "The plug-in table",
    wanted,
    section,
    lambda setting: [f"{model} is left out: {why}" for model, why in missing(setting).items()],
)
