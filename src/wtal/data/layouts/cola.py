"""The CoLA/WUM tree: `features/{train,test}/{rgb,flow}/NAME.npy`, `gt.json`, `split_{train,test}.txt`."""

from dataclasses import replace
from pathlib import Path

from wtal.data.feature_files import find_files, read_lines, source_of_files
from wtal.data.findings import Finding
from wtal.data.source import Given, Source
from wtal.data.tags import Tagged, read_tagged
from wtal.data.video_record import VideoRecord, class_list
from wtal.errors import InputError, some

_SPLITS = ("train", "test")


def looks_like(path: Path) -> bool:
    """Whether there are features by split."""
    return any((path / "features" / split).is_dir() for split in _SPLITS)


def read(path: Path, given: Given) -> Source:
    """The tree at `path`. The split files say which videos belong to which split, `gt.json` their tags."""
    gt = given.gt or path / "gt.json"
    if not gt.exists():
        raise InputError(f"{gt} is missing: the layout cola takes every video's tags from it")
    tagged = read_tagged(replace(given, gt=gt, tags=None))
    named = _named(path, tagged.videos, given)
    findings = tagged.findings
    if unknown := [name for name in named if name not in tagged.videos]:
        what = f"{len(unknown)} videos of the split files are not in {gt.name}: {some(unknown)}"
        fix = "they have no tags; add them, or take them off the split"
        findings = (*findings, Finding("warning", None, what, fix))
    files = find_files(path / "features") if looks_like(path) else {}
    wanted = "features/{train,test}/{rgb,flow}/NAME.npy"
    given = replace(given, classes=class_list(given.classes, tagged.videos.values()))
    return source_of_files("cola", path, wanted, Tagged(named, tagged.truth, findings), files, given)


def _named(path: Path, tagged: dict[str, VideoRecord], given: Given) -> dict[str, VideoRecord]:
    named: dict[str, VideoRecord] = {}
    for split in _SPLITS:
        list_file = path / f"split_{split}.txt"
        if list_file.exists():
            names = read_lines(list_file)
        else:
            names = [name for name, record in tagged.items() if record.split == split]
        for name in names:
            if name in named:
                raise InputError(f"{path}: {name} is named twice by split_train.txt and split_test.txt")
            known = tagged.get(name, VideoRecord(name, split, (), timebase=given.timebase))
            named[name] = replace(known, split=split)
    return named
