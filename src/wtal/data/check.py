"""The doctor: what is wrong with a data set, found before hours of training are lost."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from jaxtyping import Float

from wtal.annotations import Annotations
from wtal.data.arrays import LARGEST, usable
from wtal.data.findings import Finding, only_errors
from wtal.data.index import fingerprint, rows_of
from wtal.data.shards import digest_of
from wtal.data.source import Source
from wtal.data.store import Store
from wtal.data.streams import Streams, by_stream, unequal_lengths
from wtal.data.video_record import VideoRecord
from wtal.errors import InputError, did_you_mean, some
from wtal.progress import Progress, silent, tracked

_STILL = "right if nothing moves in it, as in a still picture; otherwise extract its features again"
LONG = 10_000  # snippets: 1.8 hours at the usual rate
SLACK = 0.1  # of the duration: extractors drop the last, incomplete snippets and some readers drop frames
SLACK_S = 3.0  # seconds on top, for short videos


def unknown_tags(records: Sequence[VideoRecord], classes: Sequence[str]) -> list[Finding]:
    """The tags that the class list lacks, each with the videos that carry it."""
    wrong: dict[str, list[str]] = {}
    for record in records:
        for tag in set(record.tags) - set(classes):
            wrong.setdefault(tag, []).append(record.name)
    return [
        Finding(
            "error",
            None,
            f"label {tag!r} of {some(names)} is not in the class list{did_you_mean(tag, classes)}",
            "correct the label or add it to the class list",
        )
        for tag, names in sorted(wrong.items())
    ]


def check_tags(records: Sequence[VideoRecord], classes: Sequence[str]) -> list[Finding]:
    """What is wrong with the tags: unknown names, videos without any, classes that nothing teaches."""
    findings = unknown_tags(records, classes)
    training = [record for record in records if record.split == "train"]
    if untagged := [record.name for record in training if not record.tags]:
        what = f"{len(untagged)} training videos have no tag: {some(untagged)}"
        fix = "right if they show background only; otherwise tag them or take them out of the training split"
        findings.append(Finding("warning", None, what, fix))
    taught = {tag for record in training for tag in record.tags}
    if training and (never := sorted(set(classes) - taught)):
        what = f"{len(never)} of {len(classes)} classes have no training video: {some(never)}"
        fix = "they cannot be learned; give the list of the others with `classes=FILE`, or add videos"
        findings.append(Finding("error", None, what, fix))
    if not training:
        findings.append(Finding("note", None, "there is no training video", "enough to localize, not to train"))
    return findings


def check_features(name: str, streams: Streams, *, trim: bool = False) -> list[Finding]:
    """What is wrong with one video's features."""

    def found(what: str, fix: str = "extract its features again, or leave the video out") -> Finding:
        return Finding("error", name, what, fix)

    findings = []
    if (what := unequal_lengths(streams)) and not trim:
        findings.append(found(what, "extract again, or cut to the shorter with `trim=True`"))
    t = min(map(len, streams.values()), default=0)
    if t == 0:
        return [*findings, found("there are no snippets")]
    still = all((array == array[0]).all() for array in streams.values()) and any(map(np.any, streams.values()))
    for stream, array in streams.items():
        if what := _wrong_values(array):
            if usable(array) and (still or (stream == "motion" and len(streams) > 1)):
                findings.append(Finding("warning", name, f"{stream} {what}", _STILL))
            else:
                findings.append(found(f"{stream} {what}"))
    if only_errors(findings):
        return findings
    if t == 1:
        findings.append(Finding("warning", name, "has one snippet only", "nothing can be localized in it"))
    if t > LONG:
        what = f"has {t} snippets; a training step holds all of a video"
        findings.append(Finding("note", name, what, "mind the memory, or sample segments"))
    return findings


def _wrong_values(array: Float[np.ndarray, "t d"]) -> str:
    bad = np.count_nonzero(~np.isfinite(array))
    if bad:
        row = int(np.argmin(np.isfinite(array).all(axis=1)))
        return f"has {bad} values that are NaN or infinite, the first in snippet {row}"
    if not usable(array):
        return f"has values as large as {np.abs(array).max():g}, which no extractor gives (up to {LARGEST:g} are taken)"
    if not array.any():
        return "is zero everywhere"
    if len(array) > 2 and (array == array[0]).all():
        return f"is the same in all {len(array)} snippets"
    return ""


def check_source(source: Source, *, trim: bool = False, progress: Progress = silent) -> list[Finding]:
    """Everything that is wrong with a source. Reads all of its features, one video at a time."""
    findings = [*source.findings, *check_tags(source.records, source.classes)]
    lengths, widths = [], {}
    for record in tracked(source.records, "checking", progress):
        try:
            streams = source.load(record.name)
        except InputError as error:
            findings.append(Finding("error", record.name, str(error), "or leave the video out with `skip_bad=True`"))
            continue
        findings += check_features(record.name, streams, trim=trim)
        widths[record.name] = tuple(array.shape[1] for array in streams.values())
        t = min(len(array) for array in streams.values())
        lengths.append(Length(record, t, _last_end(source.truth, record.name)))
    return findings + _check_widths(widths) + check_durations(lengths)


def check_store(store: Store, *, progress: Progress = silent) -> list[Finding]:
    """Everything that is wrong with a store, its bytes included: they must be those that were written."""
    records = tuple(store.records.values())
    findings = check_tags(records, store.classes)
    truth = store.truth() if store.has_truth else None
    whole, lengths = hashlib.blake2b(digest_size=16), []
    if wrong := store.index.damage():
        findings.append(Finding("error", None, f"{store.index.path.name}: {wrong}", f"wtal data repair {store.path}"))
    for record in tracked(records, "checking", progress):
        features = store.features(record.name)
        digest = store.entry(record.name).digest
        if digest is None:  # of the first form, which has one for all
            whole.update(features.tobytes())
        elif digest_of(features) != digest:
            fix = f"the disk or a copy has damaged it: extract it again, or drop it: wtal data repair {store.path}"
            findings.append(Finding("error", record.name, "its features are not what was written", fix))
        findings += check_features(record.name, by_stream(features, store.streams))
        lengths.append(Length(record, len(features), _last_end(truth, record.name)))
    if store.index.head.get("digest", whole.hexdigest()) != whole.hexdigest():
        what = "features.npy is not what was written when the store was made"
        findings.append(Finding("error", None, what, "the disk or a copy has damaged it: convert again"))
    head = store.index.head
    if store.extensible and fingerprint(head, rows_of(store.index, store.clock)) != head["fingerprint"]:
        what = f"{store.index.path.name} was changed after it was written, so that its fingerprint is wrong"
        findings.append(Finding("error", None, what, "convert again, or add videos and tags with wtal extract"))
    return findings + check_durations(lengths)


def _check_widths(widths: dict[str, tuple[int, ...]]) -> list[Finding]:
    by_width: dict[tuple[int, ...], list[str]] = {}
    for name, width in widths.items():
        by_width.setdefault(width, []).append(name)
    usual = max(by_width, key=lambda width: len(by_width[width]), default=())
    return [
        Finding("error", None, f"{some(names)}: {width} dimensions where others have {usual}", "use one extractor")
        for width, names in by_width.items()
        if width != usual
    ]


def _last_end(truth: Annotations | None, name: str) -> float | None:
    video = truth.videos.get(name) if truth else None
    return float(video.instances.ends.max()) if video is not None and len(video.instances) else None


@dataclass(frozen=True)
class Length:
    """A video's number of snippets, and where its last true instance ends, if that is known."""

    record: VideoRecord
    snippets: int
    last_end_s: float | None = None

    @property
    def seconds(self) -> float:
        """How long the features last on the video's time base."""
        return self.snippets * self.record.timebase.snippet_s


def check_durations(lengths: Sequence[Length]) -> list[Finding]:
    """Videos whose features last longer or shorter than the video does, or end before the last annotated action.

    If most videos disagree, one finding says so with the frame rate that would fit: the time base is wrong, not
    the videos.
    """
    timed = [(one, one.record.duration_s) for one in lengths if one.record.duration_s]
    off = [(one, d) for one, d in timed if abs(one.seconds - d) > SLACK * d + SLACK_S]
    findings = []
    if len(off) > 3 and 2 * len(off) > len(timed):
        findings.append(_rate_is_wrong(off, len(timed)))
    else:
        for one, d in off:
            clock = one.record.timebase
            what = (
                f"{one.snippets} snippets · {clock.stride_frames:g} frames / {clock.fps:g} fps = "
                f"{one.seconds:.1f} s, but the video lasts {d:.1f} s"
            )
            fix = f"its features fit {clock.fps * one.seconds / d:.1f} fps: correct fps or duration, or extract again"
            findings.append(Finding("warning", one.record.name, what, fix))
    ended = [
        one
        for one in lengths
        if not one.record.duration_s
        and one.last_end_s is not None
        and one.last_end_s > (1 + SLACK) * one.seconds + SLACK_S
    ]
    if ended:
        first = ended[0]
        what = (
            f"{len(ended)} videos have actions after the end of their features: "
            f"{some([one.record.name for one in ended])} (the first: {first.last_end_s:.1f} s, features "
            f"end at {first.seconds:.1f} s)"
        )
        findings.append(Finding("warning", None, what, "the features are cut off or the fps is wrong: `fps`"))
    return findings


def _rate_is_wrong(off: list[tuple[Length, float]], n: int) -> Finding:
    factor = median(one.seconds / d for one, d in off)
    clock = off[0][0].record.timebase
    what = (
        f"{len(off)} of {n} videos do not last as long as their features say at {clock.fps:g} fps and "
        f"{clock.stride_frames:g} frames per snippet"
    )
    fix = (
        f"`fps={clock.fps * factor:.1f}` would fit the median video; features resampled to a fixed number per "
        f"video need `stretch=True`"
    )
    return Finding("error", None, what, fix)
