"""VideoRecord: what is known about one video of a data set besides its features and its true instances."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from wtal.errors import InputError
from wtal.timebase import TimeBase

_TRAIN = {"train", "training"}
_VALIDATION = {"val", "valid", "validation"}
_TEST = {"test", "testing"}


@dataclass(frozen=True, slots=True)
class VideoRecord:
    """One video: its split ("train", "val" or "test"), its tags by name, its clock.

    No tag at all is allowed: a background-only video, or one whose tags are not known.
    """

    name: str
    split: str
    tags: tuple[str, ...]
    duration_s: float | None = None
    timebase: TimeBase = field(default_factory=TimeBase)


def canonical_splits(found: Iterable[str]) -> dict[str, str]:
    """The store's split ("train", "val" or "test") for each name of a split that a data set uses.

    The field calls different things "validation": ActivityNet evaluates on it, THUMOS14 trains on it. What it
    means follows from the names beside it.

    >>> canonical_splits(["training", "validation"])
    {'training': 'train', 'validation': 'test'}
    >>> canonical_splits(["validation", "test"])
    {'test': 'test', 'validation': 'train'}
    >>> canonical_splits(["train", "val", "test"])
    {'test': 'test', 'train': 'train', 'val': 'val'}
    """
    names = sorted(set(found))
    lower = {name.lower() for name in names}
    if unknown := lower - _TRAIN - _VALIDATION - _TEST:
        raise InputError(
            f"split names must be train/training, val/validation or test/testing, got {sorted(unknown)}; rename them"
        )
    has_train, has_test = bool(lower & _TRAIN), bool(lower & _TEST)
    validation = "val" if has_train and has_test else "train" if has_test else "test"
    return {
        name: "train" if name.lower() in _TRAIN else "test" if name.lower() in _TEST else validation for name in names
    }


def class_list(given: Iterable[str] | None, records: Iterable[VideoRecord]) -> tuple[str, ...]:
    """The class names in the order of their numbers: as given, or every tag in alphabetical order."""
    if given is None:
        return tuple(sorted({tag for record in records for tag in record.tags}))
    names = tuple(given)
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"the class list names {twice} more than once")
    return names
