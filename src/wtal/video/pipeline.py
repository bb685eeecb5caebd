"""Many videos through one extractor: threads decode and prepare ahead, the network takes what is ready.

Memory is bounded by what is waiting, whatever the videos' lengths. A video's batches are the same however often it was
interrupted, so that a resumed extraction ends with the same bits.
"""

import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import Full, Queue

import numpy as np
from jaxtyping import Float32

from wtal.errors import InputError
from wtal.progress import Progress, silent
from wtal.timebase import TimeBase
from wtal.video.decode import probe, read_pictures
from wtal.video.extractor import Extractor, Prepared
from wtal.video.snippets import Sampling, SnippetFrames


@dataclass(frozen=True)
class VideoJob:
    """A video to extract, from snippet `start` on: those before it are at hand already."""

    name: str
    path: Path
    start: int = 0


@dataclass(frozen=True, eq=False)
class Extracted:
    """The vectors of a video's next snippets."""

    name: str
    vectors: Float32[np.ndarray, "n d"]
    streams: Mapping[str, int]


@dataclass(frozen=True)
class Ended:
    """A video is through."""

    name: str
    duration_s: float


@dataclass(frozen=True)
class Failed:
    """A video cannot be read."""

    name: str
    error: InputError


@dataclass(frozen=True, eq=False)
class Features:
    """One video's features, how they lie in time, and how long the video is."""

    array: Float32[np.ndarray, "t d"]
    timebase: TimeBase
    duration_s: float


Event = Extracted | Ended | Failed


def extract_videos(
    jobs: Sequence[VideoJob], extractor: Extractor, sampling: Sampling, *, workers: int = 2
) -> Generator[Event, None, None]:
    """What happens to the videos, as it happens; those that `workers` threads decode at once are intermixed."""
    if workers < 1:
        raise InputError(f"workers must be 1 or more, got {workers}")
    ready: Queue[tuple[VideoJob, Prepared | Ended | Exception]] = Queue(maxsize=2 * workers)
    stopped = threading.Event()

    def feed(job: VideoJob, pool: Executor) -> None:
        for item in _batches(job, extractor, sampling, pool):
            while not stopped.is_set():
                with suppress(Full):
                    ready.put((job, item), timeout=0.1)
                    break
            else:
                return

    with ThreadPoolExecutor(workers, "decode") as decoders, ThreadPoolExecutor(workers, "prepare") as preparers:
        for job in jobs:
            decoders.submit(feed, job, preparers)
        left = len(jobs)
        try:
            while left:
                job, item = ready.get()
                left -= not isinstance(item, dict)
                yield _event(job, item, extractor)
        finally:
            stopped.set()
            decoders.shutdown(cancel_futures=True)


def _event(job: VideoJob, item: Prepared | Ended | Exception, extractor: Extractor) -> Event:
    if isinstance(item, InputError):
        return Failed(job.name, item)
    if isinstance(item, Exception):
        raise item
    return item if isinstance(item, Ended) else _extracted(job.name, extractor, item)


def _extracted(name: str, extractor: Extractor, batch: Prepared) -> Extracted:
    vectors = extractor.vectors(batch)
    return Extracted(name, vectors, dict(extractor.streams))  # a user's own has none before its first vectors


def _batches(
    job: VideoJob, extractor: Extractor, sampling: Sampling, pool: Executor
) -> Iterator[Prepared | Ended | Exception]:
    """A video's prepared snippets, several at a time, and how it ended."""
    try:
        pictures = read_pictures(job.path, fps=sampling.fps, geometry=extractor.geometry)
        snippets = SnippetFrames(pictures, sampling, extractor.picks(sampling.length_frames), job.start)
        coming = iter(snippets)
        while batch := list(islice(coming, extractor.batch_snippets)):
            yield _stacked(pool.map(extractor.prepare, batch))
        yield Ended(job.name, snippets.n_frames / sampling.fps)
    except Exception as error:  # for the thread that waits for this video
        yield error


def _stacked(prepared: Iterable[Prepared]) -> Prepared:
    parts = list(prepared)
    return {key: np.stack([part[key] for part in parts]) for key in parts[0]}


def video_features(
    path: Path,
    extractor: Extractor,
    sampling: Sampling,
    *,
    workers: int = 2,
    progress: Progress = silent,
) -> Features:
    """The features of one video; progress counts its seconds."""
    rows, done_s, duration_s, detail = [], 0.0, probe(path).duration_s or 0.0, {"video": path.stem}
    with closing(extract_videos([VideoJob(path.stem, path)], extractor, sampling, workers=workers)) as events:
        for event in events:
            if isinstance(event, Failed):
                raise event.error
            if isinstance(event, Extracted):
                rows.append(event.vectors)
                done_s += len(event.vectors) * sampling.timebase.snippet_s
            else:  # now the length is known: that of the header may be wrong
                done_s = duration_s = event.duration_s
            progress("extracting", done_s, max(duration_s, done_s), detail)
    return Features(np.concatenate(rows), sampling.timebase, duration_s)
