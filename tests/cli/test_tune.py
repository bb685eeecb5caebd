"""`wtal tune` on runs: which videos it asks whom about."""

from pathlib import Path

import pytest
import yaml

from small import RECIPE, make_store
from wtal.cli import main
from wtal.data.store import Store
from wtal.training import Execution, train


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return make_store(tmp_path_factory.mktemp("data") / "store")


@pytest.fixture(scope="module")
def folder(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs `1` and `2`, each on one half of the training videos, and `all` on all of them; a small grid."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "tiny.yaml").write_text(RECIPE)
    for name, data in {"1": store.fold(1, 2), "2": store.fold(2, 2), "all": store}.items():
        train(folder / "tiny.yaml", data, folder / name, execution=Execution(threads=1))
    (folder / "grid.yaml").write_text("combine.temperature: [0.03, 0.3]\ncut.dilation: [[0, 0]]\n")
    return folder


def tune(store: Store, folder: Path, *arguments: object) -> None:
    runs = [str(folder / str(one)) if one in (1, 2, "all") else str(one) for one in arguments]
    grid = ["--grid", str(folder / "grid.yaml"), "--workers", "1", "-o", str(folder / "tuned.yaml")]
    main(["tune", *runs, "--data", str(store.path), "--protocols", "thumos14", *grid])


def test_folds_choose_together_on_the_videos_that_they_held_out(
    store: Store, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from wtal.localize import Localizer

    asked: dict[str, set[str]] = {}
    real = Localizer.maps

    def watched(self: Localizer, name: str, *rest: object, **more: object) -> object:
        asked.setdefault(str(id(self)), set()).add(name)
        return real(self, name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Localizer, "maps", watched)
    tune(store, folder, 1, 2, "--held-out", "--folds", "2")
    assert sorted(map(sorted, asked.values())) == sorted(sorted(store.fold(k, 2).names("test")) for k in (1, 2))
    assert f"{len(store.names('train'))} held-out videos" in " ".join(capsys.readouterr().out.split())
    assert "temperature" in yaml.safe_load((folder / "tuned.yaml").read_text())["test"]["proposer"]["combine"]["fusion"]


@pytest.mark.parametrize(
    ("runs", "said"), [(("all",), "train --fold"), ((1, 1), "the same videos"), (("nothing",), "no trained model")]
)
def test_runs_that_have_no_such_videos_are_refused(
    store: Store, folder: Path, capsys: pytest.CaptureFixture[str], runs: tuple[object, ...], said: str
) -> None:
    with pytest.raises(SystemExit):
        tune(store, folder, *runs, "--held-out")
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_fold_of_another_data_set_is_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        tune(make_store(tmp_path / "other", seed=1), folder, 1, "--held-out")
    assert "another data set" in " ".join(capsys.readouterr().err.split())
