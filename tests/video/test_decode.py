"""Files as people have them: whatever the container, rate or damage, picture k is what is shown at second k / fps."""

import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from videos import brightness_of, write_video
from wtal.errors import InputError
from wtal.video.decode import Geometry, probe, read_pictures

GREYS = [2 * i for i in range(100)]


@pytest.mark.parametrize(
    ("name", "codec"),
    [("a.mp4", "libx264"), ("a.mkv", "libx264"), ("a.avi", "mpeg4"), ("a.webm", "libvpx"), ("a.mov", "mjpeg")],
)
def test_every_frame_comes_once_at_its_own_rate(make_video, name, codec):
    path = make_video(name, GREYS, codec=codec, pix_fmt="yuvj420p" if codec == "mjpeg" else "yuv420p")
    seen = brightness_of(read_pictures(path))
    assert len(seen) == 100
    assert np.abs(np.array(seen) - np.arange(100)).max() <= 2
    info = probe(path)
    assert (info.width, info.height) == (64, 48)
    assert info.duration_s == pytest.approx(4.0, abs=0.05)


@pytest.mark.parametrize("fps", [10, 24, 30000 / 1001, 50, 60])
def test_other_rates_are_timed_anew(make_video, fps):
    path = make_video("a.mp4", GREYS, fps=fps)
    seen = np.array(brightness_of(read_pictures(path)))
    assert len(seen) == pytest.approx(100 / fps * 25, abs=1)
    shown = np.floor((np.arange(len(seen)) + 0.5) / 25 * fps)  # what a player shows in the middle of each interval
    assert np.abs(seen - np.clip(shown, 0, 99)).max() <= 1


def test_variable_rate_follows_the_presentation_times(make_video):
    # half a second at 50 fps, a still of two seconds, then 10 fps
    times = [*np.arange(25) / 50, *(2.5 + np.arange(10) / 10)]
    path = make_video("a.mkv", [6 * i for i in range(35)], times_s=times)
    seen = [round(b / 3) for b in brightness_of(read_pictures(path))]
    middle = (np.arange(len(seen)) + 0.5) / 25
    wanted = np.searchsorted(times, middle + 1e-3, side="right") - 1
    assert len(seen) >= 85
    assert np.abs(np.array(seen) - wanted).max() <= 1
    assert seen[20:60] == [24] * 40


def test_pictures_that_start_after_the_sound_keep_the_players_clock(make_video):
    path = make_video("a.mkv", GREYS[:25], times_s=1 + np.arange(25) / 25, sound_s=3.0)
    seen = brightness_of(read_pictures(path))
    assert seen[:25] == [0] * 25
    assert abs(seen[35] - 10) <= 1


def test_a_stream_without_any_times_is_taken_at_its_rate(make_video):
    path = make_video("a.h264", GREYS)
    seen = np.array(brightness_of(read_pictures(path)))
    assert len(seen) == 100
    assert np.abs(seen - np.arange(100)).max() <= 2
    assert probe(path).duration_s is None


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_a_rotated_recording_comes_out_upright(make_video, turn):
    path = make_video("a.mp4", [40] * 5, size=(64, 48), marked_corner=True)
    _rotate(path, turn)
    picture = next(iter(read_pictures(path, geometry=Geometry(48, None)))).pixels
    assert picture.shape[:2] == ((48, 64) if turn in (0, 180) else (64, 48))
    h, w = picture.shape[:2]
    corners = {
        0: picture[h // 4, w // 4],
        90: picture[h // 4, -w // 4],
        180: picture[-h // 4, -w // 4],
        270: picture[-h // 4, w // 4],
    }  # turned clockwise, the upper left corner goes to the upper right
    bright = {angle: int(pixel.mean()) for angle, pixel in corners.items()}
    assert max(bright, key=lambda angle: bright[angle]) == turn
    assert bright[turn] > 200 > 100 > sorted(bright.values())[-2]


def _rotate(path: Path, turn: int) -> None:
    """Write the matrix of a clockwise turn into the track header, as a phone does."""
    matrix = {0: (1, 0, 0, 1), 90: (0, 1, -1, 0), 180: (-1, 0, 0, -1), 270: (0, -1, 1, 0)}[turn]
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 4 + 40
    a, b, c, d = (value << 16 for value in matrix)
    struct.pack_into(">9i", data, at, a, b, 0, c, d, 0, 0, 0, 1 << 30)
    path.write_bytes(data)


@pytest.mark.parametrize("size", [(65, 49), (17, 33), (10, 200)])
def test_odd_sizes(make_video, size):
    path = make_video("a.mkv", [100] * 3, size=size, codec="ffv1", pix_fmt="yuv444p")
    assert [p.pixels.shape for p in read_pictures(path, geometry=Geometry(64, 56))] == [(56, 56, 3)] * 3
    whole = next(iter(read_pictures(path, geometry=Geometry(64, None)))).pixels
    assert min(whole.shape[:2]) == 64


def test_a_recording_that_changes_its_size_and_clock_goes_on(make_video, tmp_path):
    parts = [make_video("a.ts", [20] * 25, size=(64, 48)), make_video("b.ts", [200] * 25, size=(96, 96))]
    (tmp_path / "joined.ts").write_bytes(b"".join(part.read_bytes() for part in parts))
    pictures = [picture.pixels for picture in read_pictures(tmp_path / "joined.ts", geometry=Geometry(32, None))]
    assert {picture.shape for picture in pictures} == {(32, 43, 3)}
    assert [picture.mean() > 100 for picture in pictures] == [False] * 25 + [True] * 25


def test_memory_does_not_grow_with_the_length(make_video):
    path = make_video("a.mp4", [100] * 2000)
    peaks = []
    for stop in (100, 2000):
        tracemalloc.start()
        for index, picture in enumerate(read_pictures(path, geometry=Geometry(128, 112))):
            _ = picture.pixels
            if index == stop:
                break
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 100_000


def test_what_is_no_video_is_refused_by_name(tmp_path):
    empty, text, folder = tmp_path / "empty.mp4", tmp_path / "text.mp4", tmp_path / "folder"
    empty.touch()
    text.write_text("no video at all")
    folder.mkdir()
    sound = _sound(tmp_path / "sound.m4a")
    for path, why in (
        (empty, "empty"),
        (text, "not a video"),
        (folder, "folder"),
        (tmp_path / "nowhere.mp4", "not there"),
        (sound, "only audio"),
    ):
        for read in (probe, lambda path: next(iter(read_pictures(path)))):
            with pytest.raises(InputError, match=why) as error:
                read(path)
            assert path.name in str(error.value)


def _sound(path: Path) -> Path:
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=16000, layout="mono")
        for index in range(20):
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
            frame.sample_rate, frame.pts = 16000, index * 1024
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


@pytest.mark.parametrize(("name", "codec"), [("a.mp4", "libx264"), ("a.avi", "mpeg4")])
def test_damage_is_named_with_its_time(tmp_path, name, codec):
    rng = np.random.default_rng(0)
    path = write_video(tmp_path / name, rng.integers(0, 255, 200), codec=codec, size=(320, 240))
    data = bytearray(path.read_bytes())
    middle = slice(len(data) * 6 // 10, len(data) * 7 // 10)
    data[middle] = rng.integers(0, 256, middle.stop - middle.start, dtype=np.uint8).tobytes()
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"damaged at [1-7]\.\d+ s") as error:
        list(read_pictures(path))
    assert path.name in str(error.value)


@pytest.mark.parametrize("name", ["a.mkv", "a.avi"])
def test_a_file_that_was_cut_off_is_not_taken_for_a_short_one(make_video, name):
    rng = np.random.default_rng(0)
    path = make_video(name, rng.integers(0, 255, 400), codec="mpeg4", size=(160, 120))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match=r"ends at|damaged at"):
        list(read_pictures(path))


def test_real_clips_with_packed_frames_give_each_frame_once(ucf101):
    # DivX in AVI: the times that FFmpeg makes up for these files go back and forth
    path = ucf101 / "v_ApplyEyeMakeup_g01_c01.avi"
    pictures = list(read_pictures(path))
    assert len(pictures) == 164
    assert len({id(picture) for picture in pictures}) == 164


@pytest.mark.parametrize("fps", [0, -1, float("nan")])
def test_a_rate_that_is_none_is_refused(make_video, fps):
    with pytest.raises(InputError, match="fps"):
        next(iter(read_pictures(make_video("a.mp4", [1, 2]), fps=fps)))
