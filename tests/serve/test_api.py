"""The list and the payloads: what the library says, sorted, searched, and with other settings."""

from dataclasses import replace

import numpy as np
import pytest

from wtal.annotations import Annotations
from wtal.evaluate import prepare, video_precision
from wtal.localize import Localizer
from wtal.view.payload import changed

SETTINGS = [
    {},
    {"temperature": 0.5},
    {"threshold": 0.7, "evidence": 0.5},
    {"levels": (0.05, 0.1, 0.3)},
    {"combine": "nms", "threshold": 0.3},
    {"template": "uniform", "temperature": 0.01},
]


def shown(instances):
    return [(one["start"], one["end"], one["label"], one["score"]) for one in instances]


def wanted(found, classes):
    scores = np.maximum(found.scores, 0)
    rows = zip(*found.segments.round(3).T.tolist(), found.class_ids, scores.round(3).tolist(), strict=True)
    return [(start, end, classes[label], score) for start, end, label, score in rows]


def query(settings):
    return {name: ",".join(map(str, value)) if name == "levels" else value for name, value in settings.items()}


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_live_settings_give_exactly_what_the_library_gives(client, runs, store, settings):
    localizer = Localizer.load(runs["tiny"])
    proposer = changed(localizer.card.proposer, **settings)
    for name in store.names()[:4]:
        answer = client().get("/api/video", params={"run": "tiny", "name": name, **query(settings)}).json()
        clock, duration_s = store.timebase(name), store.duration_s(name)
        found = localizer(store.features(name), clock, duration_s=duration_s, proposer=proposer)
        assert shown(answer["instances"]) == wanted(found, store.classes)
    assert answer["settings"]["combine"] == settings.get("combine", "fusion")


@pytest.mark.parametrize("settings", SETTINGS[:4], ids=str)
def test_of_a_pair_the_settings_are_the_teachers(client, runs, store, settings):
    pair = Localizer.load(runs["pair"])
    (teacher,) = pair.teachers
    card = replace(teacher.card, proposer=changed(teacher.card.proposer, **settings))
    pair = replace(pair, teachers=(replace(teacher, card=card),))
    for name in store.names()[:3]:
        answer = client("pair").get("/api/video", params={"run": "pair", "name": name, **query(settings)}).json()
        found = pair(store.features(name), store.timebase(name), duration_s=store.duration_s(name))
        assert shown(answer["instances"]) == wanted(found, store.classes)
    if "temperature" in settings:
        assert answer["settings"]["temperature"] == settings["temperature"]


@pytest.mark.parametrize(
    "bad",
    [
        {"temperature": "0"},
        {"temperature": "hot"},
        {"temperature": "nan"},
        {"threshold": "2"},
        {"evidence": "-1"},
        {"levels": ""},
        {"levels": "0.1,inf"},
        {"levels": ",".join(["0.1"] * 1000)},
        {"template": "triangle"},
        {"combine": "soft_nms"},
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(client, bad):
    answer = client().get("/api/video", params={"run": "tiny", "name": "test_00000", **bad})
    assert answer.status_code == 400
    assert next(iter(bad)) in answer.json()["error"]


def test_unknown_runs_and_videos_are_404(client):
    assert client().get("/api/video?run=tiny&name=nothing").status_code == 404
    assert "did you mean tiny?" in client().get("/api/video?run=tinny&name=test_00000").json()["error"]
    assert client().get("/api/video?run=tiny").status_code == 404
    assert client().get("/elsewhere").status_code == 404


def test_the_list_has_every_video_of_every_run_once(client, store):
    answer = client("tiny", "pair").get("/api/videos?limit=500&sort=name").json()
    rows = [(row["name"], row["run"]) for row in answer["videos"]]
    assert answer["total"] == len(rows) == 2 * len(store)
    assert rows == sorted((name, run) for name in store.names() for run in ("tiny", "pair"))


@pytest.mark.parametrize(("sort", "key"), [("doubt", "doubt"), ("errors", "errors")])
def test_the_worst_come_first(client, sort, key):
    rows = client().get(f"/api/videos?limit=500&sort={sort}").json()["videos"]
    values = [row[key] for row in rows]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]
    assert all(0 <= row["doubt"] <= 1 for row in rows)


def test_pages_make_up_the_whole(client):
    open_client = client()
    whole = open_client.get("/api/videos?limit=500").json()["videos"]
    parts = [open_client.get(f"/api/videos?limit=5&offset={at}").json() for at in range(0, len(whole) + 5, 5)]
    assert [row for part in parts for row in part["videos"]] == whole
    assert {part["total"] for part in parts} == {len(whole)}


def test_search_looks_at_names_and_tags(client, store):
    def found(text):
        return {row["name"] for row in client().get("/api/videos", params={"q": text, "limit": 500}).json()["videos"]}

    assert found("TEST_") == set(store.names("test"))
    assert found("train 00001") == {"train_00001", *(n for n in store.names("train") if n.startswith("train_00001"))}
    tagged = {name for name in store.names() if "action 2" in store.records[name].tags}
    assert found("action 2") >= tagged
    assert found("no such thing") == set()


@pytest.mark.parametrize("bad", ["sort=size", "limit=0", "limit=501", "limit=ten", "offset=-1", "limit=99999999999"])
def test_a_list_that_cannot_be_is_refused(client, bad):
    assert client().get(f"/api/videos?{bad}").status_code == 400


def test_precision_in_the_list_is_the_evaluations(client, served, store):
    truth = store.truth()
    everything = Annotations(truth.classes, {name: replace(one, split="all") for name, one in truth.videos.items()})
    case = prepare(dict(served["tiny"].found), everything, protocol="thumos14", split="all")
    rows = client().get("/api/videos?limit=500").json()["videos"]
    listed = {row["name"]: row["ap"] for row in rows if row["ap"] is not None}
    assert listed == {name: round(ap, 1) for name, ap in video_precision(case).items()}
