"""Corrections are saved whole, by revision, with their history, and over nothing else."""

import json
import threading
from multiprocessing import get_context
from pathlib import Path

import pytest

from wtal.corrections import Correction, Corrections, Segment, StaleError
from wtal.errors import InputError
from wtal.formats import read_annotations, write_predictions
from wtal.instances import Instances

RUN = Segment(1.0, 2.5, "Run", "moved")


def correction(revision=0, *segments, done=False):
    return Correction(revision, segments, done, "train", 60.0)


def test_what_is_saved_is_there_again_and_is_annotations(tmp_path):
    first = Corrections(tmp_path / "c.json")
    assert first.save("a", correction(0, RUN, done=True)) == 1
    assert first.save("b", correction(0)) == 1
    again = Corrections(tmp_path / "c.json").videos()
    assert again["a"] == Correction(1, (RUN,), True, "train", 60.0)
    read = read_annotations(tmp_path / "c.json")
    assert read.videos["a"].instances.segments.tolist() == [[1.0, 2.5]]
    assert len(read.videos["b"].instances) == 0


def test_a_stale_save_changes_nothing(tmp_path):
    one, other = Corrections(tmp_path / "c.json"), Corrections(tmp_path / "c.json")
    one.save("a", correction(0, RUN))
    with pytest.raises(StaleError, match="revision 1 is the newest"):
        other.save("a", correction(0))
    assert other.videos()["a"].segments == (RUN,)
    assert other.save("a", correction(1)) == 2
    assert one.videos()["a"].revision == 2


def test_every_save_is_in_the_history_even_after_one_was_cut_off(tmp_path):
    corrections = Corrections(tmp_path / "c.json")
    corrections.save("a", correction(0, RUN))
    with corrections.history.open("a") as file:
        file.write('{"video": "a", "revi')  # killed while writing
    corrections.save("a", correction(1))
    lines = corrections.history.read_text().splitlines()
    assert [json.loads(lines[n])["revision"] for n in (0, 2)] == [1, 2]
    assert json.loads(lines[0])["segments"] == [{"start": 1.0, "end": 2.5, "label": "Run", "origin": "moved"}]


def _save_many(path, name, count):
    corrections, stale = Corrections(Path(path)), 0
    for _ in range(count):
        while True:
            now = corrections.videos().get(name)
            try:
                corrections.save(name, correction(now.revision if now else 0, RUN))
                break
            except StaleError:
                stale += 1


def test_two_servers_on_one_file_lose_no_save(tmp_path):
    """Two processes with threads each, on the same video and on different ones."""
    path, count = tmp_path / "c.json", 6
    context = get_context("fork")
    others = [context.Process(target=_save_many, args=(str(path), name, count)) for name in ("shared", "theirs")]
    mine = [threading.Thread(target=_save_many, args=(str(path), name, count)) for name in ("shared", "ours")]
    for one in (*others, *mine):
        one.start()
    for one in (*others, *mine):
        one.join()
    videos = Corrections(path).videos()
    assert {name: one.revision for name, one in videos.items()} == {"shared": 12, "ours": 6, "theirs": 6}
    assert len(path.with_name("c.json.history.jsonl").read_text().splitlines()) == 24
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["c.json", "c.json.history.jsonl"]


@pytest.mark.parametrize("content", ["predictions", "truth", "[]", "no JSON"])
def test_nothing_else_is_written_over(tmp_path, content):
    path = tmp_path / "found.json"
    if content == "predictions":
        write_predictions(path, {"a": Instances([[1.0, 2.0]])}, ["Run"])
    elif content == "truth":
        path.write_text('{"database": {"a": {"subset": "test", "annotations": []}}}')
    else:
        path.write_text(content)
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"found\.json"):
        Corrections(path)
    assert path.read_bytes() == before


def test_a_file_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        Corrections(tmp_path / "file" / "c.json").save("a", correction())


GOOD = {"start": 1.0, "end": 2.0, "label": "action 1", "origin": "accepted"}


def put(client, segments, revision=0, name="train_00000", **more):
    body = {"revision": revision, "segments": segments, **more}
    return client.put("/api/corrections", params={"name": name}, json=body)


def test_the_server_saves_and_tells_stale_ones(client, tmp_path):
    corrections = Corrections(tmp_path / "c.json")
    open_client = client(corrections=corrections)
    assert open_client.get("/api/corrections?name=train_00000").json() == {
        "revision": 0,
        "segments": None,
        "done": False,
    }
    assert put(open_client, [GOOD], done=True).json() == {"revision": 1}
    assert open_client.get("/api/corrections?name=train_00000").json() == {
        "revision": 1,
        "segments": [GOOD],
        "done": True,
    }
    assert put(open_client, []).status_code == 409
    assert put(open_client, [], revision=1).json() == {"revision": 2}
    assert corrections.videos()["train_00000"].split == "train"
    rows = open_client.get("/api/videos?q=train_00000").json()["videos"]
    assert [row["corrected"] for row in rows] == [True]


def test_without_edit_nothing_is_written(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert put(client(), [GOOD]).status_code == 403
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "bad",
    [
        {"start": 2.0, "end": 1.0},
        {"start": -1.0},
        {"end": 1e6},
        {"end": float("1e400")},
        {"start": "1"},
        {"start": True},
        {"label": "nothing"},
        {"label": ["action 1"]},
        {"origin": "guessed"},
    ],
)
def test_segments_that_make_no_sense_are_refused(client, tmp_path, bad):
    open_client = client(corrections=Corrections(tmp_path / "c.json"))
    body = json.dumps({"revision": 0, "segments": [GOOD | bad]})
    answer = open_client.put(
        "/api/corrections?name=train_00000", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400
    assert "segment 0" in answer.json()["error"]
    assert not (tmp_path / "c.json").exists()


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff", b'{"revision": "0", "segments": []}', b'{"revision": 0}', b"[" * 100_000]
)
def test_bodies_that_are_no_correction_are_refused(client, tmp_path, body):
    open_client = client(corrections=Corrections(tmp_path / "c.json"))
    answer = open_client.put(
        "/api/corrections?name=train_00000", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400
    assert not (tmp_path / "c.json").exists()


def test_a_body_without_an_end_is_answered_with_413(client, tmp_path):
    open_client = client(corrections=Corrections(tmp_path / "c.json"))
    parts = (b" " * 100_000 for _ in range(20))
    headers = {"content-type": "application/json"}
    assert open_client.put("/api/corrections?name=train_00000", content=parts, headers=headers).status_code == 413


def test_only_known_videos_are_corrected(client, tmp_path):
    open_client = client(corrections=Corrections(tmp_path / "c.json"))
    assert put(open_client, [], name="../../etc/passwd").status_code == 404
    assert not (tmp_path / "c.json").exists()
