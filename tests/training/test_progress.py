"""`wtal.train` shows how far it is unless told not to."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import wtal
from wtal.data.store import Store
from wtal.training import Recipe, Run

RECIPE = Recipe("stpn", 1, ((1, 1e-3),))


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is shown of a training that does nothing but tell of its progress."""
    told: list[str] = []

    @contextmanager
    def showing(what: str, **_: Any) -> Iterator[Any]:
        told.append(what)
        yield lambda step, *_: told.append(step)

    def session(*arguments: Any, progress: Any, **_: Any) -> Run:
        progress("training", 0.5, 1, {})
        run: Run = arguments[2]
        return run

    monkeypatch.setattr("wtal.training.showing", showing)
    monkeypatch.setattr("wtal.training.session.session", session)
    return told


def test_progress_is_shown_by_default_by_one_process(
    store: Store, shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wtal.train(RECIPE, store)
    assert shown == ["epochs", "training"]
    wtal.train(RECIPE, store, progress=False)
    monkeypatch.setenv("RANK", "1")
    wtal.train(RECIPE, store)
    assert shown == ["epochs", "training"]


def test_progress_may_be_heard_instead(store: Store, shown: list[str]) -> None:
    heard: list[Any] = []
    wtal.train(RECIPE, store, progress=lambda *at: heard.append(at))
    assert heard == [("training", 0.5, 1, {})]
    assert shown == []
