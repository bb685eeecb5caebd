"""New pseudo labels from the model as it is: the only place in training where tensors become arrays.

One pass over the training videos → TCAM → the same candidates-and-fusion call as at test → LinPro → labels G.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from wtal.engine import LOCAL, Engine
from wtal.errors import InputError
from wtal.formats.targets import write_targets
from wtal.forward import activation_maps
from wtal.instances import Instances
from wtal.maps import ActivationMap
from wtal.models.protocol import Model
from wtal.progress import Progress, silent, tracked
from wtal.pseudo.delta import Stage, delta_targets
from wtal.pseudo.linpro import Targets, make_all_targets
from wtal.training.config import Recipe, TargetSettings
from wtal.training.distributed import ALONE, Group
from wtal.training.videos import Videos, video_seeds


@dataclass(frozen=True, eq=False)
class Generation:
    """Targets of all training videos, their snippets concatenated, and the instances they were made from.

    A video has labels of few classes, and of 200 the others' zeros would fill the memory: the labels are sparse.
    """

    targets: csr_array
    instances: tuple[Instances, ...]
    n_programs: int
    n_elastic: int


@dataclass(eq=False)
class Generations:
    """The newest labels, those before, and the epoch at whose start the newest were made."""

    now: csr_array | None = None
    before: csr_array | None = None
    epoch: int | None = None

    def renewed(self, labels: csr_array, epoch: int) -> "Generations":
        """These labels as the newest."""
        return Generations(labels, self.now, epoch)


def target(
    stage: Stage, generations: Generations, settings: TargetSettings, snippets: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "n c"]:
    """What the stage teaches these snippets: the newest labels themselves, or their change since the ones before."""
    if generations.now is None:
        raise InputError(f"the stage from epoch {stage.from_epoch} on needs labels, but none have been made")
    now = generations.now[snippets].toarray()
    if stage.source == "raw":
        return stage.scale * now
    before = None if generations.before is None else generations.before[snippets].toarray()
    return delta_targets(now, before, scale=stage.scale, first=settings.first)


def relabel(
    model: Model,
    videos: Videos,
    recipe: Recipe,
    stage: Stage,
    *,
    group: Group = ALONE,
    workers: int = 1,
    engine: Engine = LOCAL,
    progress: Progress = silent,
) -> Generation:
    """Targets of every training video from the model as it is; each process makes those of its part of them."""
    # whole passes, since what a model says of a video may differ in its last bit with the videos beside it
    passes = list(videos.in_order())
    mine = passes[group.part([sum(videos.lengths[number] for number in one) for one in passes])]
    task = partial(_passes, model=model, videos=videos, recipe=recipe, stage=stage, workers=workers)
    if engine.remote:
        count = sum(map(len, mine))
        made = list(tracked(engine.stream(task, mine), "targets", progress, total=count))
    else:
        made = list(engine.stream(partial(task, progress=progress), mine))
    return _joined([one for part in group.gathered(made) for one in part], recipe.targets, videos.tags.shape[1])


def _passes(
    passes: Sequence[Sequence[int]],
    model: Model,
    videos: Videos,
    recipe: Recipe,
    stage: Stage,
    workers: int,
    progress: Progress = silent,
) -> Generator[tuple[Instances, Targets], None, None]:
    """The instances that are found in each video of these passes, and the targets made from them."""
    yield from _made(
        target_maps(model, videos, recipe, epoch=stage.from_epoch, passes=passes),
        videos.tags[[number for one in passes for number in one]],
        recipe.targets,
        temperature=stage.temperature,
        workers=workers,
        progress=progress,
    )


def target_maps(
    model: Model, videos: Videos, recipe: Recipe, *, epoch: int, passes: Iterable[Sequence[int]] | None = None
) -> Iterator[tuple[ActivationMap, ...]]:
    """Each video's maps to make targets from, one per stream: as at test, but for what the recipe's targets say.

    `passes` are the videos that the model is shown together; None: all of them in order.
    """
    settings, training = recipe.targets, model.training
    model.train(settings.dropout)
    try:
        for numbers in videos.in_order() if passes is None else passes:
            names = [videos.names[number] for number in numbers]
            yield from activation_maps(
                model,
                names,
                [videos.store.features(name) for name in names],
                columns=len(videos.store.classes) + settings.background,
                segments=recipe.test.segments,
                for_targets=True,
                seeds=video_seeds(recipe.seed, epoch, numbers),
            )
    finally:
        model.train(training)


def targets_from(
    maps: Iterable[Sequence[ActivationMap]],
    tags: Float[np.ndarray, "n c"],
    settings: TargetSettings,
    *,
    temperature: float | None = None,
    workers: int = 1,
    progress: Progress = silent,
) -> Generation:
    """Targets from the maps of each video, one per stream; the videos' tags are rows of `tags`."""
    made = _made(maps, tags, settings, temperature=temperature, workers=workers, progress=progress)
    return _joined(made, settings, tags.shape[1])


def _made(
    maps: Iterable[Sequence[ActivationMap]],
    tags: Float[np.ndarray, "n c"],
    settings: TargetSettings,
    *,
    temperature: float | None,
    workers: int,
    progress: Progress,
) -> list[tuple[Instances, Targets]]:
    """The instances that are found in each video, and the targets made from them."""
    proposer = settings.proposer if temperature is None else settings.proposer.at_temperature(temperature)
    n_classes = tags.shape[1]
    wanted = n_classes + settings.background
    found: list[tuple[Instances, int]] = []
    for number, one in enumerate(tracked(maps, "targets", progress, total=len(tags))):
        chosen = None
        if settings.classes == "tags":
            own = np.flatnonzero(tags[number])
            chosen = np.append(own, n_classes) if settings.background else own
        found.append((proposer.of_maps(one, classes=chosen).instances, len(one[0].tcam)))
    labels = make_all_targets(
        found,
        wanted,
        workers=workers,
        rows=settings.rows,
        flanks=settings.flanks,
        upper=settings.upper,
        solution=settings.solution,
    )
    return [(instances, targets) for (instances, _), targets in zip(found, labels, strict=True)]


def _joined(made: Sequence[tuple[Instances, Targets]], settings: TargetSettings, n_classes: int) -> Generation:
    statuses = [status for _, one in made for status in one.status.values()]
    targets = _concatenated([one for _, one in made], n_classes + settings.background)
    return Generation(targets, tuple(one for one, _ in made), len(statuses), statuses.count("elastic"))


def _concatenated(labels: Sequence[Targets], n_classes: int) -> csr_array:
    """The targets of the videos, their snippets concatenated."""
    values, rows, columns = [np.zeros(0, np.float32)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    start = 0
    for one in labels:
        for label, column in one.columns.items():
            some = np.flatnonzero(column)
            values.append(column[some].astype(np.float32))
            rows.append(start + some)
            columns.append(np.full(len(some), label))
        start += one.shape[0]
    places = (np.concatenate(rows), np.concatenate(columns))
    return csr_array((np.concatenate(values), places), shape=(start, n_classes))


def write_generation(path: Path, generation: Generation, videos: Videos, *, background: bool) -> None:
    """Write labels and instances, as `wtal.formats.targets` says."""
    classes = [*videos.store.classes, *["background"] * background]
    lengths = np.diff(videos.offsets).tolist()
    write_targets(path, videos.names, lengths, classes, generation.targets, generation.instances)
