"""Models by name. Adding one is a file beside this and a line in `MODELS`; a user's own needs neither."""

from typing import TYPE_CHECKING, Any

from wtal.named import look_up

if TYPE_CHECKING:  # torch is loaded when a model is built, not when its name is looked up
    from wtal.models.protocol import Model

#: name -> "module:attribute" of what makes the model from (n_classes, d, **options)
MODELS = {"rskp": "wtal.models.rskp:RSKP"}


def build(name: str, n_classes: int, d: int, **options: Any) -> "Model":
    """The model of that name for `n_classes` classes and `d`-dimensional features.

    A name with a colon is a user's own model as "module:attribute".

    >>> model = build("rskp", n_classes=3, d=16, dropout=0.5)
    >>> type(model).__name__
    'RSKP'
    """
    model: Model = look_up(name, MODELS, "model")(n_classes, d, **options)
    return model
