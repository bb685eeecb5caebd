"""Two processes that train together learn what one learns alone."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import pytest
from safetensors.torch import load_file

from wtal.data.store import Store


def test_two_processes_train_to_the_same_losses_as_one(
    store: Store, recipe: Path, whole_run: Path, tmp_path: Path, start: Callable[..., "Popen[str]"]
) -> None:
    """Dropout is on: its masks follow the video. The last step of an epoch has one video, fewer than processes."""
    run = tmp_path / "run"
    code = tmp_path / "command.py"
    code.write_text("from wtal.cli import main; main()")
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2, "--", code)
    process = start(*launch, "train", recipe, "--data", store.path, "--run", run)
    _, said = process.communicate()
    assert process.returncode == 0, said
    together, alone = (
        [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        for folder in (run, whole_run)
    )
    assert len(together) == len(alone)
    for ours, theirs in zip(together, alone, strict=True):
        for name in {"fore", "back", "attention", "spl", "pseudo", "epoch"} & theirs.keys():
            assert ours[name] == pytest.approx(theirs[name], rel=1e-3, abs=1e-4), (name, theirs["epoch"])
    assert json.loads((run / "environment.json").read_text())["processes"] == 2
    weights, expected = (load_file(folder / "model" / "model.safetensors") for folder in (run, whole_run))
    for name, value in expected.items():
        assert (weights[name].float() - value.float()).abs().max() < 1e-2, name
