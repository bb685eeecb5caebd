"""Label Studio: tasks with annotations or predictions of timeline labels; frames count from 1, both ends included.

Regions of a synchronised audio track (`labels`, in seconds) are read too.
"""

import json
import re
from typing import Any

from wtal.annotations import Annotations
from wtal.errors import InputError
from wtal.formats.form import FormatHints, name_of
from wtal.formats.rows import RowReader, in_writing_order, warn
from wtal.reading import refusing

TITLE = "Label Studio"
KIND = "json"
HOLDS = frozenset({"frames", "several videos", "scores", "videos without instances"})
_TIMELINE = "timeline labels of Label Studio"
_UPLOAD = re.compile(r"^[0-9a-f]{8}-")


def matches(content: Any) -> bool:
    """Whether these are tasks."""
    first = content[0] if isinstance(content, list) and content else content
    return isinstance(first, dict) and isinstance(first.get("data"), dict)


def read(content: Any, rows: RowReader, given: FormatHints) -> bool:
    """Whether what was read are predictions: they are, where no task has an annotation."""
    with refusing(rows.path, "is not a whole list of Label Studio's tasks"):
        tasks = content if isinstance(content, list) else [content]
        finished = [[one for one in task.get("annotations") or [] if not one.get("was_cancelled")] for task in tasks]
        predicted = not any(finished)
        skipped = several = 0
        for number, (task, done) in enumerate(zip(tasks, finished, strict=True)):
            found = (task.get("predictions") or []) if predicted else done
            if not found and not predicted:
                skipped += 1
                continue
            several += len(found) > 1
            name = _name(task["data"])
            rows.video(name)
            chosen = next((one for one in reversed(found) if one.get("ground_truth")), found[-1] if found else {})
            for region, entry in enumerate(chosen.get("result", [])):
                _add(entry, rows, given, name, f"region {region} of task {task.get('id', number)}")
    if skipped:
        warn(f"{rows.path}: left out {skipped} of {len(tasks)} task(s), which nobody has annotated yet")
    if several:
        warn(f"{rows.path}: {several} task(s) are labelled several times; the ground truth or the last one was read")
    return predicted


def write(content: Annotations, given: FormatHints) -> str:
    """One task for each video, to be imported into a project with a `Video` and `TimelineLabels` tag."""
    tasks = []
    for name, rows in in_writing_order(content):
        result = []
        for number, (label, start, end, score) in enumerate(rows, start=1):
            first, last = given.frames(_TIMELINE, start, end)
            scored = {"score": score} if content.predicted else {}
            result.append(
                {
                    "id": f"wtal{number}",
                    "from_name": "timelineLabels",
                    "to_name": "video",
                    "type": "timelinelabels",
                    "value": {"ranges": [{"start": first + 1, "end": last}], "timelinelabels": [label]},
                    **scored,
                }
            )
        task: dict[str, Any] = {"data": {"video": given.media_of(name), "video_name": name}}
        if content.predicted:
            best = max((row[3] for row in rows), default=0.0)
            task["predictions"] = [{"model_version": "wtal", "score": best, "result": result}]
        else:
            task["annotations"] = [{"result": result}]
        tasks.append(task)
    return json.dumps(tasks, ensure_ascii=False, allow_nan=False) + "\n"


def _add(entry: dict[str, Any], rows: RowReader, given: FormatHints, video: str, where: str) -> None:
    """The segments of a region; other kinds of regions, such as choices, have none."""
    value, score = entry.get("value", {}), entry.get("score", 1.0)
    if "timelinelabels" in value:
        fps = given.frames_per_second(f"{rows.path} ({_TIMELINE})")
        for span in value["ranges"]:
            for label in value["timelinelabels"]:
                rows.add(video, label, (span["start"] - 1) / fps, span["end"] / fps, score, where=where)
    elif "labels" in value and {"start", "end"} <= value.keys():
        for label in value["labels"]:
            rows.add(video, label, value["start"], value["end"], score, where=where)


def _name(data: dict[str, Any]) -> str:
    """The video that a task is about; Label Studio puts eight letters before the name of an uploaded file."""
    if isinstance(data.get("video_name"), str):
        return str(data["video_name"])
    media = [
        value for key, value in data.items() if isinstance(value, str) and ("video" in key or name_of(value) != value)
    ]
    if not media:
        raise InputError(f"a task has no video; its data are {sorted(data)[:8]}")
    name = name_of(media[0])
    return _UPLOAD.sub("", name) if "/data/upload/" in media[0] else name
