"""New pseudo labels from the model as it is: the only place in training where tensors become arrays.

One pass over the training videos → TCAM → the same candidates-and-fusion call as at test → LinPro → labels G.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from wtal.errors import InputError
from wtal.formats.targets import write_targets
from wtal.formats.tcam import VideoMap
from wtal.instances import Instances
from wtal.models.protocol import Model, Output
from wtal.pseudo.delta import Stage, delta_targets
from wtal.pseudo.linpro import Labels, make_all_targets
from wtal.training.config import TargetSettings
from wtal.training.videos import Videos, video_seeds


@dataclass(frozen=True, eq=False)
class Generation:
    """Labels of all training videos, their snippets behind each other, and the instances they were made from.

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
    settings: TargetSettings,
    stage: Stage,
    *,
    seed: int,
    workers: int = 1,
    watch: Callable[[int], None] = lambda _: None,
) -> Generation:
    """Labels of every training video from the model as it is; `watch` hears how many videos the model has seen."""
    wanted = len(videos.store.classes) + settings.background
    return targets_from(
        _maps(model, videos, settings, wanted, epoch=stage.from_epoch, seed=seed),
        videos.tags,
        settings,
        temperature=stage.temperature,
        workers=workers,
        watch=watch,
    )


def targets_from(
    maps: Iterable[Sequence[VideoMap]],
    tags: Float[np.ndarray, "n c"],
    settings: TargetSettings,
    *,
    temperature: float,
    workers: int = 1,
    watch: Callable[[int], None] = lambda _: None,
) -> Generation:
    """Labels from the maps of each video, one per stream; the videos' tags are rows of `tags`."""
    proposer = settings.proposer.at_temperature(temperature)
    n_classes = tags.shape[1]
    wanted = n_classes + settings.background
    found: list[tuple[Instances, int]] = []
    for number, one in enumerate(maps):
        chosen = None
        if settings.classes == "tags":
            own = np.flatnonzero(tags[number])
            chosen = np.append(own, n_classes) if settings.background else own
        found.append((proposer.of_maps(one, classes=chosen).instances, len(one[0].tcam)))
        watch(number + 1)
    labels = make_all_targets(
        found,
        wanted,
        workers=workers,
        rows=settings.rows,
        flanks=settings.flanks,
        upper=settings.upper,
        solution=settings.solution,
    )
    statuses = [status for one in labels for status in one.status.values()]
    instances = tuple(one for one, _ in found)
    return Generation(_joined(labels, wanted), instances, len(statuses), statuses.count("elastic"))


def _joined(labels: Sequence[Labels], n_classes: int) -> csr_array:
    """The labels of the videos, their snippets behind each other."""
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


def _maps(
    model: Model, videos: Videos, settings: TargetSettings, wanted: int, *, epoch: int, seed: int
) -> Iterator[list[VideoMap]]:
    """Each video's maps to make labels from, one per stream, `wanted` columns wide; the model does not see the tags."""
    training = model.training
    model.train(settings.dropout)
    try:
        for numbers in videos.in_order():
            seeds = video_seeds(seed, epoch, numbers)
            with torch.no_grad():
                output: Output = model(videos.batch(numbers, tagged=False, seeds=seeds))
            start = videos.offsets[numbers[0]]
            for row, number in enumerate(numbers):
                part = slice(videos.offsets[number] - start, videos.offsets[number + 1] - start)
                yield [_map(videos.names[number], one, part, row, wanted) for one in output.maps]
    finally:
        model.train(training)


def _map(name: str, output: Output, part: slice, row: int, wanted: int) -> VideoMap:
    tcam = output.tcam if output.target_tcam is None else output.target_tcam
    if tcam.shape[1] < wanted:
        raise InputError("labels.background is true, but the model's TCAM has no column for background")
    curves, scores, attention = (
        values.double().cpu().numpy()
        for values in (tcam[part, :wanted], output.video_scores[row, :wanted], output.attention[part])
    )
    return VideoMap(name, curves, scores, attention, output.weight)


def write_generation(path: Path, generation: Generation, videos: Videos, *, background: bool) -> None:
    """Write labels and instances, as `wtal.formats.targets` says."""
    classes = [*videos.store.classes, *["background"] * background]
    lengths = np.diff(videos.offsets).tolist()
    write_targets(path, videos.names, lengths, classes, generation.targets, generation.instances)
