"""Videos come to the byte, only from the folder that was given, and in a form that browsers play."""

import sys

import numpy as np
import pytest

from videos import write_video
from wtal.serve.app import Media
from wtal.video.decode import probe, read_pictures
from wtal.video.playable import browser_type, playable

GREYS = np.linspace(20, 220, 40)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("videos")
    write_video(folder / "plays.mp4", GREYS)
    write_video(folder / "inside" / "old.avi", GREYS, codec="mpeg4")
    outside = tmp_path_factory.mktemp("outside")
    write_video(outside / "secret.mp4", GREYS[:2])
    (folder / "link.mp4").symlink_to(outside / "secret.mp4")
    (folder / "link").symlink_to(outside)
    (folder / "within.mp4").symlink_to(folder / "plays.mp4")
    return folder


@pytest.fixture
def media(folder, tmp_path):
    return Media(folder, tmp_path / "cache")


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        ("bytes=0-0", slice(0, 1)),
        ("bytes=3-9", slice(3, 10)),
        ("bytes=100-", slice(100, None)),
        ("bytes=-7", slice(-7, None)),
        ("bytes=10-99999999", slice(10, None)),
        ("bytes=-99999999", slice(0, None)),
        ("bytes=3-9,5-20", slice(3, 21)),  # what overlaps is one
    ],
)
def test_ranges_are_right_to_the_byte(client, media, folder, asked, part):
    whole = (folder / "plays.mp4").read_bytes()
    answer = client(media=media).get("/media?name=plays", headers={"range": asked})
    wanted = whole[part]
    start = whole.index(wanted)
    assert answer.status_code == 206
    assert answer.content == wanted
    assert answer.headers["content-range"] == f"bytes {start}-{start + len(wanted) - 1}/{len(whole)}"
    assert answer.headers["content-length"] == str(len(wanted))


def test_several_ranges_come_in_parts(client, media, folder):
    whole = (folder / "plays.mp4").read_bytes()
    answer = client(media=media).get("/media?name=plays", headers={"range": "bytes=0-3,50-59"})
    assert answer.status_code == 206
    boundary = answer.headers["content-type"].removeprefix("multipart/byteranges; boundary=").encode()
    parts = [
        part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n") for part in answer.content.split(b"--" + boundary)[1:-1]
    ]
    assert parts == [whole[:4], whole[50:60]]


def test_a_range_beyond_the_end_is_416_with_the_length(client, media, folder):
    size = (folder / "plays.mp4").stat().st_size
    for asked in (f"bytes={size}-", f"bytes={size + 5}-{size + 9}", "bytes=-0"):
        answer = client(media=media).get("/media?name=plays", headers={"range": asked})
        assert (answer.status_code, answer.headers["content-range"]) == (416, f"bytes */{size}")


def test_the_whole_file_and_its_head(client, media, folder):
    whole = (folder / "plays.mp4").read_bytes()
    answer = client(media=media).get("/media?name=plays")
    assert (answer.status_code, answer.content) == (200, whole)
    assert (answer.headers["content-type"], answer.headers["accept-ranges"]) == ("video/mp4", "bytes")
    assert client(media=media).head("/media?name=plays").headers["content-length"] == str(len(whole))


@pytest.mark.parametrize(
    "name",
    [
        "link",
        "secret",
        "../videos/plays",
        "..%2Fplays",
        "/etc/passwd",
        "plays.mp4",
        "inside/old",
        "",
        "a\x00b",
        "link/secret",
    ],
)
def test_nothing_outside_the_folder_is_served(client, media, name):
    assert client(media=media).get("/media", params={"name": name}).status_code == 404


def test_a_file_that_becomes_a_link_out_is_not_served_any_more(client, folder, tmp_path):
    write_video(tmp_path / "videos" / "a.mp4", GREYS[:2])
    open_client = client(media=Media(tmp_path / "videos"))
    assert open_client.get("/media?name=a").status_code == 200
    (tmp_path / "videos" / "a.mp4").unlink()
    (tmp_path / "videos" / "a.mp4").symlink_to(folder / "plays.mp4")
    assert open_client.get("/media?name=a").status_code == 404


def test_a_link_within_the_folder_is_fine(client, media, folder):
    assert client(media=media).get("/media?name=within").content == (folder / "plays.mp4").read_bytes()


def test_without_a_folder_there_is_no_video(client):
    assert client().get("/media?name=plays").status_code == 404
    assert client().get("/api/video?run=tiny&name=test_00000").json()["video"] == {"url": None, "type": None}


@pytest.mark.parametrize(
    "path", ["/static/../page.py", "/static/..%2fpage.py", "/static/%2e%2e/page.py", "/static//etc/passwd"]
)
def test_only_the_front_end_is_static(client, path):
    answer = client().get(path)
    assert answer.status_code == 404
    assert "import" not in answer.text


def test_what_browsers_do_not_play_is_copied_once_on_the_same_clock(client, media, folder, tmp_path):
    open_client = client(media=media)
    answer = open_client.get("/media?name=old")
    assert answer.headers["content-type"] == "video/mp4"
    (copy,) = (tmp_path / "cache").iterdir()
    assert answer.content == copy.read_bytes()
    assert browser_type(folder / "inside" / "old.avi") is None
    assert browser_type(copy) == "video/mp4"
    shown, made = (
        [float(picture.pixels.mean()) for picture in read_pictures(path, fps=25)]
        for path in (folder / "inside" / "old.avi", copy)
    )
    assert len(shown) == len(made)
    np.testing.assert_allclose(made, shown, atol=4)
    before = copy.stat().st_mtime_ns
    assert open_client.get("/media?name=old", headers={"range": "bytes=0-3"}).content == copy.read_bytes()[:4]
    assert copy.stat().st_mtime_ns == before


def test_a_copy_has_the_sound(tmp_path):
    write_video(tmp_path / "a.mkv", GREYS, sound_s=1.5)
    copy, kind = playable(tmp_path / "a.mkv", tmp_path / "cache")
    import av

    with av.open(str(copy)) as container:
        assert {stream.codec_context.name for stream in container.streams} == {"h264", "aac"}
        heard = sum(frame.samples / frame.sample_rate for frame in container.decode(audio=0))
    assert kind == "video/mp4"
    assert heard == pytest.approx(1.5, abs=0.1)


def test_odd_sizes_and_a_half_made_copy(tmp_path):
    write_video(tmp_path / "a.avi", GREYS[:5], codec="mpeg4", size=(51, 37))
    cache = tmp_path / "cache"
    copy, _ = playable(tmp_path / "a.avi", cache)
    assert (probe(copy).width, probe(copy).height) == (50, 36)


def test_without_a_decoder_endings_are_believed(client, folder, media, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    assert client(media=media).get("/media?name=plays").content == (folder / "plays.mp4").read_bytes()
    answer = client(media=media).get("/media?name=old")
    assert answer.status_code == 501
    assert "wtal[video]" in answer.json()["error"]


def test_a_broken_file_is_an_answer_not_a_crash(client, tmp_path):
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "a.avi").write_bytes(b"no video")
    answer = client(media=Media(tmp_path / "videos", tmp_path / "cache")).get("/media?name=a")
    assert answer.status_code == 400
    assert "not a video" in answer.json()["error"]
    assert not list((tmp_path / "cache").glob("*"))
