"""Plain data, as YAML or JSON gives it, into frozen dataclasses and back; a wrong key or type is a helpful error.

Where a field may hold one of several dataclasses, its value is a mapping with one key that names the class in lower
case: `combine: {soft_nms: {sigma: 0.3}}` for a `SoftNms`.
"""

import re
import reprlib
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from functools import cache
from inspect import Parameter, signature
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from jaxtyping import Shaped

from wtal.errors import InputError, did_you_mean

_T = TypeVar("_T")


def parse(kind: type[_T], given: Any, where: str = "") -> _T:
    """A `kind`, a dataclass, from a mapping; missing keys take the defaults. `where` is the key that leads to it.

    >>> from wtal.timebase import TimeBase
    >>> parse(TimeBase, {"fps": 30})
    TimeBase(fps=30.0, stride_frames=16.0, offset_snippets=0.0)
    >>> parse(TimeBase, {"fsp": 30})
    Traceback (most recent call last):
    wtal.errors.InputError: unknown key fsp (did you mean fps?); there are fps, stride_frames, offset_snippets
    """
    if not isinstance(given, Mapping):
        python = f" (in Python a {kind.__name__})" if where else ""
        raise InputError(f"{where or 'the recipe'} must be a mapping of keys to values{python}, got {_shown(given)}")
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    _refuse_unknown(given, known, where)
    missing = [name for name, field in known.items() if _is_required(field) and name not in given]
    if missing:
        raise InputError(f"{_at(where, missing[0])} is missing; it has no default")
    hints = _hints(kind)
    return kind(**{key: checked(hints[key], value, _at(where, key)) for key, value in given.items()})


def parse_options(
    make: Callable[..., Any], given: Mapping[str, Any], where: str, *, skipped: int = 0
) -> dict[str, Any]:
    """Keyword arguments for `make`, checked against its signature as far as that says what it wants.

    `skipped` is the number of its first arguments that are given otherwise.
    """
    parameters = signature(make).parameters
    if not any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values()):
        _refuse_unknown(given, list(parameters)[skipped:], where)
    try:
        hints = get_type_hints(getattr(make, "__init__") if isinstance(make, type) else make)  # noqa: B009  mypy
    except (NameError, TypeError, AttributeError):  # a user's own annotations may be beyond us
        hints = {}
    return {key: checked(hints.get(key, Any), value, _at(where, key)) for key, value in given.items()}


def check_fields(value: Any) -> None:
    """Refuse a dataclass whose fields do not hold what their types say; call it in `__post_init__`.

    Lists and arrays become tuples, whole numbers in place of others floats, as when a recipe is read.
    """
    for name, kind in _hints(type(value)).items():
        object.__setattr__(value, name, checked(kind, getattr(value, name), name))


def wanted_type(value: object, kind: type, name: str, hint: str = "") -> None:
    """Refuse an argument of another type than `kind`, by its name.

    >>> wanted_type([1, 2], dict, "predictions", "; wrap them as {name: instances}")
    Traceback (most recent call last):
    wtal.errors.InputError: predictions must be of type dict, got list; wrap them as {name: instances}
    """
    if not isinstance(value, kind):
        got = "None" if value is None else type(value).__name__
        raise InputError(f"{name} must be of type {kind.__name__}, got {got}{hint}")


def as_path(value: Any, name: str) -> Path:
    """A path that a user gives, or an error that names the argument."""
    if not isinstance(value, (str, PathLike)):
        raise InputError(f"{name} must be a path, got {reprlib.repr(value)}")
    return Path(value)


def as_array(values: Any, name: str) -> Shaped[np.ndarray, "..."]:
    """What a user gives as numbers, as an array of them; `name` is the argument that they were given as.

    >>> as_array(None, "tcam")
    Traceback (most recent call last):
    wtal.errors.InputError: tcam must be an array of numbers, got None
    """
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):  # the last from a tensor that is part of a graph
        array = np.array(None)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be an array of numbers, got {reprlib.repr(values)}")
    return array


def plain(value: Any) -> Any:
    """The inverse of `parse`: dicts, lists, numbers and strings only, all defaults filled in."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _plain_of(kind, getattr(value, name)) for name, kind in _hints(type(value)).items()}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def _plain_of(kind: Any, value: Any) -> Any:
    """A field of this kind; one of several dataclasses is named by its key."""
    return {key_of(type(value)): plain(value)} if type(value) in choices(kind).values() else plain(value)


def choices(kind: Any) -> dict[str, type]:
    """The dataclasses among which a union leaves the choice, by their keys; none where it leaves none."""
    named = [one for one in get_args(kind) if isinstance(one, type) and is_dataclass(one)]
    return {key_of(one): one for one in named} if len(named) > 1 else {}


def key_of(kind: type) -> str:
    """The key that names a class.

    >>> class SoftNms: ...
    >>> key_of(SoftNms)
    'soft_nms'
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind.__name__).lower()


def changed(value: _T, path: str, given: Any, where: str = "") -> _T:
    """A dataclass with another value at the end of a dotted path, checked as `parse` checks it.

    >>> from wtal.timebase import TimeBase
    >>> changed(TimeBase(), "fps", 30)
    TimeBase(fps=30.0, stride_frames=16.0, offset_snippets=0.0)
    """
    name, _, rest = path.partition(".")
    hints = _hints(type(value)) if is_dataclass(value) else {}
    _refuse_unknown([name], hints, where)
    here = _at(where, name)
    inner = changed(getattr(value, name), rest, given, here) if rest else checked(hints[name], given, here)
    return replace(value, **{name: inner})  # type: ignore[type-var]


def differences(old: Any, new: Any, where: str = "") -> list[str]:
    """The keys at which two results of `plain` differ, with both values.

    >>> differences({"a": {"b": 1}}, {"a": {"b": 2}})
    ['a.b (1, now 2)']
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = [*old, *(key for key in new if key not in old)]
        return [text for key in keys for text in differences(old.get(key), new.get(key), _at(where, str(key)))]
    return [] if old == new else [f"{where} ({old}, now {new})"]


def _hints(kind: Any) -> dict[str, Any]:
    return _cached_hints(kind)


@cache
def _cached_hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def checked(kind: Any, given: Any, where: str) -> Any:
    """The value as `kind` has it: a type, a union, a choice, a tuple or a dataclass; `where` names it in errors.

    >>> checked(tuple[float, float], [1, 2], "dilation")
    (1.0, 2.0)
    >>> checked(int, 5.5, "n_snippets")
    Traceback (most recent call last):
    wtal.errors.InputError: n_snippets must be a whole number, got 5.5
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(given) and type(given) in (kind, *arguments):  # made in Python already
        return given
    if origin in (Union, types.UnionType):
        return _one_of(kind, given, where)
    if origin is Literal:
        if given not in arguments:
            hint = did_you_mean(str(given), [str(one) for one in arguments])
            raise InputError(f"{where} must be {' or '.join(map(str, arguments))}, got {_shown(given)}{hint}")
        return given
    if isinstance(kind, type) and is_dataclass(kind):
        return parse(kind, given, where)
    if origin in (tuple, list, Sequence):
        return _sequence(arguments, given, where)
    if origin in (dict, Mapping):
        if not isinstance(given, Mapping):
            raise InputError(f"{where} must be a mapping of keys to values, got {_shown(given)}")
        kind_of_value = arguments[1] if arguments else Any
        return {str(key): checked(kind_of_value, value, _at(where, str(key))) for key, value in given.items()}
    if kind in _PLAIN:
        return _scalar(kind, given, where)
    return _frozen(given)


_PLAIN = {bool: "true or false", int: "a whole number", float: "a number", str: "text", type(None): "null"}


def _scalar(kind: type, given: Any, where: str) -> Any:
    if kind is float:
        if isinstance(given, str):  # YAML takes 5e-5, without a dot, for text
            try:
                return float(given)
            except ValueError:
                pass
        elif not isinstance(given, bool) and isinstance(given, Real):
            return float(given)
    elif type(given) is kind:
        return given
    elif kind is int and not isinstance(given, bool) and isinstance(given, Integral):  # numpy's
        return int(given)
    raise InputError(f"{where} must be {_PLAIN[kind]}, got {_shown(given)}")


def _one_of(union: Any, given: Any, where: str) -> Any:
    kinds, named = get_args(union), choices(union)
    if given is None and type(None) in kinds:
        return None
    if named and isinstance(given, Mapping):
        _refuse_unknown(given, named, where)
        if len(given) != 1:
            raise InputError(f"{where} must have one key of {', '.join(named)}, got {', '.join(given) or 'none'}")
        ((key, value),) = given.items()
        return parse(named[key], value, _at(where, key))
    rest = [kind for kind in kinds if kind is not type(None) and kind not in named.values()]
    if not rest:
        python = ", ".join(one.__name__ for one in named.values())
        raise InputError(
            f"{where} must be a mapping with one key of {', '.join(named)} (in Python one of {python}), "
            f"got {_shown(given)}"
        )
    for kind in rest[:-1]:
        try:
            return checked(kind, given, where)
        except InputError:
            continue
    return checked(rest[-1], given, where)


def _sequence(arguments: Sequence[Any], given: Any, where: str) -> tuple[Any, ...]:
    if hasattr(given, "tolist"):  # an array
        given = given.tolist()
    if not isinstance(given, (list, tuple)):
        raise InputError(f"{where} must be a list, got {_shown(given)}")
    kinds = [arguments[0]] * len(given) if len(arguments) == 1 or arguments[1:] == (...,) else list(arguments)
    if len(kinds) != len(given):
        raise InputError(f"{where} must have {len(kinds)} values, got {len(given)}: {_shown(given)}")
    return tuple(
        checked(kind, value, f"{where}[{i}]") for i, (kind, value) in enumerate(zip(kinds, given, strict=True))
    )


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _refuse_unknown(given: Iterable[Any], known: Iterable[str], where: str) -> None:
    for key in given:
        if key not in known:
            hint = did_you_mean(str(key), known)
            raise InputError(f"unknown key {_at(where, str(key))}{hint}; there are {', '.join(known)}")


def _is_required(field: "Field[Any]") -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _at(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _shown(value: Any) -> str:
    names = {str: "the text ", bool: "the truth value ", dict: "the mapping ", list: "the list "}
    return "nothing" if value is None else f"{names.get(type(value), '')}{value!r}"
