"""Things by name: a short name of ours, or a user's own as "module:attribute"."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from importlib import import_module
from pathlib import PurePath
from typing import Any

from wtal.errors import InputError, did_you_mean

#: endings of files that a video's name may carry in one table and not in another
_ENDINGS = {
    *(".npy", ".npz", ".3gp", ".asf", ".avi", ".flv", ".m2ts", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".mts"),
    *(".mxf", ".ogv", ".ts", ".vob", ".webm", ".wmv"),
}


def without_ending(name: str) -> str:
    """A video's name without the ending of its file.

    >>> without_ending("clip.mp4"), without_ending("v_1.5")
    ('clip', 'v_1.5')
    """
    return PurePath(name).stem if PurePath(name).suffix.lower() in _ENDINGS else name


def match_endings(names: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """The known name of each name that differs from it by the ending of a file, where there is one such only.

    >>> match_endings(["a.mp4", "b", "c"], ["a", "b.npy", "c"])
    {'a.mp4': 'a', 'b': 'b.npy'}
    """
    names, known = list(names), set(known)
    bare = {without_ending(name): name for name in sorted(known)}
    wanted = {name: bare[without_ending(name)] for name in names if name not in known and without_ending(name) in bare}
    taken = Counter([*wanted.values(), *(name for name in names if name in known)])
    return {name: target for name, target in wanted.items() if taken[target] == 1}


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
