"""CVAT (XML 1.1): tracks of a video task, or tags of its frames; frames count from 0. One video a file.

A segment is a stretch in which a track is there (not `outside`), or a run of frames with one tag. CVAT has no segments
without a place, so that a marker box in the corner is written, whose position says nothing.
"""

from collections.abc import Iterator
from itertools import pairwise
from xml.etree.ElementTree import Element, SubElement

from wtal.annotations import Annotations
from wtal.errors import InputError
from wtal.formats.form import FormatHints, name_of
from wtal.formats.rows import RowReader, in_writing_order
from wtal.formats.xml import xml_text
from wtal.reading import refusing

TITLE = "CVAT XML"
KIND = "xml"
HOLDS = frozenset({"frames", "durations"})
_MARKER = {"xtl": "0.00", "ytl": "0.00", "xbr": "100.00", "ybr": "100.00"}


def read(content: Element, rows: RowReader, given: FormatHints) -> bool:
    """The stretches of all tracks and tags; a project's file has several tasks, each with a video."""
    if content.tag != "annotations":
        raise InputError(f"{rows.path} is not a CVAT file: it begins with <{content.tag}>, not <annotations>")
    with refusing(rows.path, "is not a whole CVAT file"):
        fps = given.frames_per_second(f"{rows.path} (CVAT)")
        tasks = [
            *content.findall("meta/project/tasks/task"),
            *content.findall("meta/task"),
            *content.findall("meta/job"),
        ]
        videos = {task.findtext("id"): _video(task) or given.video for task in tasks} or {None: given.video}
        steps = {task.findtext("id"): _step(task) for task in tasks}
        only = next(iter(videos))
        for task in tasks:
            rows.video(videos[task.findtext("id")], duration_s=_duration(task, fps))
        tags: dict[tuple[str | None, str | None], list[int]] = {}
        for track in content.iter("track"):
            task_id = track.get("task_id", only)
            for start, end in _stretches(track, steps.get(task_id, 1)):
                where = f"track {track.get('id')}"
                rows.add(videos[task_id], track.get("label"), start / fps, end / fps, where=where)
        for image in content.iter("image"):
            for tag in image.findall("tag"):
                tags.setdefault((image.get("task_id", only), tag.get("label")), []).append(int(image.attrib["id"]))
        for (task_id, label), frames in tags.items():
            for start, end in _runs(sorted(frames), steps.get(task_id, 1)):
                rows.add(videos[task_id], label, start / fps, end / fps, where=f"tag {label} of frame {start}")
    return False


def write(content: Annotations, given: FormatHints) -> str:
    """A task with one track for each instance, to be uploaded into a task of that video."""
    ((name, rows),) = in_writing_order(content)
    fps = given.frames_per_second("CVAT")
    duration = content.videos[name].duration_s
    size = None if duration is None else max(1, round(duration * fps))
    root = Element("annotations")
    SubElement(root, "version").text = "1.1"
    task = SubElement(SubElement(root, "meta"), "task")
    for key, value in (("name", name), ("size", size), ("mode", "interpolation"), ("source", given.media_of(name))):
        if value is not None:
            SubElement(task, key).text = str(value)
    labels = SubElement(task, "labels")
    for label in content.classes:
        SubElement(SubElement(labels, "label"), "name").text = label
    source = "auto" if content.predicted else "manual"
    for number, (label, start_s, end_s, _) in enumerate(rows):
        start, end = given.frames("CVAT", start_s, end_s)
        track = SubElement(root, "track", id=str(number), label=label, source=source)
        last = sorted({start, end - 1})
        for frame in last if size is not None and end >= size else [*last, end]:  # there is no frame after the last
            outside = {"outside": str(int(frame == end)), "occluded": "0", "keyframe": "1", "z_order": "0"}
            SubElement(track, "box", {"frame": str(frame), **outside, **_MARKER})
    return xml_text(root)


def _video(task: Element) -> str | None:
    source = task.findtext("source")
    return name_of(source) if source else task.findtext("name")


def _step(task: Element) -> int:
    """Every how many-th frame of the video is in the task."""
    chosen = task.findtext("frame_filter") or ""
    return int(chosen.partition("step=")[2] or 1)


def _duration(task: Element, fps: float) -> float | None:
    stop, size = task.findtext("stop_frame"), task.findtext("size")
    if stop:
        return (int(stop) + 1) / fps
    return int(size) / fps if size and _step(task) == 1 else None


def _stretches(track: Element, step: int) -> Iterator[tuple[int, int]]:
    """The frames `[start, end)` in which a track is there."""
    shapes = sorted(
        (int(shape.attrib["frame"]), shape.get("outside") == "1") for shape in track if "frame" in shape.attrib
    )
    start = None
    for frame, outside in shapes:
        if start is None and not outside:
            start = frame
        elif start is not None and outside:
            yield start, frame
            start = None
    if start is not None:
        yield start, shapes[-1][0] + step


def _runs(frames: list[int], step: int) -> Iterator[tuple[int, int]]:
    """Neighbouring frames as `[start, end)`.

    >>> list(_runs([3, 4, 5, 9], 1))
    [(3, 6), (9, 10)]
    """
    breaks = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(frames)) if b - a > step), len(frames)]
    for first, end in pairwise(breaks):
        yield frames[first], frames[end - 1] + step
