"""What people see of results: one record or many, texts, timelines, tables."""

import pickle
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given

from strategies import instances
from wtal import RECOMMENDED, make_targets
from wtal.annotations import Annotations, Video
from wtal.errors import InputError
from wtal.evaluate import score
from wtal.instances import Instance, Instances

NAMES = ("Run", "<script>alert(1)</script>", 'Läufer & "Co"')
TWO = Instances([[4.0, 9.5], [1.0, 2.0]], [0.25, 0.75], [0, 1], names=NAMES)


@given(found=instances())
def test_iteration_and_indices_give_the_same_records(found):
    named = found.named(NAMES)
    records = list(named)
    assert records == [named[i] for i in range(len(found))] == [named[np.int64(i)] for i in range(len(found))]
    assert [(r.start, r.end) for r in records] == [tuple(row) for row in found.segments.tolist()]
    assert [r.name for r in records] == [NAMES[number] for number in found.class_ids]
    with pytest.raises(IndexError):
        named[len(found)]


def test_names_stay_with_the_instances():
    assert TWO[0] == Instance(4.0, 9.5, 0.25, 0, "Run")
    for other in (TWO[:1], TWO.sorted(), TWO.scored(np.ones(2)), TWO.of_class(1), Instances.concat([TWO, TWO])):
        assert other.names == NAMES
    assert Instances.concat([TWO, TWO.named(["a", "b"])]).names is None
    assert pickle.loads(pickle.dumps(TWO)).names == NAMES
    assert Instances.unchecked(TWO.segments, TWO.scores, TWO.class_ids, "seconds").names is None
    with pytest.raises(InputError, match="there are 1 names, but an instance of class number 1"):
        TWO.named(["Run"])


def test_texts_are_short_and_say_what_is_there():
    assert repr(TWO) == f"Instances(2, in seconds: 4–9.5 Run 0.25; 1–2 {NAMES[1]} 0.75)"
    many = Instances(np.column_stack([np.arange(1000.0), np.arange(1000.0) + 1]), unit="snippets")
    assert repr(many).endswith("; 996 more)")
    assert len(repr(many)) < 120
    assert repr(Instances.empty()) == "Instances(0, in seconds)"


def drawn(html: str) -> ElementTree.Element:
    """The elements of what a notebook shows, which must be well-formed and free of anything that runs."""
    root = ElementTree.fromstring(f"<body>{html}</body>")
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert not tags & {"script", "iframe", "img", "a", "foreignObject", "image", "use"}
    assert not any(key.lower().startswith("on") or "href" in key for element in root.iter() for key in element.attrib)
    return root


def shapes(root: ElementTree.Element, tag: str) -> list[ElementTree.Element]:
    return [element for element in root.iter() if element.tag.rpartition("}")[2] == tag]


def test_a_timeline_has_a_bar_for_each_instance():
    root = drawn(TWO._repr_html_())
    first, second = shapes(root, "rect")
    assert [first.find(".//*").text, second.find(".//*").text] == [
        "Run 4–9.5 seconds, score 0.25",
        f"{NAMES[1]} 1–2 seconds, score 0.75",
    ]
    scale = float(first.get("width")) / 5.5
    assert float(second.get("width")) == pytest.approx(scale, rel=0.02)
    assert float(first.get("x")) - float(second.get("x")) == pytest.approx(3 * scale, rel=0.02)
    assert float(first.get("fill-opacity")) < float(second.get("fill-opacity"))
    drawn(Instances.empty()._repr_html_())
    drawn(Instances([[0.0, 1e-6]])._repr_html_())


def test_proposals_targets_and_scores_show_themselves():
    tcam = np.full((60, 2), 0.001)
    tcam[10:20, 0], tcam[30:44, 1] = 0.8, 0.6
    found = RECOMMENDED(tcam, np.array([0.9, 0.8]))
    assert repr(found).startswith(f"Proposals(Instances({len(found.instances)}, in snippets")
    assert f"{len(found.candidates.instances)} candidates" in repr(found)
    drawn(found._repr_html_())
    targets = make_targets(found.instances, 60, 2)
    assert "60 snippets × 2 classes" in repr(targets)
    assert len(shapes(drawn(targets._repr_html_()), "path")) == 2
    truth = Annotations(NAMES[:2], {"a": Video("test", 60.0, TWO)})
    scored = score({"a": TWO}, truth, protocol="thumos14")
    assert "Score(thumos14: mAP 100.0 over tIoU" in repr(scored)
    cells = [cell.text for cell in shapes(drawn(scored._repr_html_()), "td")]
    assert NAMES[1] in cells
    assert cells.count("100.0") == 3 * len(scored.tiou)


def test_tables_for_pandas():
    pandas = pytest.importorskip("pandas")
    frame = TWO.to_pandas()
    assert frame.columns.tolist() == ["start", "end", "label", "score", "class_id"]
    assert frame.loc[0].tolist() == [4.0, 9.5, "Run", 0.25, 0]
    assert TWO[:0].to_pandas().empty
    targets = make_targets(Instances([[2.0, 6.0]], [0.8], [1], unit="snippets"), 8, 2)
    assert targets.to_pandas(["a", "b"])["b"].round(6).tolist() == [0, 0, 0.8, 0.8, 0.8, 0.8, 0, 0]
    truth = Annotations(NAMES[:2], {"a": Video("test", 60.0, TWO)})
    scored = score({"a": TWO}, truth, protocol="thumos14").to_pandas()
    assert isinstance(scored, pandas.DataFrame)
    assert (scored.loc["Run"] == 100).all()


def test_without_pandas_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        TWO.to_pandas()
