"""Optical flow from frame to frame: TV-L1, as the published features have it, or DIS, which is much faster."""

import threading
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float32, UInt8

from wtal.errors import MissingExtraError
from wtal.video.extractor import FlowMethod

#: pixels per frame beyond which flow is cut, before it is brought to [-1, 1] (Carreira & Zisserman 2017)
LIMIT = 20.0

_local = threading.local()  # an estimator keeps buffers, so each thread has its own


def optical_flow(frames: UInt8[np.ndarray, "n h w 3"], method: FlowMethod) -> Float32[np.ndarray, "m h w 2"]:
    """Motion from each frame to the next, one fewer than frames: x to the right, y down, ±20 pixels as ±1."""
    cv2 = _opencv()
    estimator = _estimator(cv2, method)
    grey = [cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY) for frame in frames]
    flows = [estimator.calc(now, then, None) for now, then in pairwise(grey)]
    return (np.clip(np.stack(flows), -LIMIT, LIMIT) / LIMIT).astype(np.float32)


def _estimator(cv2: Any, method: FlowMethod) -> Any:
    made = getattr(_local, "made", None)
    if made is None:
        made = _local.made = {}
    if method not in made:
        make = {
            "tvl1": lambda: cv2.optflow.DualTVL1OpticalFlow_create(),
            "dis": lambda: cv2.DISOpticalFlow_create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM),
        }
        made[method] = make[method]()
    return made[method]


def _opencv() -> Any:
    try:
        import cv2
    except ModuleNotFoundError as error:
        raise MissingExtraError("opencv-contrib-python-headless", "flow") from error
    if not hasattr(cv2, "optflow"):  # the plain package hides the one with TV-L1 if both are installed
        raise MissingExtraError("opencv-contrib-python-headless (another opencv package is installed over it)", "flow")
    return cv2
