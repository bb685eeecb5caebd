"""Activation maps of many videos in one file, with every digit: what each stream of a model says of each video."""

from collections.abc import Mapping
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from jaxtyping import Float

from wtal.errors import InputError
from wtal.files import written_whole
from wtal.formats.tcam import VideoMap

Maps = Mapping[str, tuple[VideoMap, ...]]
"""The maps of each video by its name, one per stream."""


def write_maps(path: Path, maps: Maps) -> None:
    """Write maps so that `read_maps` gives them back equal."""
    flat = [one for streams in maps.values() for one in streams]
    attention = [np.full(len(one.tcam), np.nan) if one.attention is None else one.attention for one in flat]
    with written_whole(path, "wb") as file:
        np.savez_compressed(
            file,
            names=np.array([one.name for one in flat], dtype=str),
            lengths=np.array([len(one.tcam) for one in flat], dtype=np.int64),
            weights=np.array([one.weight for one in flat]),
            tcam=np.concatenate([one.tcam for one in flat]),
            video_scores=np.stack([one.video_scores for one in flat]),
            attention=np.concatenate(attention),
        )


def read_maps(path: Path) -> dict[str, tuple[VideoMap, ...]]:
    """The maps in a file; an error names it."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            ends = np.cumsum(file["lengths"])[:-1]
            parts = zip(
                file["names"].tolist(),
                np.split(file["tcam"], ends),
                file["video_scores"],
                np.split(file["attention"], ends),
                file["weights"].tolist(),
                strict=True,
            )
            maps: dict[str, list[VideoMap]] = {}
            for name, tcam, scores, attention, weight in parts:
                known = None if np.isnan(attention).any() else attention
                maps.setdefault(name, []).append(VideoMap(name, tcam, scores, known, weight))
    except (OSError, EOFError, ValueError, KeyError, BadZipFile) as error:
        raise InputError(f"{path}: not readable maps ({error}); delete it, and it is made again") from error
    return {name: tuple(streams) for name, streams in maps.items()}


def mean_map(streams: tuple[VideoMap, ...]) -> Float[np.ndarray, "t c"]:
    """The streams' activations as one, by their weights."""
    total = sum(one.weight for one in streams)
    return np.sum([one.weight / total * one.tcam for one in streams], axis=0)
