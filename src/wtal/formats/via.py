"""VIA 3, the VGG video annotator: a project with temporal segments, in seconds."""

import json
from typing import Any

from wtal.annotations import Annotations
from wtal.formats.form import FormatHints, name_of
from wtal.formats.rows import RowReader, in_writing_order, warn
from wtal.reading import refusing

TITLE = "VIA 3"
KIND = "json"
HOLDS = frozenset({"several videos", "videos without instances"})
#: an attribute with this anchor describes temporal segments of one file
_ANCHOR = "FILE1_Z2_XY0"
#: what VIA calls a drop-down list, a row of checkboxes, and a video file
_SELECT, _CHECKBOX, _VIDEO = 4, 2, 4


def matches(content: Any) -> bool:
    """Whether this is a project of VIA 3."""
    return isinstance(content, dict) and {"metadata", "file", "view", "attribute"} <= content.keys()


def read(content: Any, rows: RowReader, given: FormatHints) -> bool:  # noqa: ARG001  there is nothing to ask
    """Each temporal segment with the value of the first attribute that is about segments."""
    with refusing(rows.path, "is not a whole VIA 3 project"):
        files = {str(fid): name_of(file["fname"]) for fid, file in content["file"].items()}
        videos = {str(vid): [files[str(fid)] for fid in view["fid_list"]] for vid, view in content["view"].items()}
        for names in videos.values():
            for name in names:
                rows.video(name)
        about = {key: one for key, one in content["attribute"].items() if one.get("anchor_id") == _ANCHOR}
        key: str = next(iter(about), "")
        attribute: dict[str, Any] = about.get(key, {})
        left_out = 0
        for number, entry in content["metadata"].items():
            segment = entry.get("z", [])
            if len(segment) != 2 or entry.get("xy"):
                left_out += 1  # a frame or a region
                continue
            value = str(entry.get("av", {}).get(key, ""))
            chosen = value.split(",") if attribute.get("type") == _CHECKBOX else [value]
            for label in chosen:
                named = attribute.get("options", {}).get(label, label)
                rows.add(videos[str(entry["vid"])][0], named, *segment, where=f"segment {number}")
    if left_out:
        warn(f"{rows.path}: left out {left_out} annotation(s) that are no temporal segments")
    return False


def write(content: Annotations, given: FormatHints) -> str:
    """A project with one drop-down attribute, whose options are the classes."""
    metadata, files, views = {}, {}, {}
    for number, (name, rows) in enumerate(in_writing_order(content), start=1):
        vid, media = str(number), given.media_of(name)
        place = 2 if "://" in media else 1  # an address or a local file
        files[vid] = {"fid": vid, "fname": media, "type": _VIDEO, "loc": place, "src": media if place == 2 else ""}
        views[vid] = {"fid_list": [vid]}
        for row, (label, start, end, _) in enumerate(rows, start=1):
            metadata[f"{vid}_{row}"] = {"vid": vid, "flg": 0, "z": [start, end], "xy": [], "av": {"1": label}}
    attribute = {
        "aname": "class",
        "anchor_id": _ANCHOR,
        "type": _SELECT,
        "desc": "what happens in the segment",
        "options": {name: name for name in content.classes},
        "default_option_id": "",
    }
    project = {
        "pid": "__VIA_PROJECT_ID__",
        "rev": "__VIA_PROJECT_REV_ID__",
        "rev_timestamp": "__VIA_PROJECT_REV_TIMESTAMP__",
        "pname": "wtal",
        "creator": "wtal",
        "created": 0,
        "data_format_version": "3.1.1",
        "vid_list": list(views),
    }
    interface = {
        "file_content_align": "center",
        "file_metadata_editor_visible": True,
        "spatial_metadata_editor_visible": False,
        "temporal_segment_metadata_editor_visible": True,
        "spatial_region_label_attribute_id": "",
        "gtimeline_visible_row_count": "4",
    }
    prefixes = {"1": "", "2": "", "3": "", "4": ""}
    whole = {
        "project": project,
        "config": {"file": {"loc_prefix": prefixes}, "ui": interface},
        "attribute": {"1": attribute},
        "file": files,
        "metadata": metadata,
        "view": views,
    }
    return json.dumps(whole, ensure_ascii=False, allow_nan=False) + "\n"
