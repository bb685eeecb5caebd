"""Models by name. A new one is one file, used as "module:attribute"; a line in `MODELS` gives it a short name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from wtal.named import look_up

if TYPE_CHECKING:  # torch is loaded when a model is built, not when its name is looked up
    from wtal.models.protocol import Model

#: name -> "module:attribute" of what makes the model from (n_classes, d, **options)
MODELS = {
    "bm": "wtal.models.bm:BM",
    "detector": "wtal.models.detector:Detector",
    "facnet": "wtal.models.facnet:FACNet",
    "rskp": "wtal.models.rskp:RSKP",
    "stpn": "wtal.models.stpn:STPN",
    "wum": "wtal.models.wum:WUM",
}


_NONE: Mapping[str, Any] = MappingProxyType({})


def build(
    name: str,
    n_classes: int,
    d: int,
    *,
    streams: Mapping[str, int] = _NONE,
    stream_weights: Mapping[str, float] = _NONE,
    **options: Any,
) -> "Model":
    """The model of that name for `n_classes` classes and `d`-dimensional features.

    Args:
        name: A key of `MODELS`, or a user's own model as "module:attribute".
        n_classes: Number of classes.
        d: Length of a snippet's feature vector, all streams together.
        streams: The widths of the streams that it consists of, by name, from left to right.
        stream_weights: With weights by stream, each stream has a model of its own; without, one model sees them all.
        options: What the model itself takes.

    >>> model = build("rskp", n_classes=3, d=16, dropout=0.5)
    >>> type(model).__name__
    'RSKP'
    """
    make = look_up(name, MODELS, "model")
    if stream_weights:
        from wtal.models.streams import PerStream

        return PerStream(streams, stream_weights, lambda width: make(n_classes, width, **options))
    model: Model = make(n_classes, d, **options)
    return model
