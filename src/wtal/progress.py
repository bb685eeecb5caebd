"""How far long work is: one hook for all of it, which a bar, a log or a test may listen to."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar, overload, runtime_checkable

_T = TypeVar("_T")
_NOTHING: Mapping[str, Any] = {}


@runtime_checkable
class Progress(Protocol):
    """What long work calls whenever it has got further."""

    def __call__(self, step: str, completed: float, total: float, detail: Mapping[str, Any], /) -> Any:
        """Hear of progress; an exception that is raised here ends the work.

        Args:
            step: What is being done, such as "training" or "converting".
            completed: How much of the step is done.
            total: How much that will be at the end; an estimate where nobody can know.
            detail: What else there is to say, by name, such as the epoch and the losses.
        """


def silent(_step: str, _completed: float, _total: float, _detail: Mapping[str, Any], /) -> None:
    """Say nothing: the default wherever progress can be heard."""


@overload
def tracked(
    items: Collection[_T], step: str, progress: Progress, detail: Mapping[str, Any] = _NOTHING
) -> Iterator[_T]: ...


@overload
def tracked(
    items: Iterable[_T], step: str, progress: Progress, detail: Mapping[str, Any] = _NOTHING, *, total: int
) -> Iterator[_T]: ...


def tracked(
    items: Any, step: str, progress: Progress, detail: Mapping[str, Any] = _NOTHING, *, total: int | None = None
) -> Iterator[Any]:
    """The same items, telling how many are done: before each, and after the last.

    >>> list(tracked("ab", "spelling", lambda step, completed, total, _: print(step, completed, "of", total)))
    spelling 0 of 2
    spelling 1 of 2
    spelling 2 of 2
    ['a', 'b']
    """
    n = len(items) if total is None else total
    for number, item in enumerate(items):
        progress(step, number, n, detail)
        yield item
    progress(step, n, n, detail)


def adapted(progress: Progress, step: str | None = None, /, **more: Any) -> Progress:
    """The same hook for a part of larger work, which gives the step another name or knows more detail.

    >>> adapted(print, "predictions", epoch=3)("localizing", 1, 2, {})
    predictions 1 2 {'epoch': 3}
    """

    def hear(own: str, completed: float, total: float, detail: Mapping[str, Any], /) -> None:
        progress(step or own, completed, total, {**detail, **more})

    return hear
