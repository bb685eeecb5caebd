"""ActivityNet: one `.npy` per video, named with or without `v_`, and the official annotation file."""

from pathlib import Path

from wtal.data.layouts import Given
from wtal.data.listing import file_loader, find_files, match_files, the_one
from wtal.data.record import class_list
from wtal.data.source import Source, no_videos
from wtal.data.tags import tags_from_json
from wtal.data.truth import read_with_findings


def read(path: Path, given: Given) -> Source:
    """The features under `path`; the annotation file is `given.gt` or the only JSON file in the folder.

    In the common set 9 032 of 10 024 training and 4 427 of 4 926 validation videos have features: missing ones
    are counted and left out. Joined features are RGB first, then flow.
    """
    gt = given.gt or the_one(path.glob("*.json"), f"one annotation file in {path}, or --gt FILE")
    tagged = tags_from_json(gt, given.timebase)
    records, files, findings = match_files(tagged, find_files(path), prefix="v_")
    if not records:
        raise no_videos("activitynet", path, ["NAME.npy or v_NAME.npy", f"the names of {gt}"])
    truth, said = read_with_findings(gt)
    findings += said
    classes = class_list(given.classes, tagged.values())
    load = file_loader(files, joined=True)
    return Source("activitynet", classes, records, load, truth, tuple(findings))
