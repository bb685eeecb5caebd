"""`wtal data` as a user types it."""

from pathlib import Path

import numpy as np
import pytest
import tyro

from wtal.cli.data import SUBCOMMANDS
from wtal.data import Store
from wtal.errors import InputError


def _run(*arguments: object) -> None:
    tyro.extras.subcommand_cli_from_dict(SUBCOMMANDS, args=[str(argument) for argument in arguments])


@pytest.fixture
def own(tmp_path: Path) -> Path:
    root = tmp_path / "own"
    root.mkdir()
    rng = np.random.default_rng(0)
    for name in "abc":
        np.save(root / f"{name}.npy", rng.standard_normal((12, 6)))
    (root / "tags.csv").write_text("video,label,split\na,Run,train\nb,Jump,train\nb,Run,train\nc,Jump,test\n")
    return root


def test_own_data_goes_from_check_to_convert_to_check(
    own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run("check", own)
    assert "nothing is wrong" in capsys.readouterr().out
    _run("convert", own, "-o", tmp_path / "s", "--layout", "folder", "--dtype", "float16", "--fps", "30")
    out = capsys.readouterr().out
    assert "2 of 2" in out
    assert "without true instances" in out
    store = Store.open(tmp_path / "s")
    assert store.timebase("a").fps == 30.0
    assert store.dtype == "float16"
    _run("check", tmp_path / "s")
    assert "nothing is wrong" in capsys.readouterr().out


def test_check_ends_with_1_and_says_everything(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(own / "a.npy", np.full((3, 6), np.nan))
    np.save(own / "z.npy", np.ones((3, 6)))
    (own / "c.npy").unlink()
    with pytest.raises(SystemExit) as ended:
        _run("check", own)
    assert ended.value.code == 1
    out = capsys.readouterr().out
    assert "error a: features has 18 values that are NaN" in out
    assert "warning 1 of 1 test videos have no features: c" in out
    assert "note 1 feature files belong to no listed video: z" in out
    assert "1 error, 1 warning, 1 note" in out


def test_convert_refuses_and_leaves_nothing(own: Path, tmp_path: Path) -> None:
    (own / "b.npy").write_bytes((own / "b.npy").read_bytes()[:300])
    with pytest.raises(InputError, match=r"b\.npy is cut off"):
        _run("convert", own, "-o", tmp_path / "s")
    assert [entry.name for entry in tmp_path.iterdir()] == ["own"]
    _run("convert", own, "-o", tmp_path / "s", "--skip-bad")
    assert Store.open(tmp_path / "s").names() == ("a", "c")


def test_a_class_list_fixes_the_order_of_the_classes(own: Path, tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("Run\nJump\n")
    _run("convert", own, "-o", tmp_path / "s", "--classes", tmp_path / "classes.txt")
    assert Store.open(tmp_path / "s").classes == ("Run", "Jump")


def test_synthesize_from_scratch_and_for_an_annotation_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size = ("--train-videos", 6, "--test-videos", 3, "--n-classes", 3, "--dims", 16)
    _run("synthesize", "-o", tmp_path / "s", *size)
    assert "with true instances" in capsys.readouterr().out
    store = Store.open(tmp_path / "s")
    assert (len(store.names("train")), len(store.names("test")), store.dimensions) == (6, 3, 16)
    with pytest.raises(InputError, match="exists"):
        _run("synthesize", "-o", tmp_path / "s", *size)
    _run("synthesize", "-o", tmp_path / "s", *size, "--overwrite")
    assert Store.open(tmp_path / "s").fingerprint == store.fingerprint
    _run("synthesize", "-o", tmp_path / "again", "--gt", tmp_path / "s" / "gt.json", "--dims", 8)
    assert Store.open(tmp_path / "again").names() == tuple(sorted(store.names()))
