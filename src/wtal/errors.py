"""What a user did, said plainly: one error type that the command line shows without a traceback, and its words."""

import difflib
from collections.abc import Iterable, Sequence


class InputError(ValueError):
    """Something the user gave is wrong. The message says what was wanted, what was got and what to do."""


class MissingExtraError(ImportError):
    """A feature needs an optional dependency that is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs {package}, which is not installed: pip install 'wtal[{extra}]'")


class DataWarning(UserWarning):
    """Something in the data is odd, but the field's practice is to go on; the message counts it and names one."""


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
