"""The field's features: I3D on colour and on optical flow, 1024 numbers each, side by side."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32, UInt8

from wtal.devices import choose_device
from wtal.errors import InputError
from wtal.video.decode import Geometry, middle_square
from wtal.video.extractor import Extractor, ExtractorOptions, FlowMethod, Prepared, refuse_unused
from wtal.video.flow import optical_flow
from wtal.video.i3d import I3D_WIDTH
from wtal.video.i3d_weights import load_i3d

_SIDE = 224
OPTION = {"rgb": "weights", "flow": "flow_weights"}


class TwoStream(Extractor):
    """I3D over the streams whose weights are given."""

    geometry = Geometry(256, None)  # flow is found in the whole frame, then the middle is cut out
    batch_snippets = 4

    def __init__(self, weights: Mapping[str, Path], flow: FlowMethod = "tvl1", device: str = "auto") -> None:
        self._device = choose_device(device)
        loaded = {stream: load_i3d(path, stream) for stream, path in weights.items()}
        self._networks = {stream: network.to(self._device) for stream, (network, _) in loaded.items()}
        self.weights = {stream: file.sha256 for stream, (_, file) in loaded.items()}
        self.streams = dict.fromkeys(weights, I3D_WIDTH)
        self.flow = flow if "flow" in weights else None

    def picks(self, length_frames: int) -> tuple[int, ...]:
        """All frames, and for flow the next one as well, to which the last frame's motion leads."""
        return tuple(range(length_frames + (self.flow is not None)))

    def prepare(self, frames: UInt8[np.ndarray, "p h w 3"]) -> Prepared:
        """The middle of the frames, and of the flow between them."""
        prepared = {}
        if "rgb" in self.streams:
            colour = frames if self.flow is None else frames[:-1]
            prepared["rgb"] = middle_square(colour, _SIDE)
        if self.flow is not None:
            prepared["flow"] = middle_square(optical_flow(frames, self.flow), _SIDE)
        return prepared

    @torch.inference_mode()
    def vectors(self, batch: Prepared) -> Float32[np.ndarray, "n d"]:
        """The streams' features side by side."""
        parts = []
        for stream, network in self._networks.items():
            values = torch.from_numpy(batch[stream]).to(self._device).permute(0, 4, 1, 2, 3)
            # colours from 0..255, flow comes as -1..1
            parts.append(network(values.float().div_(127.5).sub_(1) if stream == "rgb" else values))
        return torch.cat(parts, dim=1).cpu().numpy()


def make(options: ExtractorOptions, device: str) -> TwoStream:
    """I3D with the weights that the options name."""
    wanted = {"i3d": ("rgb", "flow"), "i3d-rgb": ("rgb",), "i3d-flow": ("flow",)}[options.extractor]
    refuse_unused(options, (*(OPTION[stream] for stream in wanted), *(("flow",) if "flow" in wanted else ())))
    files = {stream: getattr(options, OPTION[stream]) for stream in wanted}
    for stream, path in files.items():
        if path is None:
            option = OPTION[stream].replace("_", "-")
            raise InputError(f"{options.extractor} needs the {stream} weights: --{option} FILE (see wtal weights)")
    return TwoStream(files, options.flow or "tvl1", device)
