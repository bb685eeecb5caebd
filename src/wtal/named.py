"""Things by name: a short name of ours, or a user's own as "module:attribute"."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from wtal.errors import InputError, did_you_mean


def look_up(name: str, known: Mapping[str, str], what: str) -> Any:
    """What `name` stands for: a key of `known`, whose values are "module:attribute", or such a pair itself.

    `what` says in errors what is looked for, such as "model".

    >>> look_up("join", {"join": "posixpath:join"}, "function")("a", "b")
    'a/b'
    """
    module_name, colon, attribute = known.get(name, name).partition(":")
    if not colon:
        there = f"there are {', '.join(sorted(known))}, or your own as module:attribute"
        raise InputError(f"no {what} {name!r}{did_you_mean(name, known)}; {there}")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there, but something it needs is not
        raise InputError(f"no module {error.name!r} for the {what} {name!r}; is its folder on PYTHONPATH?") from error
    try:
        return getattr(module, attribute)
    except AttributeError as error:
        raise InputError(f"module {module_name} has no {attribute!r}, wanted by the {what} {name!r}") from error
