"""Video: decoding against plain FFmpeg, snippets a second of each extractor, and what is not the network's time."""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import av
import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from wtal.video.decode import Geometry, read_pictures
from wtal.video.extractor import Extractor, Prepared
from wtal.video.flow import optical_flow
from wtal.video.frames import Frames, installed_weights
from wtal.video.i3d import I3D
from wtal.video.pipeline import VideoJob, extract_videos
from wtal.video.snippets import Sampling, SnippetFrames
from wtal.video.two_stream import TwoStream

ROUNDS = 3


def clips(folder: Path) -> tuple[list[Path], str]:
    """Real clips if they are at hand, else generated ones, and where they are from."""
    shared = os.environ.get("WTAL_SHARED")
    real = sorted(Path(shared, "videos", "ucf101").glob("*.avi"))[::4] if shared else []
    if real:
        return real, f"{len(real)} clips of UCF101, 320×240"
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (60, 80, 3), dtype=np.uint8).repeat(6, 0).repeat(8, 1)
    for number in range(4):
        with av.open(str(folder / f"{number}.mp4"), "w") as container:
            stream = container.add_stream("libx264", rate=25)
            stream.width, stream.height, stream.pix_fmt = 640, 360, "yuv420p"
            for shift in range(250):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(np.roll(noise, 3 * shift, 1), format="rgb24")))
            container.mux(stream.encode())
    return sorted(folder.glob("*.mp4")), "4 generated videos, 640×360"


def plain(path: Path) -> int:
    """Decode every frame and do nothing with it."""
    with av.open(str(path)) as container:
        container.streams.video[0].thread_type = "AUTO"
        return sum(1 for _ in container.decode(video=0))


def scaled(path: Path) -> int:
    """Decode every frame and let FFmpeg scale it and turn it into RGB, in one go."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        graph = av.filter.Graph()
        graph.link_nodes(
            graph.add_buffer(template=stream),
            graph.add("scale", "round(iw*256/ih):256:flags=bilinear"),
            graph.add("format", "rgb24"),
            graph.add("buffersink"),
        ).configure()
        count = 0
        for frame in container.decode(stream):
            graph.push(frame)
            count += graph.pull().to_ndarray().shape[0] > 0
        return count


def pictures(path: Path) -> int:
    """Decode, put on the clock, scale and cut every frame."""
    return sum(picture.pixels.shape[0] > 0 for picture in read_pictures(path, geometry=Geometry(256, 224)))


def best_rate(work: Callable[[Path], int], paths: list[Path]) -> float:
    """Frames per second, of the round that the machine disturbed least."""
    rates = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        frames = sum(map(work, paths))
        rates.append(frames / (time.perf_counter() - begin))
    return max(rates)


class Timed(Extractor):
    """An extractor that counts the seconds in its network."""

    def __init__(self, inner: Extractor) -> None:
        self.inner, self.seconds, self.snippets = inner, 0.0, 0
        self.geometry, self.batch_snippets = inner.geometry, inner.batch_snippets
        self.picks, self.prepare = inner.picks, inner.prepare  # type: ignore[method-assign]

    def vectors(self, batch: Prepared) -> np.ndarray:
        begin = time.perf_counter()
        vectors = self.inner.vectors(batch)
        self.seconds += time.perf_counter() - begin
        self.snippets += len(vectors)
        return vectors


def two_stream(streams: tuple[str, ...], flow: str = "dis") -> TwoStream:
    """I3D with random weights, which cost the same time as trained ones."""
    made = TwoStream({})
    made._networks = {stream: I3D(stream).eval() for stream in streams}
    made.streams, made.flow = dict.fromkeys(streams, 1024), flow if "flow" in streams else None
    return made


def run(console: Console) -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as folder:
        paths, source = clips(Path(folder))
        table = Table(title=f"Decoding, {source}: frames a second")
        for heading in ("", "frames/s", "of the first"):
            table.add_column(heading, justify="left" if not heading else "right")
        rates = {
            "FFmpeg, frames thrown away": plain,
            "FFmpeg, scaled to 256, RGB": scaled,
            "wtal: timed, scaled to 256, RGB, cut to 224": pictures,
        }
        rates = {title: best_rate(work, paths) for title, work in rates.items()}
        first = next(iter(rates.values()))
        for title, rate in rates.items():
            table.add_row(title, f"{rate:,.0f}", f"{rate / first:.2f}×")
        console.print(table)

        frames = next(iter(SnippetFrames(read_pictures(paths[0], geometry=Geometry(256, None)), Sampling(), range(17))))
        table = Table(title=f"Optical flow at {frames.shape[2]}×{frames.shape[1]}: frame pairs a second, one thread")
        for heading in ("", "pairs/s", "of TV-L1"):
            table.add_column(heading, justify="left" if not heading else "right")
        pairs = {"tvl1": 3, "dis": 17}
        speeds = {}
        for method, n in pairs.items():
            optical_flow(frames[:2], method)
            begin = time.perf_counter()
            optical_flow(frames[:n], method)
            speeds[method] = (n - 1) / (time.perf_counter() - begin)
        for method, speed in speeds.items():
            table.add_row(method, f"{speed:.1f}", f"{speed / speeds['tvl1']:.0f}×")
        console.print(table)

        table = Table(title=f"Extraction, {torch.get_num_threads()} threads, snippets of 16 frames (0.64 s)")
        for heading in ("extractor", "snippets/s", "× real time", "not in the network"):
            table.add_column(heading, justify="left" if heading == "extractor" else "right")
        few = paths[:2]
        extractors = {
            "frames": (Frames(installed_weights(), "cpu"), paths[:8]),
            "i3d-rgb": (two_stream(("rgb",)), few),
            "i3d, flow dis": (two_stream(("rgb", "flow")), few),
            "i3d, flow tvl1": (two_stream(("rgb", "flow"), "tvl1"), few[:1]),
        }
        for name, (inner, some) in extractors.items():
            timed = Timed(inner)
            begin = time.perf_counter()
            jobs = [VideoJob(path.stem, path) for path in some]
            for _ in extract_videos(jobs, timed, Sampling()):
                pass
            whole = time.perf_counter() - begin
            rate = timed.snippets / whole
            table.add_row(name, f"{rate:.1f}", f"{rate * 0.64:.1f}", f"{1 - timed.seconds / whole:.0%}")
        console.print(table)
