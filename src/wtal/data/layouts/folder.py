"""The user's own data: a folder of features and one CSV `video,label[,split]`."""

from pathlib import Path

from wtal.data.layouts import Given
from wtal.data.listing import file_loader, find_files, match_files, the_one
from wtal.data.record import VideoRecord, class_list
from wtal.data.source import Source, no_videos
from wtal.data.tags import tags_from_csv, tags_from_json
from wtal.data.truth import read_with_findings
from wtal.errors import InputError
from wtal.named import without_ending
from wtal.timebase import TimeBase


def read(path: Path, given: Given) -> Source:
    """The features under `path` with the tags of `given.tags`, or of the only CSV file in the folder.

    With `given.gt` the true instances are known too; with it and no CSV, they are the tags.
    """
    tagged = read_tags(path, given)
    records, files, findings = match_files(tagged, find_files(path))
    if not records:
        raise no_videos("folder", path, ["NAME.npy, or rgb/NAME.npy with flow/NAME.npy", "those names in the CSV"])
    classes = class_list(given.classes, tagged.values())
    truth, said = read_with_findings(given.gt) if given.gt else (None, [])
    return Source("folder", classes, records, file_loader(files), truth, (*findings, *said))


def read_tags(path: Path, given: Given) -> dict[str, VideoRecord]:
    """The videos that the user names, from the CSV or else from the annotation file."""
    if given.gt and not given.tags and not any(path.glob("*.csv")):
        return tags_from_json(given.gt, given.timebase)
    table = given.tags or the_one(path.glob("*.csv"), f"one CSV of tags in {path}, or --tags FILE")
    return tags_of_files(table, given.timebase)


def tags_of_files(table: Path, timebase: TimeBase) -> dict[str, VideoRecord]:
    """The videos of a CSV by the names that files have without their endings."""
    named: dict[str, VideoRecord] = {}
    for name, record in tags_from_csv(table, timebase).items():
        # a CSV made from a folder of videos says clip.mp4 where the features are clip.npy
        plain = without_ending(name)
        if plain in named:
            raise InputError(f"{table}: {plain} is named twice, with and without its ending")
        named[plain] = VideoRecord(plain, record.split, record.tags, record.duration_s, record.timebase)
    return named
