"""Weakly supervised temporal action localization: find when actions happen, learned from tags alone.

Names are imported when they are first used, so that `import wtal` costs next to nothing and never loads torch.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Annotations": "annotations",
    "Candidates": "pseudo.candidates",
    "Cut": "propose",
    "DataWarning": "errors",
    "Execution": "training",
    "Flanks": "pseudo.candidates",
    "Fusion": "propose",
    "InputError": "errors",
    "Instances": "instances",
    "Localizer": "localize",
    "Nms": "propose",
    "PAPER": "propose",
    "PROTOCOLS": "evaluate",
    "Proposer": "propose",
    "RECOMMENDED": "propose",
    "RELEASED": "propose",
    "SoftNms": "propose",
    "TimeBase": "timebase",
    "delta_targets": "pseudo.delta",
    "find_candidates": "pseudo.candidates",
    "fuse": "pseudo.fusion",
    "make_targets": "pseudo.linpro",
    "make_all_targets": "pseudo.linpro",
    "nms": "suppress",
    "read_annotations": "formats",
    "read_predictions": "formats",
    "read_recipe": "training",
    "score": "evaluate",
    "soft_nms": "suppress",
    "train": "training",
    "write_predictions": "formats",
}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'wtal' has no attribute {name!r}")
    return getattr(import_module(f"wtal.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
