"""A million hours of video on paper: how long it takes, what it costs, and which part everything else waits for.

A discrete-event simulation of the way that `wtal extract --engine ray` goes: a bounded number of videos is under way;
each is read from storage, crosses the network, is decoded on processors, goes through the extractor on accelerators (or
processors), and its features are written. A station has a number of servers, each of which takes one video at a time.
"""

import heapq
from collections import deque
from dataclasses import dataclass, replace

import numpy as np
from rich.console import Console
from rich.table import Table

FPS, HOURS, VIDEOS = 25, 1_000_000, 40_000


@dataclass(frozen=True)
class Extractor:
    """What features cost. `frames` are those of the video that pass in a second."""

    name: str
    frames: float
    """A second on one core (`python -m benchmarks video`, two threads, halved), or on one GPU where that is assumed."""
    dims: int
    gpu: bool


EXTRACTORS = (
    Extractor("frames (Lite0), processors", 10.4 * 16 / 2, 2560, False),
    Extractor("i3d-rgb, processors", 1.7 * 16 / 2, 1024, False),
    Extractor("i3d --flow dis, processors", 0.8 * 16 / 2, 2048, False),
    Extractor("i3d-rgb, GPU", 1632, 1024, True),  # mmaction2's model zoo: I3D-R50, 1.7 videos of 320×3 frames a second
    Extractor("frames (Lite0), GPU", 8320 * 16 / 4, 2560, True),  # timm: 8 320 pictures a second; 4 of 16 are seen
)


@dataclass(frozen=True)
class Cluster:
    """What there is to do it with, and what it costs; prices are round list prices of the large clouds."""

    cores: int = 1_000
    gpus: int = 0
    storage_gbit: float = 100.0
    network_gbit: float = 100.0
    decode_frames: float = 540.0  # a core and second: 1 080 on two, 320×240 to 256 and RGB
    video_mbit: float = 1.0  # of a second of video
    core_hour: float = 0.04
    gpu_hour: float = 1.0
    tb_month: float = 23.0


def simulate(cluster: Cluster, extractor: Extractor, *, seed: int = 0) -> tuple[float, dict[str, float]]:
    """Hours that all the video takes, and the share of the time that each station is busy."""
    lengths_s = np.random.default_rng(seed).lognormal(5.5, 1.0, VIDEOS)  # a median of four minutes, a long tail
    computers = cluster.gpus if extractor.gpu else cluster.cores
    decoding_s = FPS / cluster.decode_frames if extractor.gpu else 0.0  # it is in the rate that was measured
    stations = {  # servers, and the seconds that one takes for a second of video
        "storage": (1, cluster.video_mbit / cluster.storage_gbit / 1e3),
        "network": (1, cluster.video_mbit / cluster.network_gbit / 1e3),
        "decoding": (cluster.cores, decoding_s),
        "extractor": (computers, FPS / extractor.frames),
        "writing": (1, FPS / 16 * extractor.dims * 2 * 8 / 1e9 / cluster.storage_gbit),
    }
    names = list(stations)
    free = {name: servers for name, (servers, _) in stations.items()}
    waiting: dict[str, deque[int]] = {name: deque() for name in names}
    busy_s, now_s, done_s, todo = dict.fromkeys(names, 0.0), 0.0, 0.0, deque(range(VIDEOS))
    events: list[tuple[float, int, int]] = []  # when, which station, which video

    def arrive(video: int, number: int) -> None:
        waiting[names[number]].append(video)
        serve(number)

    def serve(number: int) -> None:
        name = names[number]
        while free[name] and waiting[name]:
            free[name] -= 1
            video = waiting[name].popleft()
            takes_s = stations[name][1] * lengths_s[video]
            heapq.heappush(events, (now_s + takes_s, number, video))

    for _ in range(
        min(VIDEOS, 2 * (cluster.cores + cluster.gpus))
    ):  # back-pressure: a video begins when another has ended
        arrive(todo.popleft(), 0)
    while todo:  # the tail of the last videos is nothing beside a million hours
        now_s, number, video = heapq.heappop(events)
        free[names[number]] += 1
        busy_s[names[number]] += stations[names[number]][1] * lengths_s[video]
        if number + 1 < len(names):
            arrive(video, number + 1)
        else:
            done_s += lengths_s[video]
            arrive(todo.popleft(), 0)
        serve(number)
    shares = {name: busy_s[name] / servers / now_s for name, (servers, _) in stations.items()}
    return now_s / done_s * HOURS, shares


def run(console: Console) -> None:
    """Print time, money and the busiest station for several extractors, and where it moves as the cluster grows."""
    base = Cluster()
    table = Table(title=f"{HOURS:,} hours of video: time, features, money")
    for heading in ("extractor", "cores", "GPUs", "days", "machine hours", "features", "compute", "bottleneck"):
        table.add_column(heading, justify="left" if heading in ("extractor", "bottleneck") else "right")
    for extractor in EXTRACTORS:
        cluster = replace(base, gpus=100) if extractor.gpu else base
        hours, shares = simulate(cluster, extractor)
        used = hours * (cluster.gpus if extractor.gpu else cluster.cores)
        money = hours * (cluster.cores * cluster.core_hour + cluster.gpus * cluster.gpu_hour)
        size_tb = HOURS * 3600 * FPS / 16 * extractor.dims * 2 / 1e12
        table.add_row(
            extractor.name,
            str(cluster.cores),
            str(cluster.gpus),
            f"{hours / 24:,.1f}",
            f"{used:,.0f}",
            f"{size_tb:.0f} TB",
            f"${money:,.0f}",
            _busiest(shares),
        )
    console.print(table)
    videos_tb = HOURS * 3600 * base.video_mbit / 8 / 1e6
    console.print(f"the videos: {videos_tb:,.0f} TB, ${videos_tb * base.tb_month:,.0f} a month")
    moving = Table(title="where the bottleneck is: i3d-rgb on GPUs, 1 000 cores that decode")
    for heading in ("GPUs", "network", "days", "bottleneck", "next"):
        moving.add_column(heading, justify="left" if heading in ("bottleneck", "next") else "right")
    for gpus in (10, 100, 300, 1_000):
        for gbit in (1.0, 10.0, 100.0):
            hours, shares = simulate(replace(base, gpus=gpus, network_gbit=gbit), EXTRACTORS[3])
            order = sorted(shares, key=lambda name: -shares[name])
            moving.add_row(
                str(gpus),
                f"{gbit:g} Gbit/s",
                f"{hours / 24:,.1f}",
                _busiest(shares),
                f"{order[1]} {shares[order[1]]:.0%}",
            )
    console.print(moving)


def _busiest(shares: dict[str, float]) -> str:
    name = max(shares, key=lambda one: shares[one])
    return f"{name} {shares[name]:.0%}"
