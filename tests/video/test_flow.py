import numpy as np
import pytest

from wtal.video.flow import optical_flow


def shifted(n, dx, dy):
    """Frames of a smooth texture that moves by (dx, dy) pixels from frame to frame."""
    rng = np.random.default_rng(0)
    cv2 = pytest.importorskip("cv2")
    texture = cv2.GaussianBlur(rng.integers(0, 256, (200, 200, 3)).astype(np.float32), (0, 0), 4)
    texture = np.interp(texture, (texture.min(), texture.max()), (0, 255)).astype(np.uint8)
    return np.stack([texture[60 - i * dy : 124 - i * dy, 60 - i * dx : 140 - i * dx] for i in range(n)])


@pytest.mark.parametrize("method", ["tvl1", "dis"])
@pytest.mark.parametrize(("dx", "dy"), [(2, 0), (0, -2), (1, 1)])
def test_flow_is_the_motion_of_the_picture_in_twentieths(method, dx, dy):
    flow = optical_flow(shifted(3, dx, dy), method)
    assert flow.shape == (2, 64, 80, 2)
    inside = flow[:, 12:-12, 12:-12].mean(axis=(0, 1, 2)) * 20
    np.testing.assert_allclose(inside, (dx, dy), atol=0.3)


def test_fast_motion_is_cut_off(monkeypatch):
    from wtal.video import flow as module

    class Fast:
        def calc(self, now, then, _):
            return np.full((*now.shape, 2), 35.0, np.float32)

    monkeypatch.setattr(module, "_estimator", lambda *_: Fast())
    assert (optical_flow(np.zeros((2, 8, 8, 3), np.uint8), "dis") == 1).all()
