"""FiftyOne's temporal detections (`FiftyOneTemporalDetectionDataset`, its file labels.json): seconds, or frames."""

import json
from typing import Any

from wtal.annotations import Annotations
from wtal.formats.form import FormatHints
from wtal.formats.rows import RowReader, in_writing_order
from wtal.reading import refusing

TITLE = "FiftyOne"
KIND = "json"
HOLDS = frozenset({"several videos", "scores", "videos without instances"})


def matches(content: Any) -> bool:
    """Whether these are labels by video."""
    return isinstance(content, dict) and isinstance(content.get("labels"), dict)


def read(content: Any, rows: RowReader, given: FormatHints) -> bool:
    """Whether there are confidences; `support` counts frames from 1, both ends included, and needs the frame rate."""
    predicted = False
    with refusing(rows.path, "is not a whole file of temporal detections"):
        classes = content.get("classes")
        for name, found in content["labels"].items():
            rows.video(name)
            for number, entry in enumerate(found or []):
                where = f"detection {number} of video {name}"
                label = entry["label"]
                if classes is not None and isinstance(label, int):
                    label = classes[label]
                if "timestamps" in entry:
                    start, end = entry["timestamps"]
                else:
                    fps = given.frames_per_second(f"{rows.path} (its support)")
                    start, end = (entry["support"][0] - 1) / fps, entry["support"][1] / fps
                scored = entry.get("confidence") is not None
                predicted |= scored
                rows.add(name, label, start, end, entry["confidence"] if scored else 1.0, where=where)
    return predicted


def write(content: Annotations, given: FormatHints) -> str:  # noqa: ARG001  there is nothing to ask
    """Labels in seconds, as FiftyOne writes them with `use_timestamps=True`."""
    number = {name: i for i, name in enumerate(content.classes)}
    labels: dict[str, Any] = {}
    for name, rows in in_writing_order(content):
        labels[name] = [
            {"label": number[label], "timestamps": [start, end], **({"confidence": score} if content.predicted else {})}
            for label, start, end, score in rows
        ]
    whole = {"classes": list(content.classes), "labels": labels}
    return json.dumps(whole, ensure_ascii=False, allow_nan=False) + "\n"
