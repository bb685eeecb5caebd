"""ELAN (.eaf): tiers of time-aligned annotations, in milliseconds; one video a file.

A class is a tier with its name, and an annotation's text is the class; instances that overlap others of their class are
in further tiers, since those of one tier must not overlap. When reading, the text is the label, or the tier's name
where there is no text.
"""

from xml.etree.ElementTree import Element, SubElement

from wtal.annotations import Annotations
from wtal.errors import InputError
from wtal.formats.form import FormatHints, name_of
from wtal.formats.rows import Row, RowReader, in_time, in_writing_order, warn
from wtal.formats.xml import xml_text

TITLE = "ELAN"
KIND = "xml"
HOLDS = frozenset[str]()
_NAME = "wtal:video"
_XSI = "{http://www.w3.org/2001/XMLSchema-instance}noNamespaceSchemaLocation"


def read(content: Element, rows: RowReader, given: FormatHints) -> bool:
    """The annotations that are aligned to time; those that refer to others are counted and left out."""
    if content.tag != "ANNOTATION_DOCUMENT":
        raise InputError(f"{rows.path} is not an ELAN file: it begins with <{content.tag}>, not <ANNOTATION_DOCUMENT>")
    unit = content.find("HEADER")
    if unit is not None and unit.get("TIME_UNITS", "milliseconds") != "milliseconds":
        raise InputError(f"{rows.path} counts in {unit.get('TIME_UNITS')}; wanted milliseconds")
    video = _video(content) or given.video
    rows.video(video)
    times = {slot.get("TIME_SLOT_ID"): slot.get("TIME_VALUE") for slot in content.iter("TIME_SLOT")}
    untimed = 0
    for tier in content.iter("TIER"):
        untimed += len(tier.findall(".//REF_ANNOTATION"))
        for one in tier.iter("ALIGNABLE_ANNOTATION"):
            start, end = (times.get(one.get(f"TIME_SLOT_REF{i}")) for i in (1, 2))
            if start is None or end is None:
                untimed += 1
                continue
            where = f"annotation {one.get('ANNOTATION_ID')} of tier {tier.get('TIER_ID')}"
            label = one.findtext("ANNOTATION_VALUE") or tier.get("TIER_ID")
            rows.add(video, label, _seconds(start, rows, where), _seconds(end, rows, where), where=where)
    if untimed:
        warn(f"{rows.path}: left out {untimed} annotation(s) that have no times of their own")
    return False


def write(content: Annotations, given: FormatHints) -> str:
    """A document with a tier for each class."""
    ((name, rows),) = in_writing_order(content)
    media = given.media_of(name)
    root = Element("ANNOTATION_DOCUMENT", AUTHOR="wtal", DATE="1970-01-01T00:00:00+00:00", FORMAT="3.0", VERSION="3.0")
    root.set(_XSI, "http://www.mpi.nl/tools/elan/EAFv3.0.xsd")
    header = SubElement(root, "HEADER", MEDIA_FILE="", TIME_UNITS="milliseconds")
    SubElement(header, "MEDIA_DESCRIPTOR", MEDIA_URL=media, MIME_TYPE="video/*", RELATIVE_MEDIA_URL=media)
    SubElement(header, "PROPERTY", NAME=_NAME).text = name
    order = SubElement(root, "TIME_ORDER")
    times: list[tuple[int, str]] = []
    count = 0
    for tier_name, tier_rows in _tiers(rows).items():
        tier = SubElement(root, "TIER", LINGUISTIC_TYPE_REF="default-lt", TIER_ID=tier_name)
        for label, start, end, _ in tier_rows:
            count += 1
            slots = [f"ts{2 * count - 1}", f"ts{2 * count}"]
            times += zip(_milliseconds(start, end), slots, strict=True)
            annotation = SubElement(SubElement(tier, "ANNOTATION"), "ALIGNABLE_ANNOTATION", ANNOTATION_ID=f"a{count}")
            annotation.set("TIME_SLOT_REF1", slots[0])
            annotation.set("TIME_SLOT_REF2", slots[1])
            SubElement(annotation, "ANNOTATION_VALUE").text = label
    for at, slot in sorted(times):
        SubElement(order, "TIME_SLOT", TIME_SLOT_ID=slot, TIME_VALUE=str(at))
    SubElement(
        root, "LINGUISTIC_TYPE", GRAPHIC_REFERENCES="false", LINGUISTIC_TYPE_ID="default-lt", TIME_ALIGNABLE="true"
    )
    return xml_text(root)


def _video(content: Element) -> str | None:
    """The name of the video, if the file says it."""
    ours = content.find(f"HEADER/PROPERTY[@NAME='{_NAME}']")
    if ours is not None and ours.text:
        return ours.text
    media = content.find("HEADER/MEDIA_DESCRIPTOR")
    return None if media is None else name_of(media.get("MEDIA_URL") or media.get("RELATIVE_MEDIA_URL") or "") or None


def _seconds(milliseconds: str, rows: RowReader, where: str) -> float:
    try:
        return int(milliseconds) / 1000
    except ValueError:
        raise InputError(f"{rows.path}: {where} is at {milliseconds!r}, which is no time in milliseconds") from None


def _milliseconds(start: float, end: float) -> tuple[int, int]:
    first = max(0, round(start * 1000))
    return first, max(first + 1, round(end * 1000))


def _tiers(rows: list[Row]) -> dict[str, list[Row]]:
    """The rows of each tier by its name; none overlaps another of its tier."""
    lanes: dict[str, list[list[Row]]] = {}
    for row in in_time(rows):
        of_class = lanes.setdefault(row[0], [])
        free = (lane for lane in of_class if _milliseconds(*lane[-1][1:3])[1] <= _milliseconds(*row[1:3])[0])
        lane = next(free, None)
        if lane is None:
            of_class.append(lane := [])
        lane.append(row)
    tiers: dict[str, list[Row]] = {label: of_class[0] for label, of_class in sorted(lanes.items())}
    for label, of_class in sorted(lanes.items()):
        for number, lane in enumerate(of_class[1:], start=2):
            name = f"{label} {number}"
            while name in tiers:  # a class of that name
                name += "'"
            tiers[name] = lane
    return tiers
