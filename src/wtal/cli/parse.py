"""A command's arguments from the signature of its function: tyro, with plainer help and an example."""

import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro
from tyro.constructors import ConstructorRegistry

#: a line that works as it stands, or with one's own files in place of the capitals
EXAMPLES = {
    "wtal demo": "wtal demo -o demo-output",
    "wtal data": "wtal data check STORE",
    "wtal data convert": "wtal data convert FEATURES --tags tags.csv -o STORE",
    "wtal data check": "wtal data check STORE",
    "wtal data repair": "wtal data repair STORE",
    "wtal data synthesize": "wtal data synthesize --n-classes 5 -o STORE",
    "wtal extract": "wtal extract videos/ --tags tags.csv -o features",
    "wtal weights": "wtal weights rgb_imagenet.pt",
    "wtal train": "wtal train my-videos --videos videos/ --tags tags.csv --run runs/mine",
    "wtal localize": "wtal localize runs/mine new.mp4 -o found.json",
    "wtal calibrate": "wtal calibrate runs/mine --features STORE --split test",
    "wtal tune": "wtal tune runs/mine --data STORE",
    "wtal evaluate": "wtal evaluate found.json gt.json --protocol thumos14 --diagnose",
    "wtal formats": "wtal formats convert found.json found.labelstudio.json --fps 25",
    "wtal export": "wtal export runs/mine my-model --onnx",
    "wtal view": "wtal view runs/mine new.mp4 -o view.html",
    "wtal report": "wtal report runs/mine -o report.html",
    "wtal serve": "wtal serve runs/mine --videos videos/ --edit",
    "wtal paper": "wtal paper components --data STORE -o components --dry-run",
}
_METAVARS = {Path: "PATH", int: "INT", float: "FLOAT", str: "STR"}


def run_command(function: Callable[..., None], prog: str, arguments: Sequence[str]) -> None:
    """Parse the arguments by the function's signature and docstring, and call it."""
    text = (inspect.getdoc(function) or "").partition("\nArgs:")[0]
    tyro.cli(
        plain_help(function),
        prog=prog,
        description=described(text, prog),
        args=list(arguments),
        registry=_plain_dataclasses(),
    )


def described(text: str, prog: str) -> str:
    """What a command does, and its example."""
    return f"{text.strip()}\n\nExample:  {EXAMPLES[prog]}"


def plain_help(function: Callable[..., None]) -> Callable[..., None]:
    """The same function; an option that is not given by default says what it takes, and nothing of None."""
    defaults = inspect.signature(function).parameters
    hints = get_type_hints(function, include_extras=True)
    inner = inspect.unwrap(function)  # what tyro looks at: decorators stand aside
    inner.__annotations__ = {
        name: _plain(kind, defaults[name].default) if name in defaults else kind for name, kind in hints.items()
    }
    return function


def _plain_dataclasses() -> ConstructorRegistry:
    """The same for the fields of dataclasses whose fields are options."""
    registry, inside = ConstructorRegistry(), False

    @registry.struct_rule
    def rule(info: Any) -> Any:
        nonlocal inside
        if inside or not is_dataclass(info.type):
            return None
        inside = True  # ask tyro's own rules, not this one again
        try:
            spec: Any = ConstructorRegistry.get_struct_spec(info)
        finally:
            inside = False
        if spec is None or not hasattr(spec, "fields"):
            return spec
        return replace(
            spec, fields=tuple(replace(field, type=_plain(field.type, field.default)) for field in spec.fields)
        )

    return registry


def _plain(kind: Any, default: Any) -> Any:
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if get_origin(bare) is tuple and default in ((), inspect.Parameter.empty):
        return Annotated[kind, tyro.conf.arg(help_behavior_hint="" if default == () else "(required)")]
    if get_origin(bare) not in (Union, types.UnionType) or type(None) not in get_args(bare):
        return kind
    given = [getattr(note, "metavar", None) for note in getattr(kind, "__metadata__", ())]
    wanted = "|".join(_metavar(one) for one in get_args(bare) if one is not type(None))
    if default is not None:  # None is something that one may ask for
        return Annotated[kind, tyro.conf.arg(metavar=next(filter(None, given), f"{wanted}|None"))]
    return Annotated[kind, tyro.conf.arg(metavar=next(filter(None, given), wanted), help_behavior_hint="")]


def _metavar(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"{{{','.join(map(str, get_args(kind)))}}}"
    if get_origin(kind) is tuple:
        one, *more = get_args(kind)
        return f"{_metavar(one)} [{_metavar(one)} ...]" if more == [...] else " ".join(map(_metavar, (one, *more)))
    return _METAVARS.get(kind, getattr(kind, "__name__", "VALUE").upper())
