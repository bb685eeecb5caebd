"""A run's folder: what was asked, on which machine, how it went, and what came out.

RUN/config.yaml         the recipe with every default filled in
RUN/environment.json    versions, commit, seed, threads, the data set's fingerprint
RUN/metrics.jsonl       one line per epoch, and one per generation of labels
RUN/tensorboard/        the same as curves, if asked for
RUN/checkpoints/        the newest two
RUN/targets/            each generation of pseudo labels
RUN/model/              the trained model, for Localizer.load
RUN/predictions.json    its instances in the test videos, in seconds
RUN/evaluation.json     their scores, where the truth is known
"""

import json
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from wtal.data.store import Store
from wtal.errors import InputError
from wtal.evaluate import score
from wtal.files import read_json, written_whole
from wtal.instances import Instances
from wtal.training.config import Recipe, read_recipe, write_recipe
from wtal.typed import differences, plain


@dataclass(frozen=True)
class Run:
    """The folder of one run."""

    path: Path

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints lie."""
        return self.path / "checkpoints"

    def targets(self, epoch: int) -> Path:
        """Where the labels that were made at the start of `epoch` lie."""
        return self.path / "targets" / f"epoch-{epoch:04d}.npz"

    @property
    def evaluation(self) -> dict[str, Any] | None:
        """The final scores by protocol; None if the truth was not known or the run has not ended."""
        return read_json(self.path / "evaluation.json")

    def environment(self) -> dict[str, Any] | None:
        """What was written about machine and data when the run began; None if it has not begun."""
        return read_json(self.path / "environment.json")

    def begin(self, recipe: Recipe, environment: dict[str, Any]) -> None:
        """Write down what is asked, in a folder that holds no other run."""
        write_recipe(self.path / "config.yaml", recipe)
        with written_whole(self.path / "environment.json") as file:
            json.dump(environment, file, indent=1)
            file.write("\n")

    def refuse_other_work(self, recipe: Recipe, store: Store) -> None:
        """Make sure that this folder's run is of the same recipe and data set."""
        known = self.environment()
        if known and known["data"]["fingerprint"] != store.fingerprint:
            raise InputError(
                f"{self.path} was trained on another data set ({known['data']['path']}, fingerprint "
                f"{known['data']['fingerprint'][:8]}) than {store.path} ({store.fingerprint[:8]}); resume with that "
                "one, or start anew in another --run folder"
            )
        if (self.path / "config.yaml").exists():
            changed = differences(plain(read_recipe(self.path / "config.yaml")), plain(recipe))
            if changed:
                raise InputError(
                    f"{self.path} was begun with another recipe: {'; '.join(changed)}. Resume with its own, "
                    f"{self.path / 'config.yaml'}, or start anew in another --run folder"
                )

    def begun_seed(self) -> int | None:
        """The seed of the run in this folder, if there is one."""
        path = self.path / "config.yaml"
        return read_recipe(path).seed if path.exists() else None

    def log(self, line: Mapping[str, Any]) -> None:
        """Append a line to metrics.jsonl."""
        try:
            with (self.path / "metrics.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            raise InputError(
                f"cannot write {self.path / 'metrics.jsonl'}: {error.strerror}; --resume goes on"
            ) from error

    def metrics(self) -> tuple[list[dict[str, Any]], list[int]]:
        """The entries of metrics.jsonl, and the numbers of lines that cannot be read; nothing of a run not begun."""
        path = self.path / "metrics.jsonl"
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return [], []
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read {path}: {error}") from error
        entries, damaged = [], []
        for number, line in enumerate(text.splitlines(), start=1):
            try:
                entry = json.loads(line)
                entries.append({**entry, "epoch": int(entry["epoch"])})
            except (ValueError, TypeError, KeyError):
                damaged.append(number)
        return entries, damaged

    def rewind_log(self, epoch: int, targets_epoch: int | None) -> None:
        """Drop what was logged after the checkpoint that is gone on from, and a half-written last line."""
        kept = []
        for entry in self.metrics()[0]:
            # labels are made at the start of an epoch, all else is logged at its end
            made = entry.get("event") == "labels"
            if (targets_epoch is not None and entry["epoch"] <= targets_epoch) if made else entry["epoch"] < epoch:
                kept.append(entry)
        with written_whole(self.path / "metrics.jsonl") as file:
            file.writelines(f"{json.dumps(entry)}\n" for entry in kept)

    def evaluate(self, predictions: dict[str, Instances], store: Store, recipe: Recipe) -> None:
        """Score the predictions by the recipe's protocols and write evaluation.json, if the truth is known."""
        scores = scored(predictions, store, recipe)
        if scores is not None:
            with written_whole(self.path / "evaluation.json") as file:
                json.dump(scores, file, indent=1)
                file.write("\n")


def scored(predictions: dict[str, Instances], store: Store, recipe: Recipe) -> dict[str, Any] | None:
    """The scores of predictions by the recipe's protocols; None where the truth of its test videos is not known."""
    if not (store.path / "gt.json").exists():
        return None
    truth = store.truth()
    split = recipe.test_split
    if not any(video.subset == split and len(video.instances) for video in truth.videos.values()):
        return None
    known = {name: found for name, found in predictions.items() if name in truth.videos}
    scores = {}
    for protocol in recipe.test.protocols:
        result = score(known, truth, protocol=protocol, subset=split)
        scores[protocol] = {
            "tiou": list(result.tiou),
            "map": [round(value, 4) for value in result.map.tolist()],
            "average": {name: round(value, 4) for name, value in result.average.items()},
            "ambiguous_list": result.n_ambiguous is not None,
            "n_videos": result.n_videos,
            "n_truth": result.n_truth,
            "n_predictions": result.n_predictions,
        }
    return scores


def describe_environment(store: Store, recipe: Recipe, *, threads: int, device: str, processes: int) -> dict[str, Any]:
    """All that may matter for a result beside the recipe."""
    versions = {}
    for package in ("wtal", "torch", "numpy", "safetensors", "highspy", "numba"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "unknown"
    return {
        "data": {"path": str(store.path.resolve()), "fingerprint": store.fingerprint, "held_out": store.part},
        "seed": recipe.seed,
        "threads": threads,
        "device": device,
        "processes": processes,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "versions": versions,
        "commit": _commit(),
    }


def _commit() -> str | None:
    """The commit that this package is at, with a + if files differ from it; None outside a checkout."""
    here = Path(__file__).resolve()

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here.parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", here.name)  # an environment inside somebody else's checkout is not ours
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", str(here.parents[1])) else "")
    except (OSError, subprocess.SubprocessError):
        return None
