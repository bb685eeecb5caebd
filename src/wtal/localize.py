"""From activation maps, or features and a trained model, to instances in seconds: the test-time half of the paper."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int, Shaped

from wtal.card import Card, model_folder, read_card, teacher_folder, write_card
from wtal.data.arrays import LARGEST, usable
from wtal.data.store import Store
from wtal.decide import LEAST_CONFIDENCE, Decision, decide
from wtal.engine import LOCAL, Engine
from wtal.errors import InputError, MissingExtraError
from wtal.evaluate.calibration import Calibration
from wtal.files import written_whole
from wtal.instances import Instances
from wtal.machine import prepare_torch
from wtal.maps import ActivationMap, Maps
from wtal.progress import Progress, silent, tracked
from wtal.propose import Proposer
from wtal.pseudo.candidates import Candidates
from wtal.reading import refusing
from wtal.sight import Sight
from wtal.timebase import TimeBase
from wtal.video.extractor import Extractor, ExtractorOptions, open_extractor, read_extraction
from wtal.video.pipeline import video_features
from wtal.video.snippets import Sampling

if TYPE_CHECKING:
    import torch

    from wtal.models.protocol import Model


def localize_maps(
    maps: Maps, proposer: Proposer, timebase: TimeBase, *, progress: Progress = silent
) -> dict[str, Instances]:
    """Instances of each video in seconds, by name."""
    return {name: localize_map(maps[name], proposer, timebase) for name in tracked(maps, "localizing", progress)}


def localize_map(
    streams: Sequence[ActivationMap], proposer: Proposer, timebase: TimeBase, duration_s: float | None = None
) -> Instances:
    """Instances of one video in seconds, best first, from what each stream says of it.

    They are cut to the video's duration; where that is not known, to the end of its last snippet.
    """
    end_s = timebase.end_s(len(streams[0].tcam)) if duration_s is None else duration_s
    return timebase.instances_to_seconds(proposer.of_maps(streams).instances, duration_s=end_s)


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
    teachers: "tuple[Localizer, ...]" = ()
    """Of a detector: the models whose boxes have taught it, and that find instances together with it."""

    @classmethod
    def load(cls, run: Path | str, *, device: str = "auto") -> "Localizer":
        """The model of a finished run, with its teachers if it has any.

        Args:
            run: The run's folder, or its folder `model` copied anywhere.
            device: `cpu`, `cuda`, or `auto`: the GPU if there is one.
        """
        card, folder = read_card(run), model_folder(run)
        prepare_torch()
        try:
            import torch
            from safetensors.torch import load_file

            from wtal.devices import choose_device
        except ModuleNotFoundError as error:
            raise MissingExtraError(error.name or "torch", "train") from error
        from wtal.models import build

        options = _frozen(card.model_options)
        n, d = len(card.classes), card.dimensions
        weights = folder / "model.safetensors"
        # the weights that a model begins with are random, and replaced: whoever trains must not see numbers drawn
        with (
            refusing(weights, f"does not hold the weights of {card.model} that model.json describes"),
            torch.random.fork_rng(devices=[]),
        ):
            model = build(card.model, n, d, streams=card.streams, stream_weights=card.stream_weights, **options)
            model.load_state_dict(load_file(weights))
        n_teachers = 0 if card.pool is None else card.teachers
        teachers = tuple(cls.load(teacher_folder(folder, number), device=device) for number in range(n_teachers))
        return cls(model.to(choose_device(device)).eval(), card, teachers)

    def to(self, device: "torch.device") -> None:
        """Move the model and its teachers to a device."""
        self.model.to(device)
        for teacher in self.teachers:
            teacher.to(device)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names that the instances' labels are positions in."""
        return self.card.classes

    def __call__(
        self,
        features: Shaped[np.ndarray, "..."],
        timebase: TimeBase | None = None,
        *,
        duration_s: float | None = None,
        proposer: Proposer | None = None,
    ) -> Instances:
        """Instances in seconds, best first, of one video with these features (snippets, dimensions).

        Args:
            features: One vector per snippet.
            timebase: How the snippets lie on the video's clock; by default as those of the training videos do.
            duration_s: How long the video lasts; instances are cut to it. By default until its last snippet ends.
            proposer: Settings that take the place of the model's own.
        """
        clock = (timebase or self.card.timebase).at(self.card.offset_snippets)
        end_s = clock.end_s(len(features)) if duration_s is None else duration_s
        found = clock.instances_to_seconds(self.found("the video", features, proposer), duration_s=end_s)
        return found.named(self.classes)

    def decide(
        self,
        features: Shaped[np.ndarray, "..."],
        timebase: TimeBase | None = None,
        *,
        duration_s: float = np.inf,
        proposer: Proposer | None = None,
        precision: float | None = None,
    ) -> Decision:
        """The instances of one video that one would say happen, with the confidence of each, best first.

        Calling the localizer gives all that may happen, the ranked list that mAP asks for.

        Args:
            features: One vector per snippet.
            timebase: How the snippets lie on the video's clock; by default as those of the training videos do.
            duration_s: How long the video lasts; instances are cut to it.
            proposer: Settings that take the place of the model's own; confidence is known for its own alone.
            precision: The wanted share of instances whose class is right; None: each is more likely right than not.
        """
        confidence = self.confidence(proposer)
        least = least_confidence(confidence, precision)
        ranked = self(features, timebase, duration_s=duration_s, proposer=proposer)
        return decide(ranked, confidence, least_confidence=least)

    def confidence(self, proposer: Proposer | None = None) -> Calibration | None:
        """From `wtal.decide.prominence` to the probability that an instance's class is right; None: not known.

        It was fitted to instances by the model's own settings, and says nothing of those by others.
        """
        return self.card.calibration if proposer in (None, self.card.proposer) else None

    def found(
        self,
        name: str,
        features: Shaped[np.ndarray, "..."],
        proposer: Proposer | None = None,
        *,
        classes: Int[np.ndarray, " k"] | None = None,
    ) -> Instances:
        """Instances of one video in snippets, best first; of these `classes` alone, if they are known."""
        return self.look(name, features)(proposer, classes=classes).instances

    def look(self, name: str, features: Shaped[np.ndarray, "..."]) -> Sight:
        """What the model sees in one video, from which instances are made by its settings or by others."""
        if self.card.pool is None:
            return Sight(self.maps(name, features), self.card.proposer, model=self.card.model)
        teachers = tuple(
            replace(one.look(name, features), later=one.card.offset - self.card.offset) for one in self.teachers
        )
        candidates = self.candidates(name, features)
        return Sight(candidates, self.card.proposer, teachers, self.card.pool, model=self.card.model)

    def candidates(self, name: str, features: Shaped[np.ndarray, "..."]) -> Candidates:
        """The boxes that a detector finds by itself, in snippets."""
        import torch

        from wtal.forward import packed

        self._refuse_unusable(name, features)
        batch = packed([features], next(self.model.parameters()).device)
        with torch.no_grad():
            found = self.model.candidates(self.model(batch), batch)
        if found is None:
            raise InputError(f"a {self.card.model} finds no candidates by itself: they are cut from its maps")
        return found[0]

    def maps(
        self, name: str, features: Shaped[np.ndarray, "..."], *, for_targets: bool = False
    ) -> tuple[ActivationMap, ...]:
        """What each stream of the model says of one video: what its instances are cut from at test, or what its
        pseudo labels are made from."""
        from wtal.forward import activation_maps

        self._refuse_unusable(name, features)
        columns, segments = len(self.classes), self.card.segments
        return activation_maps(
            self.model, [name], [features], columns=columns, segments=segments, for_targets=for_targets
        )[0]

    def _refuse_unusable(self, name: str, features: Shaped[np.ndarray, "..."]) -> None:
        d = self.card.dimensions
        if features.ndim != 2 or features.shape[1] != d or not len(features):
            raise InputError(f"{name}: the model wants features of shape (snippets, {d}), got {features.shape}")
        if not usable(features):
            raise InputError(f"{name}: features must be finite and within ±{LARGEST:g}, but some are not")
        if not features.any():
            raise InputError(f"{name}: features are zero everywhere, as if they had never been computed")

    def store(
        self,
        store: Store,
        split: str | None = None,
        *,
        proposer: Proposer | None = None,
        engine: Engine = LOCAL,
        progress: Progress = silent,
    ) -> dict[str, Instances]:
        """Instances of each video of a store, or of one of its splits."""
        self.refuse_other_features(store)
        names = store.names(split)
        found = engine.stream(partial(_each, localizer=self, store=store, proposer=proposer), names, chunk=16)
        return dict(zip(names, tracked(found, "localizing", progress, total=len(names)), strict=True))

    def refuse_other_features(self, store: Store) -> None:
        """Make sure that a store's features are of the kind that the model has learned from."""
        made = read_extraction(store.extraction)
        if made is not None and self.card.extraction is not None:
            self.card.extraction.refuse_other(made, f"the features of {store.path}", "this model")
        if self.card.stream_weights and list(store.streams.items()) != list(self.card.streams.items()):
            raise InputError(
                f"the model wants features of the streams {dict(self.card.streams)}, "
                f"{store.path} has {dict(store.streams)}"
            )

    def video(
        self,
        path: Path | str,
        opened: tuple[Extractor, Sampling] | None = None,
        *,
        proposer: Proposer | None = None,
        progress: Progress = silent,
    ) -> Instances:
        """Instances of a video file in seconds; `opened` is what `open_extractor` has given, for several videos."""
        extractor, sampling = opened or self.open_extractor()
        made = video_features(Path(path), extractor, sampling, progress=progress)
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
                    "`extractor='i3d'` `weights=RGB.pt` `flow_weights=FLOW.pt`"
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
        write_card(run / "model", self.card)


def _each(
    names: Sequence[str], localizer: Localizer, store: Store, proposer: Proposer | None
) -> Generator[Instances, None, None]:
    """Instances of these videos of a store."""
    for name in names:
        clock, duration_s = store.timebase(name), store.duration_s(name)
        yield localizer(store.features(name), clock, duration_s=duration_s, proposer=proposer)


def least_confidence(confidence: Calibration | None, precision: float | None) -> float:
    """What the confidence must be at least for this precision; without one, what is more likely right than not."""
    if precision is None:
        return LEAST_CONFIDENCE
    if confidence is None:
        raise InputError(
            "a precision needs a confidence, and there is none of this model with these settings: fit one to tagged "
            "videos that it has not learned from, with wtal calibrate RUN --features STORE, and leave its settings"
        )
    return confidence.least_for(precision)


def _frozen(options: Mapping[str, Any]) -> dict[str, Any]:
    def freeze(value: Any) -> Any:
        return tuple(map(freeze, value)) if isinstance(value, (list, tuple)) else value

    return {name: freeze(value) for name, value in options.items()}
