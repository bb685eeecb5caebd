"""The extractor that needs no download, with the weights of the installed package."""

from pathlib import Path

import numpy as np
import pytest
import torch

from wtal.video.decode import Geometry, read_pictures
from wtal.video.frames import Frames, installed_weights
from wtal.video.lite0 import channel_means


@pytest.fixture(scope="module")
def extractor() -> Frames:
    return Frames(installed_weights(), "cpu")


def test_the_network_knows_what_it_was_trained_on(extractor, ucf101):
    # ImageNet has a class for each of these; a wrong layer, padding or scale would not name it
    names = {"BalanceBeam_g02": 416, "Archery_g02": 456, "BandMarching_g01": 439, "BaseballPitch_g04": 981}
    frames = [
        list(read_pictures(Path(ucf101) / f"v_{name}_c01.avi", geometry=Geometry(256, 224)))[30].pixels
        for name in names
    ]
    x = torch.from_numpy(np.stack(frames)).permute(0, 3, 1, 2).float().sub(127).div(128)
    with torch.inference_mode():
        network = extractor._network
        best = network.classify(channel_means(network(x))).argmax(dim=1).tolist()
    assert best == list(names.values())


def test_a_snippet_is_looked_at_as_a_whole_and_in_change(extractor):
    rng = np.random.default_rng(0)
    still = np.repeat(rng.integers(0, 256, (1, 224, 224, 3), dtype=np.uint8), 4, axis=0)
    moving = rng.integers(0, 256, (4, 224, 224, 3), dtype=np.uint8)
    vectors = extractor.vectors({"frames": np.stack([still, moving])})
    assert vectors.shape == (2, 2560)
    assert abs(vectors[0, 1280:]).max() < 1e-5
    assert vectors[1, 1280:].mean() > 0.05


def test_snippets_do_not_depend_on_their_batch(extractor):
    frames = np.random.default_rng(1).integers(0, 256, (3, 4, 224, 224, 3), dtype=np.uint8)
    together = extractor.vectors({"frames": frames})
    alone = np.concatenate([extractor.vectors({"frames": one[None]}) for one in frames])
    np.testing.assert_allclose(together, alone, atol=1e-4)
