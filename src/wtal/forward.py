"""The one function from a model and videos to their activation maps: for targets in training and for the test alike.

The paper's idea is that pseudo labels and test instances are cut from the same curves. So nobody else turns a model's
output into maps.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from wtal.data.sampling import even, stretched
from wtal.errors import InputError
from wtal.instances import Instances
from wtal.maps import ActivationMap
from wtal.models.protocol import Batch, Model, Output


def activation_maps(
    model: Model,
    names: Sequence[str],
    features: Sequence[Any],
    *,
    columns: int,
    segments: int | None = None,
    for_targets: bool = False,
    seeds: Sequence[int] | None = None,
) -> list[tuple[ActivationMap, ...]]:
    """The maps of whole videos, one per stream of the model.

    The model does not see the videos' tags, and is in the mode (training or not) that the caller has put it in.

    Args:
        model: The model as it is.
        names: What the videos are called.
        features: One array (snippets, dimensions) per video.
        columns: How many columns of the TCAM are wanted: the classes, and one more with background.
        segments: How many snippets of a longer video the model is shown, evenly spread; None: all. The maps are
            stretched to all snippets again.
        for_targets: Whether to take the TCAM that the model makes pseudo labels from, where it has one of its own.
        seeds: One per video, for what is random in the model if dropout is on.
    """
    shown = [one if segments is None else one[even(len(one), segments)] for one in features]
    batch = packed(shown, next(model.parameters()).device, seeds=seeds)
    with torch.no_grad():
        output: Output = model(batch)
    return [
        tuple(_map(name, one, slice(*rows), video, len(features[video]), columns, for_targets) for one in output.maps)
        for video, (name, rows) in enumerate(zip(names, pairwise(batch.offsets), strict=True))
    ]


def packed(
    features: Sequence[Any],
    device: torch.device,
    *,
    tags: Float[Tensor, "b c"] | None = None,
    seeds: Sequence[int] | None = None,
    boxes: Sequence[Instances] | None = None,
) -> Batch:
    """The features of some videos, concatenated, as a batch on the device."""
    lengths = tuple(len(one) for one in features)
    joined = torch.empty(sum(lengths), features[0].shape[1])
    np.concatenate(features, out=joined.numpy(), casting="same_kind")
    taught = None if boxes is None else tuple(boxes)
    batch = Batch(joined, lengths, tags, None if seeds is None else tuple(seeds), taught)
    return batch if device.type == "cpu" else batch.to(device)


def _map(name: str, output: Output, rows: slice, video: int, t: int, columns: int, for_targets: bool) -> ActivationMap:
    tcam = output.target_tcam if for_targets and output.target_tcam is not None else output.tcam
    if tcam.shape[1] < columns:
        raise InputError("targets.background is true, but the model's TCAM has no column for background")
    curves, scores, attention = (
        values.double().cpu().numpy()
        for values in (tcam[rows, :columns], output.video_scores[video, :columns], output.attention[rows])
    )
    return ActivationMap(name, stretched(curves, t), scores, stretched(attention[:, None], t)[:, 0], output.weight)
