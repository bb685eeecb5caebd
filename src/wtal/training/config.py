"""A recipe: everything that decides what a run learns, read from one flat YAML file and written back complete.

Recipes do not inherit from each other, and nothing is set elsewhere: what is not in the file has the default below.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import yaml

from wtal.errors import InputError, did_you_mean
from wtal.evaluate.protocols import protocol_named
from wtal.files import written_whole
from wtal.pool import Pooling
from wtal.propose import PAPER, Cut, Proposer
from wtal.pseudo.candidates import QUARTER, Flanks
from wtal.pseudo.delta import First, Schedule, Stage
from wtal.pseudo.linpro import Rows, Solution
from wtal.reading import read_yaml, refusing
from wtal.typed import as_path, parse, plain

if TYPE_CHECKING:  # torch is loaded when a model is built, not when its recipe is read
    from wtal.models.precision import Precision


@dataclass(frozen=True)
class Optimizer:
    """Adam, or AdamW, whose weight decay is apart from the gradient."""

    name: Literal["adam", "adamw"] = "adam"
    betas: tuple[float, float] = (0.9, 0.99)
    eps: float = 1e-8
    weight_decay: float = 5e-4
    clip_norm: float | None = None
    """Gradients of a greater norm are shortened to this one; null: never."""


@dataclass(frozen=True)
class SegmentSampling:
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
    """What supervises when (see wtal.pseudo.delta); a stage that names a temperature fuses at that one instead of the
    proposer's."""
    first: First = "raw"
    """What a change (source delta) means for the first generation: the labels themselves, or nothing."""
    classes: Literal["tags", "scores"] = "tags"
    """Look for the video's tags, or for the classes whose video score reaches the cut's class_threshold."""
    background: bool = False
    """Whether the model's background column takes part like a class."""
    dropout: bool = False
    """Whether dropout stays on while the labels are made."""
    proposer: Proposer = field(default_factory=lambda: PAPER.at_temperature(0.1))
    """How maps become the instances that labels are made from."""
    rows: Rows = "mean"
    """LinPro: whether a contrast is of means (the paper's text) or of sums (its equation)."""
    upper: float = np.inf
    """LinPro: the largest label."""
    solution: Solution = "least_norm"
    """LinPro: which of all minimal solutions."""
    flanks: Flanks = QUARTER
    """LinPro: how far on either side of an instance its contrast looks."""


@dataclass(frozen=True)
class BoxSettings:
    """Which of the instances that its teachers find in the training videos become boxes for a detector."""

    least_weight: float = 0.3
    """A box's weight is its score over the best one of its class in the video; boxes of less weight are left out."""
    teachers: tuple[str, ...] = ()
    """The recipes of the teachers that are trained first if none are given; empty: they have to be given."""

    def __post_init__(self) -> None:
        if not 0 <= self.least_weight <= 1:
            raise InputError(f"boxes.least_weight must be from 0 to 1, got {self.least_weight}")


@dataclass(frozen=True)
class CorrectionSettings:
    """How much corrected videos (wtal train --corrections) count, and from when on; without corrections, nothing."""

    weight: float = 1.0
    """Of the cross-entropy of a corrected video's snippets, beside the model's own losses; pseudo labels of that video
    are left out."""
    from_epoch: int = 0
    """The epoch, counted from 0, from which on they are taught."""

    def __post_init__(self) -> None:
        if not (self.weight >= 0 and self.from_epoch >= 0):
            raise InputError(f"corrections want weight and from_epoch of 0 or more, got {self}")


@dataclass(frozen=True)
class LocalizeSettings:
    """How the trained model's maps become instances in seconds, and by which protocols those are scored."""

    proposer: Proposer = PAPER
    offset_snippets: float | None = None
    """Where the first snippet starts on the video's clock, in snippets; null: as the store says."""
    segments: int | None = None
    """How many snippets of a longer video the model is shown, evenly spread; null: all."""
    pool: Pooling | None = None
    """How a detector's instances and its teachers' become one set; null: the model is no detector."""
    protocols: tuple[str, ...] = ("thumos14", "thumos14-paper")
    confidence_folds: int = 0
    """Where no test video carries a tag, confidence is fitted to training videos: so many models are trained besides,
    each without its part of the videos, which it then looks at; 0: no confidence."""

    def __post_init__(self) -> None:
        if self.confidence_folds < 0 or self.confidence_folds == 1:
            raise InputError(f"test.confidence_folds must be 0, or 2 or more, got {self.confidence_folds}")


@dataclass(frozen=True)
class Recipe:
    """One training run. Epochs count from 0; `until` of a learning rate is the number of epochs done when it ends."""

    model: str
    """A name of wtal.models, or one's own as module:attribute."""
    epochs: int
    learning_rate: tuple[tuple[int, float], ...]
    """Stages [until_epoch, rate]: the rate holds for the epochs before until_epoch."""
    model_options: Mapping[str, Any] = field(default_factory=dict)
    stream_weights: Mapping[str, float] = field(default_factory=dict)
    """One model for each named stream of the features (rgb, flow); what they find is pooled with scores times these
    weights. Empty: one model for all features."""
    train_split: str = "train"
    test_split: str = "test"
    anneal: Literal["none", "cosine"] = "none"
    """Whether the rate falls along half a cosine besides, to nothing at the end of training."""
    batch_videos: int = 10
    """Videos per step."""
    reduction: Literal["sum", "mean"] = "sum"
    """Whether the losses of a step's videos are summed or averaged; beside weight decay it matters."""
    sampling: SegmentSampling = field(default_factory=SegmentSampling)
    optimizer: Optimizer = field(default_factory=Optimizer)
    seed: int = 0
    targets: TargetSettings = field(default_factory=TargetSettings)
    corrections: CorrectionSettings = field(default_factory=CorrectionSettings)
    boxes: BoxSettings | None = None
    """What a detector is taught; null: the model is no detector."""
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
        if (self.boxes is None) != (self.test.pool is None):
            raise InputError("a detector's recipe has both, boxes and test.pool; that of another model neither")
        if self.boxes is not None:
            idle = {
                "test.proposer.cut": self.test.proposer.cut != Cut(),
                "test.proposer.pool_threshold": self.test.proposer.pool_threshold is not None,
                "test.segments": self.test.segments is not None,
                "test.confidence_folds": bool(self.test.confidence_folds),
                "targets.stages": bool(self.targets.stages),
                "stream_weights": bool(self.stream_weights),
                "corrections": self.corrections != CorrectionSettings(),
            }
            for name, given in idle.items():
                if given:
                    raise InputError(f"{name} does nothing in a detector's recipe, which finds boxes itself: remove it")
        if self.corrections.from_epoch >= self.epochs:
            raise InputError(
                f"corrections.from_epoch is {self.corrections.from_epoch}, but training ends at {self.epochs}"
            )
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
        rate = next(rate for until, rate in self.learning_rate if epoch < until)
        return rate if self.anneal == "none" else rate * (1 + math.cos(math.pi * epoch / self.epochs)) / 2

    def with_seed(self, seed: int) -> "Recipe":
        """The same recipe from another seed."""
        return replace(self, seed=seed)

    @property
    def precision(self) -> "Precision":
        """In how many bits the model multiplies; auto: whatever is fast where a run begins."""
        return self.model_options.get("precision", "float32")

    def with_precision(self, precision: "Precision") -> "Recipe":
        """The same recipe with this precision, if it says auto: a run keeps the one that it began with."""
        if self.precision != "auto":
            return self
        return replace(self, model_options={**self.model_options, "precision": precision})


def read_recipe(path: Path | str) -> Recipe:
    """Read a recipe; a wrong key, type or value is an error that names the file and the key.

    Args:
        path: A YAML file, or the name of a recipe that comes with wtal (`demo`).

    Returns:
        The recipe, with defaults for what the file leaves out.
    """
    own = shipped_recipes()
    path = own.get(str(path), as_path(path, "recipe"))
    if not path.is_file():
        why = "it is a folder" if path.is_dir() else "No such file or directory"
        raise InputError(
            f"cannot read the recipe {path}: {why}{did_you_mean(path.stem, own)}; "
            f"wanted a YAML file or one of {', '.join(own)}"
        )
    with refusing(path, "is not a recipe"):
        return parse(Recipe, read_yaml(path, _Loader))


def shipped_recipes() -> dict[str, Path]:
    """The recipes that come with wtal: inside the package where it is installed, in recipes/ in a checkout."""
    package = Path(__file__).parents[1]
    folder = next((one for one in (package / "recipes", package.parents[1] / "recipes") if one.is_dir()), package)
    return recipes_in(folder)


def recipes_in(folder: Path) -> dict[str, Path]:
    """The recipes in a folder by name."""
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


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
