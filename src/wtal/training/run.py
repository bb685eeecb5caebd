"""A run's folder: what was asked, on which machine, how it went, and what came out.

RUN/config.yaml         the recipe with every default filled in
RUN/environment.json    versions, commit, seed, threads, the data set's fingerprint
RUN/metrics.jsonl       one line per epoch, and one per generation of labels
RUN/tensorboard/        the same as curves, if asked for
RUN/checkpoints/        the newest two
RUN/targets/            each generation of pseudo labels
RUN/model/              the trained model, for Localizer.load; in teacher/, teacher-2/, … those of a detector's teachers
RUN/corrections.json    the corrected videos that were learned from, if any
RUN/boxes.json          what a detector is taught, in seconds; a box's score is its weight
RUN/predictions.json    its instances in the test videos, in seconds
RUN/held-out.json       those in training videos, each by a model trained without it; confidence is fitted to them
RUN/folds/              these models, while they are trained
RUN/evaluation.json     their scores, {} where the truth is not known; written last: a run that has it has ended
"""

import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from wtal.card import model_folder, teacher_folder
from wtal.data.store import Store
from wtal.errors import InputError
from wtal.evaluate import score
from wtal.files import copy_whole, written_whole
from wtal.formats import read_predictions
from wtal.instances import Instances
from wtal.reading import from_json, read_json_object, read_text, refusing
from wtal.training.config import Recipe, read_recipe, write_recipe
from wtal.typed import differences, plain


@dataclass(frozen=True)
class Log:
    """What a run has logged, and the numbers of lines that cannot be read."""

    entries: tuple[dict[str, Any], ...] = ()
    damaged: tuple[int, ...] = ()

    @property
    def epochs(self) -> list[dict[str, Any]]:
        """What was logged at the end of each epoch."""
        return [line for line in self.entries if "event" not in line]

    @property
    def epochs_done(self) -> int:
        """How many epochs have ended."""
        return max((line["epoch"] + 1 for line in self.epochs), default=0)

    def events(self, kind: str) -> list[dict[str, Any]]:
        """What was logged beside the epochs: `labels` or `evaluation`."""
        return [line for line in self.entries if line.get("event") == kind]

    @property
    def generations(self) -> list[int]:
        """The epochs at whose start pseudo labels were made."""
        return [line["epoch"] for line in self.events("labels")]


@dataclass(frozen=True)
class Run:
    """The folder of one run."""

    path: Path

    @property
    def begun(self) -> bool:
        """Whether the folder holds a run: its recipe is written last of what a run begins with."""
        return (self.path / "config.yaml").exists()

    @property
    def ended(self) -> bool:
        """Whether the run is done with everything: its scores are written last, {} if there are none."""
        return (self.path / "evaluation.json").exists()

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe that the run was begun with."""
        return read_recipe(self.path / "config.yaml")

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints lie."""
        return self.path / "checkpoints"

    def targets(self, epoch: int) -> Path:
        """Where the labels that were made at the start of `epoch` lie."""
        return self.path / "targets" / f"epoch-{epoch:04d}.npz"

    def predictions(self, classes: Sequence[str]) -> dict[str, Instances] | None:
        """The instances that were found in the test videos; None if there are none (yet)."""
        path = self.path / "predictions.json"
        return read_predictions(path, classes) if path.exists() else None

    @property
    def corrections(self) -> Path:
        """Where the corrections lie that are learned from."""
        return self.path / "corrections.json"

    @property
    def held_out(self) -> Path:
        """Where instances of training videos lie, each by a model that has not learned from the video."""
        return self.path / "held-out.json"

    def fold(self, number: int, of: int) -> "Run":
        """The run that is trained without one of `of` parts of the videos."""
        return Run(self.path / "folds" / f"{number}of{of}")

    @property
    def boxes(self) -> Path:
        """Where the boxes lie that a detector is taught."""
        return self.path / "boxes.json"

    @property
    def teachers(self) -> tuple[Path, ...]:
        """Where the copies of a detector's teachers lie."""
        places = (teacher_folder(self.path / "model", number) for number in count())
        return tuple(takewhile(Path.is_dir, places))

    def take_teachers(self, teachers: Sequence[Path]) -> None:
        """Copy a detector's teachers into the run, which then needs nothing from elsewhere."""
        for before in reversed(self.teachers):  # of an attempt that was cut short
            shutil.rmtree(before)
        for number, one in enumerate(teachers):
            copy_whole(model_folder(one), teacher_folder(self.path / "model", number))

    def first_stages(self, recipe: Recipe) -> tuple[str, ...]:
        """The recipes of the teachers that have to be trained first, if the recipe names any and the run has none."""
        return () if recipe.boxes is None or self.boxes.exists() else recipe.boxes.teachers

    def check_teachers(self, recipe: Recipe, given: Sequence[Path | str]) -> None:
        """Refuse teachers for a model that is no detector, and a detector that is given too many or too few."""
        if recipe.boxes is None and given:
            raise InputError(f"a teacher is for detectors, and {recipe.model} is none (its recipe has no boxes)")
        if recipe.boxes is not None and not given and not self.boxes.exists():
            raise InputError("this recipe teaches a detector and needs a trained run to learn from: `teacher=RUN`")
        if given and recipe.test.pool is not None:
            recipe.test.pool.refuse_other_number(len(given))

    @property
    def evaluation(self) -> dict[str, Any] | None:
        """The final scores by protocol, empty if the truth was not known; None if the run has not ended."""
        path = self.path / "evaluation.json"
        content = read_json_object(path)
        with refusing(path):
            for protocol, one in (content or {}).items():
                _refuse_wrong_scores(protocol, one)
        return content

    def environment(self) -> dict[str, Any] | None:
        """What was written about machine and data when the run began; None if it has not begun."""
        path = self.path / "environment.json"
        content = read_json_object(path) if self.begun else None
        about = {} if content is None else content.get("data", {})
        known = isinstance(about, dict) and [about.get(key, "") for key in ("path", "fingerprint")]
        if not known or not all(isinstance(value, str) for value in known):
            raise InputError(f"{path} is damaged: its data set is {about}")
        return content

    def begin(self, recipe: Recipe, environment: dict[str, Any]) -> None:
        """Write down what is asked, in a folder that holds no other run; the recipe last, which makes it one."""
        self._write_json("environment.json", environment)
        write_recipe(self.path / "config.yaml", recipe)

    def refuse_other_work(self, recipe: Recipe, store: Store) -> None:
        """Make sure that this folder's run is of the same recipe and data set."""
        known = self.environment()
        if known and known["data"]["fingerprint"] != store.fingerprint:
            raise InputError(
                f"{self.path} was trained on another data set ({known['data']['path']}, fingerprint "
                f"{known['data']['fingerprint'][:8]}) than {store.path} ({store.fingerprint[:8]}); resume with that "
                "one, or start anew in another folder: `run=DIR`"
            )
        changed = (
            differences(plain(self.recipe), plain(recipe.with_precision(self.recipe.precision))) if self.begun else None
        )
        if changed:
            raise InputError(
                f"{self.path} was begun with another recipe: {'; '.join(changed)}. Resume with its own, "
                f"{self.path / 'config.yaml'}, or start anew in another folder: `run=DIR`"
            )

    def log(self, line: Mapping[str, Any]) -> None:
        """Append a line to metrics.jsonl."""
        try:
            with (self.path / "metrics.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            raise InputError(
                f"cannot write {self.path / 'metrics.jsonl'}: {error.strerror}; `resume=True` goes on"
            ) from error

    def metrics(self) -> Log:
        """What metrics.jsonl holds; nothing of a run that has not begun."""
        path = self.path / "metrics.jsonl"
        if not path.exists():
            return Log()
        entries, damaged = [], []
        for number, line in enumerate(read_text(path).splitlines(), start=1):
            try:
                entries.append(_logged(from_json(line, path)))
            except InputError:
                damaged.append(number)
        return Log(tuple(entries), tuple(damaged))

    def rewind_log(self, epoch: int, targets_epoch: int | None) -> None:
        """Drop what was logged after the checkpoint that is gone on from, and a half-written last line."""
        kept = []
        for entry in self.metrics().entries:
            # labels are made at the start of an epoch, all else is logged at its end
            made = entry.get("event") == "labels"
            if (targets_epoch is not None and entry["epoch"] <= targets_epoch) if made else entry["epoch"] < epoch:
                kept.append(entry)
        with written_whole(self.path / "metrics.jsonl") as file:
            file.writelines(f"{json.dumps(entry)}\n" for entry in kept)

    def evaluate(self, predictions: dict[str, Instances], store: Store, recipe: Recipe) -> None:
        """Score the predictions by the recipe's protocols and write evaluation.json, which ends the run."""
        self._write_json("evaluation.json", scored(predictions, store, recipe))

    def _write_json(self, name: str, content: dict[str, Any]) -> None:
        with written_whole(self.path / name) as file:
            json.dump(content, file, indent=1)
            file.write("\n")


def _refuse_wrong_scores(protocol: str, one: Any) -> None:
    tiou, values, averages = one["tiou"], one["map"], list(one["average"].values())
    counts = [one[key] for key in ("n_videos", "n_truth")]
    if not (len(tiou) == len(values) > 0 and averages and all(map(_is_number, [*tiou, *values, *averages, *counts]))):
        raise InputError(f"the scores by {protocol} are not numbers, or not one for each tIoU")
    if not isinstance(one.get("ambiguous", {}), dict):
        raise InputError(f"{protocol} does not say whether ambiguous intervals were left out")


def _logged(entry: Any) -> dict[str, Any]:
    """A line of the log, if it is one: numbers by name, or an event."""
    if not isinstance(entry, dict) or not _is_number(entry.get("epoch")) or not 0 <= entry["epoch"] < 2**31:
        raise InputError("no epoch")
    rest = [value for key, value in entry.items() if key not in ("epoch", "event")]
    if "event" not in entry and not all(value is None or _is_number(value) for value in rest):
        raise InputError("losses that are no numbers")
    if entry.get("event") == "evaluation":
        averages = entry.get("average")
        if not isinstance(averages, dict) or not all(isinstance(one, dict) for one in averages.values()):
            raise InputError("no scores")
        if not all(_is_number(value) for one in averages.values() for value in one.values()):
            raise InputError("scores that are no numbers")
    return {**entry, "epoch": int(entry["epoch"])}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def scored(predictions: dict[str, Instances], store: Store, recipe: Recipe) -> dict[str, Any]:
    """The scores of predictions by the recipe's protocols; none where the truth of its test videos is not known."""
    if not predictions or not store.has_truth:
        return {}
    truth = store.truth()
    split = recipe.test_split
    if not any(video.split == split and len(video.instances) for video in truth.videos.values()):
        return {}
    known = {name: found for name, found in predictions.items() if name in truth.videos}
    return {name: score(known, truth, protocol=name, split=split).as_dict() for name in recipe.test.protocols}


def describe_environment(store: Store, recipe: Recipe, *, threads: int, device: str, processes: int) -> dict[str, Any]:
    """All that may matter for a result beside the recipe."""
    versions = {}
    for package in ("wtal", "torch", "numpy", "safetensors", "highspy", "numba"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "unknown"
    return {
        "data": {"path": store.place, "fingerprint": store.fingerprint, "held_out": store.part},
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
