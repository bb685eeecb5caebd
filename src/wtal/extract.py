"""Videos in, a store of features out: resumable, in parallel, with the broken ones named."""

import hashlib
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from wtal.data.convert import convert
from wtal.data.findings import Finding
from wtal.data.source import Given, Source
from wtal.data.store import Store, is_store
from wtal.data.streams import Streams, by_stream
from wtal.data.tags import Tagged, read_tagged
from wtal.data.unfinished import UnfinishedFeatures, open_unfinished
from wtal.data.video_record import VideoRecord, class_list
from wtal.data.writer import Dtype, writing
from wtal.engine import LOCAL, Engine
from wtal.errors import InputError, did_you_mean, some
from wtal.machine import prepare_torch
from wtal.progress import Progress, silent
from wtal.typed import plain
from wtal.video.decode import probe
from wtal.video.extractor import Extraction, Extractor, ExtractorOptions, open_extractor, read_extraction
from wtal.video.pipeline import Ended, Event, Extracted, Failed, VideoJob, extract_videos
from wtal.video.snippets import Sampling

SUFFIXES = {
    *(".3gp", ".asf", ".avi", ".flv", ".m2ts", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".mts", ".mxf"),
    *(".ogv", ".ts", ".vob", ".webm", ".wmv"),
}


def find_videos(given: Sequence[Path]) -> dict[str, Path]:
    """The video files by name (without the ending): files as given, and those in and under folders."""
    found: dict[str, Path] = {}
    if not given:
        raise InputError("no video is given; name video files or folders of them")
    for place in given:
        if not place.exists():
            raise InputError(f"{place} is not there")
        inside = sorted(path for path in place.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
        if place.is_dir() and not inside:
            raise InputError(f"no video files in {place}; known endings are {', '.join(sorted(SUFFIXES))}")
        for path in inside if place.is_dir() else [place]:
            other = found.setdefault(path.stem, path)
            if other.resolve() != path.resolve():
                raise InputError(f"two videos are called {path.stem}: {other} and {path}; rename one")
    return found


def extract(
    videos: Sequence[Path],
    out: Path,
    options: ExtractorOptions | None = None,
    sampling: Sampling | None = None,
    *,
    given: Given | None = None,
    device: str = "auto",
    workers: int = 2,
    dtype: Dtype = "float32",
    skip_bad: bool = False,
    overwrite: bool = False,
    engine: Engine = LOCAL,
    progress: Progress = silent,
) -> list[Finding]:
    """Write a store of the videos' features at `out`, and say what was found on the way.

    `given` names tags, true instances and classes; with tags, the store is of the videos that have a row there. What
    is done is kept: if interrupted, or with more videos or other tags, the same call does only what is missing. A video
    that cannot be read stops it; with `skip_bad` such videos are left out and listed. Progress counts seconds of video.
    """
    prepare_torch()
    found = find_videos(videos)
    given = given or Given()
    tagged = _tagged(found, given)
    extractor, identity = open_extractor(options or ExtractorOptions(), sampling or Sampling(), device=device)
    clock = identity.sampling.timebase
    records = {name: replace(tagged.videos[name], timebase=clock) for name in tagged.videos if name in found}
    files = {name: fingerprint(found[name]) for name in records}
    folder = out.with_name(f".{out.name}.extracting")
    with writing(out):
        old = _reusable(out, identity, dtype, found) if is_store(out) and not overwrite else None
        kept = {} if old is None else {name: entry.file for name, entry in old.entries.items()}
        missing = [name for name in records if kept.get(name) != files[name]]
        unfinished = open_unfinished(folder, plain(identity), anew=overwrite)
        jobs, expected_s, broken = _jobs(missing, found, files, unfinished, extractor, skip_bad=skip_bad)
        task = partial(extract_videos, extractor=extractor, sampling=identity.sampling, workers=workers)
        with closing(engine.stream(task, jobs)) as events:
            for event in _reported(events, jobs, expected_s, clock.snippet_s, progress):
                if isinstance(event, Failed):
                    broken.append(_broken(event.name, event.error, skip_bad=skip_bad))
                elif isinstance(event, Ended):
                    unfinished.finish(event.name, files[event.name], event.duration_s)
                else:
                    unfinished.append(event.name, files[event.name], event.vectors, event.streams)

        def load(name: str) -> Streams:
            if old is not None and name not in missing:
                return by_stream(old.features(name), old.streams)
            return unfinished.load(name)

        left = {name: record for name, record in records.items() if name not in {f.video for f in broken}}
        if not left:
            raise InputError(f"none of the {len(records)} videos can be used; the first: {broken[0]}")
        timed = [replace(record, duration_s=_duration(name, files, unfinished, old)) for name, record in left.items()]
        source = Source(
            "videos",
            class_list(given.classes, tagged.videos.values()),
            tuple(timed),
            load,
            tagged.truth,
            tagged.findings,
            plain(identity),
            {name: files[name] for name in left},
        )
        findings = list(tagged.findings)
        if missing or tagged.truth is not None or old is None or not _same(old, source):
            there = set(kept) - set(missing) if old is not None and old.extensible else None
            again = overwrite or old is not None
            findings = convert(source, out, dtype=dtype, skip_bad=skip_bad, overwrite=again, kept=there)
        shutil.rmtree(folder)
    return [*broken, *findings]


def fingerprint(path: Path) -> str:
    """What tells a video file from another one of the same name: its size, and the bytes at its start and end."""
    size, edge = path.stat().st_size, 65536
    digest = hashlib.blake2b(digest_size=8)
    with path.open("rb") as file:
        digest.update(file.read(edge))
        file.seek(max(0, size - edge))
        digest.update(file.read(edge))
    return f"{size}-{digest.hexdigest()}"


def _tagged(found: Mapping[str, Path], given: Given) -> Tagged:
    """The videos to extract with what is known about them; without tags, all of them, to be localized in only."""
    if given.tags is None and given.gt is None:
        return Tagged({name: VideoRecord(name, "test", ()) for name in found})
    tagged = read_tagged(given, found)
    findings = list(tagged.findings)
    if absent := sorted(set(tagged.videos) - set(found)):
        what = f"{len(absent)} of {len(tagged.videos)} tagged videos are not there: {some(absent)}"
        findings.append(Finding("warning", None, what + did_you_mean(absent[0], found), "they are left out"))
    if extra := sorted(set(found) - set(tagged.videos)):
        what = f"{len(extra)} of {len(found)} videos have no row among the tags: {some(extra)}"
        findings.append(Finding("note", None, what, "they are left out; give them a row to use them"))
    if len(absent) == len(tagged.videos):
        raise InputError(
            f"none of the {len(found)} videos ({some(sorted(found))}) is among the {len(absent)} that are tagged "
            f"({some(absent)}); the tags must name the files"
        )
    return replace(tagged, findings=tuple(findings))


def _reusable(out: Path, identity: Extraction, dtype: Dtype, found: Mapping[str, Path]) -> Store:
    """The store that is there already, if the new features may stand beside its own."""
    store = Store.open(out)
    known = read_extraction(store.extraction)
    if known is None:
        raise InputError(
            f"{out} holds features that wtal extract did not make; choose another `out=DIR`, or say `overwrite=True`"
        )
    known.refuse_other(identity, "the features that are asked for", f"{out} (`overwrite=True` makes it anew)")
    if store.dtype != dtype:
        raise InputError(f"{out} holds {store.dtype}, not {dtype}; `overwrite=True` makes it anew")
    if lost := [name for name in store.names() if name not in found]:
        raise InputError(
            f"{out} holds {len(lost)} videos that are not among the files given, such as {some(lost)}; name their "
            "folder too, or choose another -o"
        )
    return store


def _jobs(
    names: Iterable[str],
    found: Mapping[str, Path],
    files: Mapping[str, str],
    unfinished: UnfinishedFeatures,
    extractor: Extractor,
    *,
    skip_bad: bool,
) -> tuple[list[VideoJob], dict[str, float], list[Finding]]:
    """What is left to do and how long those videos are, and the ones that even their headers show to be broken."""
    jobs, expected_s, broken = [], {}, []
    for name in names:
        part = unfinished.video(name, files[name])
        if part is not None and part.duration_s is not None:
            continue
        try:
            expected_s[name] = probe(found[name]).duration_s or 0.0
        except InputError as error:
            broken.append(_broken(name, error, skip_bad=skip_bad))
            continue
        jobs.append(VideoJob(name, found[name], unfinished.resume(name, files[name], extractor.batch_snippets)))
    return jobs, expected_s, broken


def _reported(
    events: Iterable[Event],
    jobs: Sequence[VideoJob],
    expected_s: dict[str, float],
    snippet_s: float,
    progress: Progress,
) -> Iterator[Event]:
    """The same events, each reported after it has been dealt with."""
    done_s = {job.name: job.start * snippet_s for job in jobs}
    for event in events:
        yield event
        if isinstance(event, Extracted):
            done_s[event.name] += len(event.vectors) * snippet_s
        else:  # now the length is known, or is no matter any more
            done_s[event.name] = event.duration_s if isinstance(event, Ended) else done_s[event.name]
            expected_s[event.name] = done_s[event.name]
        done = sum(done_s.values())
        # headers may be wrong about lengths
        progress("extracting", done, max(sum(expected_s.values()), done), {"video": event.name})


def _broken(name: str, error: InputError, *, skip_bad: bool) -> Finding:
    if not skip_bad:
        raise InputError(
            f"{error} (what is done is kept: repair or remove the file and run again, or say `skip_bad=True`)"
        ) from error
    return Finding("error", name, str(error), "left out")


def _duration(name: str, files: Mapping[str, str], unfinished: UnfinishedFeatures, old: Store | None) -> float | None:
    part = unfinished.video(name, files[name])
    return part.duration_s if part is not None else old.records[name].duration_s if old is not None else None


def _same(store: Store, source: Source) -> bool:
    """Whether a store says already what it would say if it were written again."""
    return store.classes == source.classes and tuple(store.records.values()) == source.records
