"""Files of instances in the forms of many tools: tolerant readers, strict writers; the suffix chooses the format.

A new format is one module and a line in `FORMATS`. Its `KIND` says what `read` gets: text, or the content of JSON or
XML; `read` puts its rows into a `RowReader` and returns whether they are predictions; `write` returns the text of a
file. What a format can hold is in its `HOLDS`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from wtal.annotations import Annotations, Video
from wtal.errors import InputError
from wtal.files import written_whole
from wtal.formats import activitynet, csv, cvat, eaf, fiftyone, labelstudio, srt, via, vtt
from wtal.formats.activitynet import read_annotations, write_annotations
from wtal.formats.form import FormatHints
from wtal.formats.rows import RowReader
from wtal.instances import Instances, Unit, wanted_predictions
from wtal.reading import read_json, read_text, read_xml
from wtal.typed import as_path

__all__ = ["FORMATS", "read", "read_annotations", "read_predictions", "write", "write_annotations", "write_predictions"]

#: suffix of a file -> the module that reads and writes it; its name is that of the module
FORMATS: dict[str, ModuleType] = {
    ".json": activitynet,
    ".csv": csv,
    ".srt": srt,
    ".vtt": vtt,
    ".eaf": eaf,
    ".via.json": via,
    ".labelstudio.json": labelstudio,
    ".fiftyone.json": fiftyone,
    ".xml": cvat,
}
NAMES: dict[str, ModuleType] = {module.__name__.rpartition(".")[2]: module for module in FORMATS.values()}


def read(
    path: Path | str, classes: Sequence[str] | None = None, *, form: str | None = None, given: FormatHints | None = None
) -> Annotations:
    """Read what a file, or a folder of files with one video each, says of videos.

    Args:
        path: A file in one of `FORMATS`.
        classes: Class names; a label's position among them becomes the class id. By default the labels that occur.
        form: The name of the format; by default the suffix says it, or what is in the file.
        given: What the format has to be told, such as the frame rate.

    Returns:
        The videos by name; `predicted` says whether the instances are a model's.
    """
    path, given = Path(path), given or FormatHints()
    rows, predicted = RowReader(path, classes), False
    for file, name in _files(path, form).items():
        rows.path = file
        module, content = _content(file, form)
        predicted |= module.read(content, rows, replace(given, video=name))
    rows.path = path
    return rows.annotations(predicted=predicted)


def write(
    path: Path | str, content: Annotations, *, form: str | None = None, given: FormatHints | None = None
) -> list[str]:
    """Write what is known of videos.

    Args:
        path: The file; a folder for formats that hold one video a file, if there are several.
        content: The videos, with instances in seconds.
        form: The name of the format; by default the suffix says it.
        given: What the format has to be told, such as the frame rate.

    Returns:
        What the format cannot hold and was left out, in words.
    """
    path, given = Path(path), given or FormatHints()
    module = _format(path, form)
    if "several videos" in module.HOLDS:
        parts = {path: content}
    elif path.name.lower().endswith(suffix_of(module)):
        if len(content.videos) != 1:
            name = module.__name__.rpartition(".")[2]
            raise InputError(
                f"{path} can hold one video, and there are {len(content.videos)}: name a folder for one file each, "
                f"and the format ({name})"
            )
        parts = {path: content}
    else:
        parts = {
            _inside(path, name, suffix_of(module)): replace(content, videos={name: video})
            for name, video in content.videos.items()
        }
    texts = {file: module.write(part, given) for file, part in parts.items()}  # all of them before any is written
    for file, text in texts.items():
        with written_whole(file) as out:
            out.write(text)
    return _lost(content, module)


def read_predictions(path: Path | str, classes: Sequence[str], unit: Unit = "seconds") -> dict[str, Instances]:
    """Read predicted instances.

    Args:
        path: ActivityNet JSON (`.json`), `.csv` with columns video, label, start, end, score, or another of `FORMATS`.
        classes: Class names; a label's position among them becomes the class id.
        unit: What the file counts in, since such files do not say.

    Returns:
        The instances of each video, by the video's name.
    """
    content = read(path, classes)
    if not content.predicted and "scores" in _format(path).HOLDS:
        raise InputError(f"{path} holds annotations, which have no score; wanted predictions")
    found = {name: video.instances for name, video in content.videos.items()}
    return {name: Instances.unchecked(i.segments, i.scores, i.class_ids, unit, i.names) for name, i in found.items()}


def write_predictions(path: Path | str, predictions: Mapping[str, Instances], classes: Sequence[str]) -> None:
    """Write predicted instances.

    Args:
        path: The file; its suffix says the form: `.json` (ActivityNet), `.csv`, or another of `FORMATS`.
        predictions: Instances of each video in seconds, by the video's name.
        classes: Class names; class id `i` is written as `classes[i]`.
    """
    wanted_predictions(predictions)
    videos = {name: Video("", None, instances) for name, instances in predictions.items()}
    write(as_path(path, "path"), Annotations(tuple(classes), videos, predicted=True))


def suffix_of(module: ModuleType) -> str:
    """How files of a format end."""
    return next(suffix for suffix, one in FORMATS.items() if one is module)


def _format(path: Path | str, form: str | None = None) -> ModuleType:
    if form is not None:
        if form not in NAMES:
            raise InputError(f"there is no format {form}; there are {', '.join(NAMES)}")
        return NAMES[form]
    name = Path(path).name.lower()
    for suffix in sorted(FORMATS, key=len, reverse=True):
        if name.endswith(suffix):
            return FORMATS[suffix]
    got = f"ends with {Path(path).suffix}" if Path(path).suffix else "has no ending"
    *others, last = FORMATS
    raise InputError(f"{path} {got}; files of instances end with {', '.join(others)} or {last}")


def _content(file: Path, form: str | None) -> tuple[ModuleType, Any]:
    """The format of a file, and what is in it; of JSON, what is in it says the format."""
    module = _format(file, form)
    if module.KIND == "text":
        return module, read_text(file, newline="")
    if module.KIND == "xml":
        return module, read_xml(file)
    content = read_json(file)
    if module is activitynet and form is None:
        module = next((one for one in (via, labelstudio, fiftyone) if one.matches(content)), activitynet)
    return module, content


def _files(path: Path, form: str | None) -> dict[Path, str]:
    """The files to read, each with the name of the video that it is about if it is about one."""
    if not path.is_dir():
        return {path: path.name.removesuffix(path.suffix)}
    singles = {suffix for suffix, module in FORMATS.items() if "several videos" not in module.HOLDS}
    wanted = singles if form is None else singles & {suffix_of(_format(path, form))}
    files = {
        file: file.relative_to(path).with_suffix("").as_posix()
        for file in sorted(path.rglob("*"))
        if file.suffix.lower() in wanted and file.is_file()
    }
    if not files:
        raise InputError(f"{path} is a folder without files that end with {' or '.join(sorted(wanted or singles))}")
    if len(set(files.values())) < len(files):
        raise InputError(f"{path} has several files of one video; say which format to read")
    return files


def _inside(folder: Path, name: str, suffix: str) -> Path:
    """Where the file about a video lies in a folder; a name with slashes lies in folders of it."""
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in name or "\0" in name:
        raise InputError(f"the video {name!r} cannot have a file of its own in {folder}: its name is not one of a file")
    return folder.joinpath(*parts[:-1], parts[-1] + suffix)


def _lost(content: Annotations, module: ModuleType) -> list[str]:
    """What a format cannot hold, counted."""
    videos = content.videos.values()
    there = {
        "scores": sum(len(video.instances) for video in videos) if content.predicted else 0,
        "durations": sum(video.duration_s is not None for video in videos),
        "splits": len({video.split for video in videos} - {""}),
        "videos without instances": 0
        if module.HOLDS.isdisjoint({"several videos"})
        else sum(not len(video.instances) for video in videos),
    }
    return [f"{count:,} {what}" for what, count in there.items() if count and what not in module.HOLDS]
