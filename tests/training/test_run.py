"""What a run's folder says of itself."""

from pathlib import Path

import pytest

from small import RECIPE, make_store
from wtal.data.store import Store
from wtal.errors import InputError
from wtal.training import Execution, read_recipe, train
from wtal.training.run import Run


def test_a_folder_without_a_run_has_neither_begun_nor_ended(tmp_path: Path) -> None:
    run = Run(tmp_path / "nothing")
    assert (run.begun, run.ended, run.environment(), run.evaluation, run.predictions(())) == (
        False, False, None, None, None,
    )  # fmt: skip
    assert (run.metrics().epochs_done, run.metrics().generations) == (0, [])
    with pytest.raises(InputError, match="cannot read the recipe"):
        _ = run.recipe


@pytest.mark.parametrize("lacking", ["truth", "test videos"])
def test_a_run_without_scores_has_ended_all_the_same(lacking: str, tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", n_test=3 if lacking == "truth" else 0)
    if lacking == "truth":
        (store.path / "gt.json").unlink()
        store = Store.open(store.path)
    (tmp_path / "r.yaml").write_text(RECIPE)
    run = train(tmp_path / "r.yaml", store, tmp_path / "run", execution=Execution(threads=1))
    assert (run.begun, run.ended, run.evaluation) == (True, True, {})
    assert run.recipe == read_recipe(tmp_path / "r.yaml")
    assert (run.predictions(store.classes) is None) == (lacking == "test videos")
    assert (run.metrics().epochs_done, run.metrics().generations) == (5, [2, 4])
