"""Models by name. Adding one is a file beside this and a line in `MODELS`; a user's own needs neither."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wtal.errors import InputError

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
    path = MODELS.get(name, name)
    module_name, colon, attribute = path.partition(":")
    if not colon:
        raise InputError(f"no model {name!r}; there are {', '.join(sorted(MODELS))}, or your own as module:attribute")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there, but something it needs is not
        raise InputError(f"no module {error.name!r} for the model {name!r}; is its folder on PYTHONPATH?") from error
    try:
        make = getattr(module, attribute)
    except AttributeError as error:
        raise InputError(f"module {module_name} has no {attribute!r}, wanted by the model {name!r}") from error
    model: Model = make(n_classes, d, **options)
    return model
