"""A recipe: everything that decides what a run learns, read from one flat YAML file and written back complete.

Recipes do not inherit from each other, and nothing is set elsewhere: what is not in the file has the default below.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml

from wtal.errors import InputError, did_you_mean
from wtal.evaluate.protocols import protocol_named
from wtal.files import written_whole
from wtal.propose import Proposer
from wtal.pseudo.delta import First, Schedule, Stage
from wtal.pseudo.linpro import Rows, Solution
from wtal.typed import parse, plain


@dataclass(frozen=True)
class Optimizer:
    """Adam, or AdamW, whose weight decay is apart from the gradient."""

    name: Literal["adam", "adamw"] = "adam"
    betas: tuple[float, float] = (0.9, 0.99)
    eps: float = 1e-8
    weight_decay: float = 5e-4


@dataclass(frozen=True)
class Sampling:
    """Which snippets of a video a training step sees."""

    segments: int | None = None
    """So many, drawn at random one from each of as many equal parts of the video; null: all of them."""
    repeat: bool = True
    """Whether a video with fewer snippets repeats some to get there, or is taken whole."""

    def __post_init__(self) -> None:
        if self.segments is not None and self.segments < 1:
            raise InputError(f"sampling.segments must be 1 or more, or null, got {self.segments}")


@dataclass(frozen=True)
class TargetSettings:
    """How pseudo labels are made, and when; without stages there are none."""

    stages: tuple[Stage, ...] = ()
    """What supervises when (see wtal.pseudo.delta); a stage's temperature takes the place of the proposer's."""
    first: First = "raw"
    """What a change (source delta) means for the first generation: the labels themselves, or nothing."""
    classes: Literal["tags", "scores"] = "tags"
    """Look for the video's tags, or for the classes whose video score reaches the proposer's class_threshold."""
    background: bool = False
    """Whether the model's background column takes part like a class."""
    dropout: bool = False
    """Whether dropout stays on while the labels are made."""
    proposer: Proposer = field(default_factory=lambda: Proposer(temperature=0.1))
    rows: Rows = "sum"
    """LinPro: whether a contrast is of sums (the paper's equation) or of means (its text)."""
    upper: float = np.inf
    """LinPro: the largest label."""
    solution: Solution = "least_norm"
    """LinPro: which of all minimal solutions."""
    flank_scale: float = 0.25
    """LinPro: flanks of scale * length ** power snippets."""
    flank_power: float = 1.0


@dataclass(frozen=True)
class LocalizeSettings:
    """How the trained model's maps become instances in seconds, and by which protocols those are scored."""

    proposer: Proposer = field(default_factory=Proposer)
    offset_snippets: float | None = None
    """Where the first snippet starts on the video's clock, in snippets; null: as the store says."""
    segments: int | None = None
    """How many snippets of a longer video the model is shown, evenly spread; null: all."""
    protocols: tuple[str, ...] = ("thumos14", "thumos14-wtalc")


@dataclass(frozen=True)
class Recipe:
    """One training run. Epochs count from 0; `until` of a learning rate is the number of epochs done when it ends."""

    model: str
    """A name of wtal.models, or one's own as module:attribute."""
    epochs: int
    learning_rate: tuple[tuple[int, float], ...]
    """Stages [until_epoch, rate]: the rate holds for the epochs before until_epoch."""
    model_options: Mapping[str, Any] = field(default_factory=dict)
    stream_weights: tuple[float, ...] = (1.0,)
    """With more than one, as many models, each for its equal part of the features (RGB, flow); what they find is
    pooled with scores times these weights."""
    train_split: str = "train"
    test_split: str = "test"
    batch_videos: int = 10
    """Videos per step."""
    reduction: Literal["sum", "mean"] = "sum"
    """Whether the losses of a step's videos are summed or averaged; beside weight decay it matters."""
    sampling: Sampling = field(default_factory=Sampling)
    optimizer: Optimizer = field(default_factory=Optimizer)
    seed: int = 0
    targets: TargetSettings = field(default_factory=TargetSettings)
    test: LocalizeSettings = field(default_factory=LocalizeSettings)

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_videos"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be 1 or more, got {getattr(self, name)}")
        if self.seed < 0:
            raise InputError(f"seed must be 0 or more, got {self.seed}")
        until = [end for end, _ in self.learning_rate]
        if not until or until != sorted(set(until)) or until[-1] < self.epochs:
            raise InputError(f"learning_rate must have increasing epochs up to {self.epochs} at least, got {until}")
        for protocol in self.test.protocols:
            protocol_named(protocol)
        stages = self.schedule.stages  # which checks itself
        if stages and not stages[0].relabel:
            raise InputError("the first of targets.stages must make labels (relabel: true), since none are at hand")

    @property
    def schedule(self) -> Schedule:
        """The stages of pseudo labels within this recipe's epochs."""
        return Schedule(self.targets.stages, self.epochs)

    def rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch.

        >>> Recipe("rskp", 3, ((1, 0.5), (3, 0.1))).rate_at(1)
        0.1
        """
        return next(rate for until, rate in self.learning_rate if epoch < until)

    def with_seed(self, seed: int) -> "Recipe":
        """The same recipe from another seed."""
        return replace(self, seed=seed)


def read_recipe(path: Path | str) -> Recipe:
    """The recipe in a YAML file, or one that comes with wtal, by name (demo); a wrong key, type or value is an error
    that names the file and the key."""
    own = shipped_recipes()
    path = own.get(str(path), Path(path))
    try:
        given = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
    except OSError as error:
        raise InputError(
            f"cannot read the recipe {path}: {error.strerror}{did_you_mean(path.stem, own)}; "
            f"wanted a YAML file or one of {', '.join(own)}"
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a YAML file: {error}") from error
    try:
        return parse(Recipe, given)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def shipped_recipes() -> dict[str, Path]:
    """The recipes that come with wtal, by name."""
    return {path.stem: path for path in sorted(recipes_folder().glob("*.yaml"))}


def recipes_folder() -> Path:
    """Where the recipes that come with wtal lie: inside the package where it is installed, recipes/ in a checkout."""
    package = Path(__file__).parents[1]
    return next((one for one in (package / "recipes", package.parents[1] / "recipes") if one.is_dir()), package)


def write_recipe(path: Path, recipe: Recipe) -> None:
    """Write the recipe with every default filled in; `read_recipe` gives it back equal."""
    with written_whole(path) as file:
        yaml.safe_dump(plain(recipe), file, sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)


class _Loader(yaml.SafeLoader):
    """The safe loader, but a key that stands twice is an error: YAML would silently take the second."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise InputError(f"line {key_node.start_mark.line + 1}: the key {key} stands twice; remove one")
            seen.add(key)
        return super().construct_mapping(node, deep)
