"""Models by name. A new one is one file, used as "module:attribute"; a line in `MODELS` gives it a short name."""

from collections.abc import Sequence
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


def build(name: str, n_classes: int, d: int, *, stream_weights: Sequence[float] = (1.0,), **options: Any) -> "Model":
    """The model of that name for `n_classes` classes and `d`-dimensional features.

    A name with a colon is a user's own model as "module:attribute". With several `stream_weights` each of as many
    equal parts of the features has a model of its own.

    >>> model = build("rskp", n_classes=3, d=16, dropout=0.5)
    >>> type(model).__name__
    'RSKP'
    """
    make = look_up(name, MODELS, "model")
    if len(stream_weights) > 1:
        from wtal.models.streams import Streams

        return Streams(d, stream_weights, lambda width: make(n_classes, width, **options))
    model: Model = make(n_classes, d, **options)
    return model
