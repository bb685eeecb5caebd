"""The user's own data: a folder of features and one CSV `video,label[,split]`."""

from dataclasses import replace
from pathlib import Path

from wtal.data.feature_files import find_files, source_of_files, the_one
from wtal.data.source import Given, Source
from wtal.data.tags import read_tagged


def looks_like(path: Path) -> bool:
    """Whether there is a CSV."""
    return any(path.glob("*.csv"))


def read(path: Path, given: Given) -> Source:
    """The features under `path` with the tags of `given.tags`, or of the only CSV file in the folder.

    With `given.gt` the true instances are known too; with it and no CSV, they are the tags.
    """
    if not given.tags and (looks_like(path) or not given.gt):
        table = the_one(path.glob("*.csv"), f"one CSV of tags in {path}, or `tags=FILE`")
        given = replace(given, tags=table)
    wanted = "NAME.npy, or rgb/NAME.npy with flow/NAME.npy and those names in the CSV"
    files = find_files(path)
    return source_of_files("folder", path, wanted, read_tagged(given, files), files, given)
