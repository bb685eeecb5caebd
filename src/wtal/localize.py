"""From activation maps, or features and a trained model, to instances in seconds: the test-time half of the paper."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Shaped

from wtal.data.sampling import even, stretched
from wtal.data.store import Store
from wtal.errors import InputError, MissingExtraError
from wtal.files import written_whole
from wtal.formats.tcam import VideoMap
from wtal.instances import Instances
from wtal.propose import Proposer
from wtal.timebase import TimeBase
from wtal.typed import parse, plain
from wtal.video.extractor import Extraction, Extractor, ExtractorOptions, open_extractor, read_extraction
from wtal.video.pipeline import video_features
from wtal.video.snippets import Sampling

if TYPE_CHECKING:
    from wtal.models.protocol import Model, Output

VERSION = 1


def localize_maps(
    videos: Iterable[VideoMap],
    proposer: Proposer,
    timebase: TimeBase,
    *,
    track: Callable[..., Iterable[VideoMap]] = iter,
) -> dict[str, Instances]:
    """Instances of each video in seconds, by name; `track` may wrap the loop in a progress bar."""
    return {video.name: localize_map([video], proposer, timebase) for video in track(videos)}


def localize_map(
    maps: Sequence[VideoMap], proposer: Proposer, timebase: TimeBase, duration_s: float = np.inf
) -> Instances:
    """Instances of one video in seconds, best first, from what each stream says of it."""
    return timebase.instances_to_seconds(proposer.of_maps(maps).instances, duration_s=duration_s)


@dataclass(frozen=True)
class Card:
    """What has to be known beside a model's weights to localize with it."""

    model: str
    classes: tuple[str, ...]
    dimensions: int
    model_options: Mapping[str, Any] = field(default_factory=dict)
    proposer: Proposer = field(default_factory=Proposer)
    offset_snippets: float | None = None
    """Where the first snippet starts on a video's clock; None: as the video's own time base says."""
    stream_weights: tuple[float, ...] = (1.0,)
    """With more than one, as many models, each for its equal part of the features."""
    segments: int | None = None
    """How many snippets of a longer video the model is shown, evenly spread; None: all."""
    extraction: Extraction | None = None
    """What the features were made with; None if that is not known."""
    version: int = VERSION


@dataclass(frozen=True, eq=False)
class Localizer:
    """A trained model that turns a video's features into instances.

    `Localizer.load("runs/mine")(features)` gives the instances of one video in seconds; `classes` has the names.

    Args:
        model: The trained model.
        card: What has to be known beside its weights.
    """

    model: "Model"
    card: Card

    @classmethod
    def load(cls, run: Path | str, *, device: str = "auto") -> "Localizer":
        """The model of a finished run.

        Args:
            run: The run's folder.
            device: `cpu`, `cuda`, or `auto`: the GPU if there is one.
        """
        card = read_card(run)
        try:
            from safetensors import SafetensorError
            from safetensors.torch import load_file

            from wtal.devices import choose_device
        except ModuleNotFoundError as error:
            raise MissingExtraError(error.name or "torch", "train") from error
        from wtal.models import build

        options = _frozen(card.model_options)
        model = build(card.model, len(card.classes), card.dimensions, stream_weights=card.stream_weights, **options)
        weights = Path(run) / "model" / "model.safetensors"
        try:
            model.load_state_dict(load_file(weights))
        except (OSError, SafetensorError, RuntimeError) as error:
            raise InputError(f"cannot use the weights {weights}: {error}") from error
        return cls(model.to(choose_device(device)).eval(), card)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names that the instances' labels are positions in."""
        return self.card.classes

    def __call__(
        self,
        features: Shaped[np.ndarray, "..."],
        timebase: TimeBase | None = None,
        *,
        duration_s: float = np.inf,
        proposer: Proposer | None = None,
    ) -> Instances:
        """Instances of one video in seconds.

        Args:
            features: The video's features, (snippets, dimensions).
            timebase: Where the snippets lie on the video's clock.
            duration_s: Length of the video; instances are cut to it.
            proposer: Settings between map and instances, in place of the run's own.

        Returns:
            The instances, best first.
        """
        clock = timebase or TimeBase()
        if self.card.offset_snippets is not None:
            clock = replace(clock, offset_snippets=self.card.offset_snippets)
        return localize_map(self.maps("the video", features), proposer or self.card.proposer, clock, duration_s)

    def map(self, name: str, features: Shaped[np.ndarray, "..."]) -> VideoMap:
        """The activation map and class scores of one video, without background; of several streams their mean."""
        return self._map(name, self._output(name, features), len(features))

    def maps(
        self, name: str, features: Shaped[np.ndarray, "..."], *, for_targets: bool = False
    ) -> tuple[VideoMap, ...]:
        """What each stream of the model says of one video: what its instances are cut from at test, or what its
        pseudo labels are made from."""
        outputs = self._output(name, features).maps
        return tuple(self._map(name, one, len(features), for_targets) for one in outputs)

    def _map(self, name: str, output: "Output", t: int, for_targets: bool = False) -> VideoMap:
        k = len(self.classes)
        chosen = output.target_tcam if for_targets and output.target_tcam is not None else output.tcam
        tcam, scores = chosen.double().cpu().numpy(), output.video_scores.double().cpu().numpy()
        attention = output.attention.double().cpu().numpy()[:, None]
        return VideoMap(name, stretched(tcam[:, :k], t), scores[0, :k], stretched(attention, t)[:, 0], output.weight)

    def _output(self, name: str, features: Shaped[np.ndarray, "..."]) -> "Output":
        import torch

        from wtal.models.protocol import Batch

        d = self.card.dimensions
        if features.ndim != 2 or features.shape[1] != d or not len(features):
            raise InputError(f"{name}: the model wants features of shape (snippets, {d}), got {features.shape}")
        if self.card.segments is not None:
            features = features[even(len(features), self.card.segments)]
        x = torch.from_numpy(np.array(features, dtype=np.float32)).to(next(self.model.parameters()).device)
        if not bool(torch.isfinite(x).all()):
            raise InputError(f"{name}: features must be finite, but some are NaN or infinite")
        if not bool(x.any()):
            raise InputError(f"{name}: features are zero everywhere, as if they had never been computed")
        with torch.no_grad():
            output: Output = self.model(Batch.pack([x]))
        return output

    def store(
        self,
        store: Store,
        split: str | None = None,
        *,
        proposer: Proposer | None = None,
        track: Callable[..., Iterable[str]] = iter,
    ) -> dict[str, Instances]:
        """Instances of each video of a store, or of one of its splits; `track` may wrap the loop in a progress bar."""
        made = read_extraction(store.extraction)
        if made is not None and self.card.extraction is not None:
            self.card.extraction.refuse_other(made, f"the features of {store.path}", "this model")
        return {
            name: self(store.features(name), store.timebase(name), duration_s=store.duration_s(name), proposer=proposer)
            for name in track(store.names(split))
        }

    def video(
        self,
        path: Path | str,
        opened: tuple[Extractor, Sampling] | None = None,
        *,
        proposer: Proposer | None = None,
        watch: Callable[[float], object] = lambda _: None,
    ) -> Instances:
        """Instances of a video file in seconds; `opened` is what `open_extractor` has given, for several videos."""
        extractor, sampling = opened or self.open_extractor()
        made = video_features(Path(path), extractor, sampling, watch=watch)
        return self(made.array, made.timebase, duration_s=made.duration_s, proposer=proposer)

    def open_extractor(
        self, options: ExtractorOptions | None = None, *, device: str = "auto"
    ) -> tuple[Extractor, Sampling]:
        """The extractor whose features this model knows; `options` may say where its weights are.

        A model that was trained on features from elsewhere takes the one that the options name, at the user's risk.
        """
        known = self.card.extraction
        if known is None:
            if options is None:
                raise InputError(
                    "the model was trained on features that wtal extract did not make: say what makes them, such as "
                    "--extractor i3d --weights RGB.pt --flow-weights FLOW.pt"
                )
            extractor, _ = open_extractor(options, Sampling(), device=device)
            return extractor, Sampling()
        asked = options or ExtractorOptions(known.extractor)
        if asked.extractor != known.extractor:
            raise InputError(f"the model was trained with the extractor {known.extractor}, not {asked.extractor}")
        asked = replace(asked, flow=asked.flow or known.flow)
        extractor, found = open_extractor(asked, known.sampling, device=device)
        known.refuse_other(found, "the features that are asked for", "this model")
        return extractor, known.sampling

    def save(self, run: Path) -> None:
        """Write the model into a run's folder, where `load` finds it."""
        from safetensors.torch import save

        tensors = {name: value.detach().cpu().contiguous() for name, value in self.model.state_dict().items()}
        with written_whole(run / "model" / "model.safetensors", "wb") as file:
            file.write(save(tensors))
        with written_whole(run / "model" / "model.json") as file:
            json.dump(plain(self.card), file, indent=1, ensure_ascii=False)
            file.write("\n")


def read_card(run: Path | str) -> Card:
    """What a finished run says about its model."""
    path = Path(run) / "model" / "model.json"
    try:
        card = parse(Card, json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        unfinished = (Path(run) / "config.yaml").exists()
        hint = (
            "it has not ended: go on with wtal train --resume" if unfinished else "is it a folder that wtal train made?"
        )
        raise InputError(f"{run} holds no trained model ({path.name}); {hint}") from error
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    if card.version != VERSION:
        raise InputError(f"{path} has version {card.version}, this wtal reads {VERSION}")
    return card


def _frozen(options: Mapping[str, Any]) -> dict[str, Any]:
    def freeze(value: Any) -> Any:
        return tuple(map(freeze, value)) if isinstance(value, (list, tuple)) else value

    return {name: freeze(value) for name, value in options.items()}
