"""ActivityNet: one `.npy` per video, named with or without `v_`, and the official annotation file."""

from dataclasses import replace
from pathlib import Path

from wtal.data.feature_files import find_files, source_of_files, the_one
from wtal.data.source import Given, Source
from wtal.data.tags import read_tagged


def looks_like(path: Path) -> bool:
    """Whether the official annotation file is there."""
    return any(path.glob("activity_net*.json"))


def read(path: Path, given: Given) -> Source:
    """The features under `path`; the annotation file is `given.gt` or the only JSON file in the folder.

    In the common set 9 032 of 10 024 training and 4 427 of 4 926 validation videos have features: missing ones
    are counted and left out. Joined features are RGB first, then flow.
    """
    gt = given.gt or the_one(path.glob("*.json"), f"one annotation file in {path}, or `gt=FILE`")
    tagged = read_tagged(replace(given, gt=gt, tags=None))
    wanted = f"NAME.npy or v_NAME.npy and the names of {gt}"
    files = find_files(path)
    return source_of_files("activitynet", path, wanted, tagged, files, given, prefix="v_", joined=True)
