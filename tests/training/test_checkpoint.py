"""What a checkpoint keeps, which one is the newest, and that it is on the disk before it counts."""

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from wtal.data.store import Store
from wtal.errors import InputError
from wtal.files import written_whole
from wtal.models import build
from wtal.training import Execution, Recipe, train
from wtal.training.checkpoint import State, load, newest, save


def fresh() -> State:
    model = build("stpn", 3, 8)
    return State(model, torch.optim.Adam(model.parameters(), fused=True))


@pytest.fixture
def own_randomness() -> Iterator[None]:
    """The generators of this process as they were, for the tests that follow."""
    before = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    yield
    torch.set_rng_state(before[0])
    np.random.set_state(before[1])  # noqa: NPY002
    random.setstate(before[2])


@pytest.mark.parametrize(
    "draw",
    [
        lambda: torch.rand(3).tolist(),
        lambda: np.random.normal(size=3).tolist(),  # noqa: NPY002  a user's model may use it
        lambda: [random.gauss(0, 1) for _ in range(3)],
    ],
    ids=["torch", "numpy", "python"],
)
def test_a_model_that_draws_from_any_generator_goes_on_with_the_same_numbers(
    tmp_path: Path, own_randomness: None, draw: Callable[[], list[float]]
) -> None:
    def drawn(path: Path) -> list[float]:
        load(path, fresh())
        return draw()

    # three Gaussians are an odd number: the generators of Python and numpy keep a fourth for later
    draw()
    first = save(tmp_path / "first", fresh())
    draw()
    second = save(tmp_path / "second", fresh())
    wanted = drawn(first)
    assert draw() != wanted
    assert drawn(first) == wanted
    assert drawn(second) != wanted


def test_the_newest_checkpoint_is_the_one_of_the_latest_epoch_and_step(tmp_path: Path) -> None:
    assert newest(tmp_path) is None
    for name in ("epoch-9999-step-10000", "epoch-10000-step-0002", "epoch-10000-step-10000", "epoch-10000-step-9999"):
        (tmp_path / name).mkdir()
    found = newest(tmp_path)
    assert found is not None
    assert found.name == "epoch-10000-step-10000"


def test_only_the_newest_two_checkpoints_are_kept(tmp_path: Path) -> None:
    state = fresh()
    for step in (8, 9, 10):
        state.step = step
        save(tmp_path, state)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["epoch-0000-step-0009", "epoch-0000-step-0010"]


def heard(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What is brought to the disk and what is renamed, in this order, by name."""
    events: list[tuple[str, str]] = []
    sync, rename, replace = os.fsync, os.rename, os.replace

    def hear_sync(descriptor: int) -> None:
        events.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink().name))
        sync(descriptor)

    def hear_rename(how: Callable[..., None]) -> Callable[..., None]:
        def hear(old: Any, new: Any, **more: Any) -> None:
            events.append(("rename", Path(old).name))
            how(old, new, **more)

        return hear

    monkeypatch.setattr(os, "fsync", hear_sync)
    monkeypatch.setattr(os, "rename", hear_rename(rename))
    monkeypatch.setattr(os, "replace", hear_rename(replace))
    return events


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not name open files")
def test_after_a_power_cut_a_checkpoint_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = heard(monkeypatch)
    path = save(tmp_path, fresh())
    beside = f".{path.name}.partial"
    renamed = events.index(("rename", beside))
    assert {name for _, name in events[:renamed]} == {"state.safetensors", "state.json", beside}
    assert events[renamed + 1 :] == [("sync", tmp_path.name)]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not name open files")
def test_after_a_power_cut_a_file_is_the_old_one_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = heard(monkeypatch)
    with written_whole(tmp_path / "note.txt") as file:
        file.write("done")
    (kinds, names) = zip(*events, strict=True)
    assert kinds == ("sync", "rename")
    assert names[0] == names[1]


def test_the_rate_of_each_epoch_is_the_one_that_is_learned_with(store: Store, tmp_path: Path) -> None:
    def learned(epochs: int, *rates: float) -> dict[str, torch.Tensor]:
        stages = tuple((number + 1, rate) for number, rate in enumerate(rates))
        run = train(
            Recipe("stpn", epochs, stages, model_options={"hidden": 8}),
            store,
            tmp_path / f"{epochs}-{rates}",
            execution=Execution(threads=1),
            progress=False,
        )
        weights: dict[str, torch.Tensor] = load_file(run.path / "model" / "model.safetensors")
        return weights

    one = learned(1, 1e-2)
    then_still, then_moved = learned(2, 1e-2, 0.0), learned(2, 1e-2, 1e-2)
    assert all(torch.equal(one[name], then_still[name]) for name in one)
    assert not all(torch.equal(one[name], then_moved[name]) for name in one)


def test_a_checkpoint_of_another_optimizer_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path, fresh())
    other = fresh()
    other.optimizer = torch.optim.SGD(other.model.parameters(), lr=0.1)
    with pytest.raises(InputError, match=r"epoch-0000-step-0000 is a checkpoint that is damaged or of another model"):
        load(path, other)
