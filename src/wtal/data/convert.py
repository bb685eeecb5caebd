"""Any source into a store: read, verify, write, one video at a time."""

from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float

from wtal.data.check import check_features, check_tags, unknown_tags
from wtal.data.findings import Finding, only_errors
from wtal.data.source import Source
from wtal.data.store import TRUTH
from wtal.data.streams import join_streams
from wtal.data.truth import matched, renumber, write_truth
from wtal.data.video_record import VideoRecord
from wtal.data.writer import Dtype, StoreWriter, extend_store, new_store
from wtal.errors import InputError
from wtal.progress import Progress, silent, tracked
from wtal.timebase import TimeBase


def convert(
    source: Source,
    path: Path,
    *,
    trim: bool = False,
    stretch: bool = False,
    skip_bad: bool = False,
    dtype: Dtype = "float32",
    overwrite: bool = False,
    kept: Collection[str] | None = None,
    progress: Progress = silent,
) -> list[Finding]:
    """Write the store at `path` atomically, and say what was found on the way.

    The first video that is broken stops it; with `skip_bad` broken videos are left out and reported. `trim` cuts
    RGB and flow to the shorter. `stretch` gives each video a time base in which its snippets fill its duration,
    for features that were resampled to a fixed number per video. If the store at `path` is to become this data set,
    `kept` names the videos whose features are there already; they are not read again.
    """
    findings = [*source.findings, *check_tags(source.records, source.classes)]
    fatal = unknown_tags(source.records, source.classes)
    if not skip_bad:
        fatal += only_errors(source.findings)
    if fatal:
        raise InputError(str(fatal[0]))
    truth = None
    if source.truth is not None:
        truth, said = matched(source.truth, [record.name for record in source.records])
        truth = renumber(truth, source.classes, "the annotations")
        findings += said
    done: list[VideoRecord] = []
    writing: AbstractContextManager[StoreWriter]
    if kept is not None:
        writing = extend_store(path, anew=True, classes=source.classes, files=source.files)
    else:
        writing = new_store(
            path,
            classes=source.classes,
            timebase=source.records[0].timebase if source.records else TimeBase(),
            layout=source.layout,
            dtype=dtype,
            overwrite=overwrite,
            extraction=source.extraction,
            files=source.files,
        )
    with writing as writer:
        for record in tracked(source.records, "converting", progress):
            if kept is not None and record.name in kept:
                writer.keep(record)
                done.append(record)
                continue
            try:
                done.append(_one(source, record, writer, findings, trim=trim, stretch=stretch))
            except InputError as error:
                if not skip_bad:
                    raise InputError(
                        f"{error} (wtal data check lists all that is wrong; `skip_bad=True` leaves such videos out)"
                    ) from error
                findings.append(Finding("error", record.name, str(error), "left out"))
        if not done:
            raise InputError(f"none of the {len(source.records)} videos is fit to use; see wtal data check")
        if truth is not None:
            write_truth(writer.folder / TRUTH, truth, done)
        else:
            (writer.folder / TRUTH).unlink(missing_ok=True)
    return findings


def _one(
    source: Source, record: VideoRecord, writer: StoreWriter, findings: list[Finding], *, trim: bool, stretch: bool
) -> VideoRecord:
    streams = source.load(record.name)
    found = check_features(record.name, streams, trim=trim)
    if broken := only_errors(found):
        raise InputError(str(broken[0]))
    findings += [finding for finding in found if finding.severity == "warning"]
    features = join_streams(record.name, streams, trim=trim)
    if stretch:
        record = replace(record, timebase=_stretched(record, features))
    writer.add(record, features, {stream: array.shape[1] for stream, array in streams.items()})
    return record


def _stretched(record: VideoRecord, features: Float[np.ndarray, "t d"]) -> TimeBase:
    if record.duration_s is None:
        raise InputError(f"{record.name}: `stretch=True` needs its duration, which the annotations do not give")
    clock = record.timebase
    return TimeBase(clock.fps, record.duration_s * clock.fps / len(features), clock.offset_snippets)
