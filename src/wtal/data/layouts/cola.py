"""The CoLA/WUM tree: `features/{train,test}/{rgb,flow}/NAME.npy`, `gt.json`, `split_{train,test}.txt`."""

from pathlib import Path

from wtal.data.findings import Finding, some
from wtal.data.layouts import Given
from wtal.data.listing import Files, file_loader, find_files, match_files, read_lines
from wtal.data.record import VideoRecord, class_list
from wtal.data.source import Source, no_videos
from wtal.data.tags import tags_from_json
from wtal.data.truth import read_with_findings
from wtal.errors import InputError


def read(path: Path, given: Given) -> Source:
    """The tree at `path`. The split files say which videos belong to which split, `gt.json` their tags."""
    gt = given.gt or path / "gt.json"
    if not gt.exists():
        raise InputError(f"{gt} is missing: the layout cola takes every video's tags from it")
    tagged = tags_from_json(gt, given.timebase)
    named = _named(path, tagged, given)
    found: Files = {}
    findings: list[Finding] = []
    records: list[VideoRecord] = []
    for split in ("train", "test"):
        folder = path / "features" / split
        files = find_files(folder) if folder.is_dir() else {}
        chosen = {name: record for name, record in named.items() if record.split == split}
        matched, paths, said = match_files(chosen, files)
        records += matched
        found |= paths
        findings += said
    if not records:
        raise no_videos("cola", path, ["features/{train,test}/{rgb,flow}/NAME.npy"])
    if unknown := [name for name in named if name not in tagged]:
        what = f"{len(unknown)} videos of the split files are not in {gt.name}: {some(unknown)}"
        findings.append(Finding("warning", None, what, "they have no tags; add them, or take them off the split"))
    truth, said = read_with_findings(gt)
    findings += said
    classes = class_list(given.classes, tagged.values())
    return Source("cola", classes, tuple(records), file_loader(found), truth, tuple(findings))


def _named(path: Path, tagged: dict[str, VideoRecord], given: Given) -> dict[str, VideoRecord]:
    named: dict[str, VideoRecord] = {}
    for split in ("train", "test"):
        list_file = path / f"split_{split}.txt"
        if list_file.exists():
            names = read_lines(list_file)
        else:
            names = [name for name, record in tagged.items() if record.split == split]
        for name in names:
            if name in named:
                raise InputError(f"{path}: {name} is named twice by split_train.txt and split_test.txt")
            known = tagged.get(name, VideoRecord(name, split, ()))
            named[name] = VideoRecord(name, split, known.tags, known.duration_s, given.timebase)
    return named
