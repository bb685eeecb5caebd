"""`wtal evaluate`: score a prediction file against annotations, as a table or as JSON."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from wtal.cli import data_warnings_on_stderr
from wtal.cli.parse import run_command
from wtal.cli.table import print_table
from wtal.errors import DataWarning

if TYPE_CHECKING:
    from wtal.annotations import Annotations
    from wtal.evaluate import Case, Score
    from wtal.instances import Instances


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments and run."""
    run_command(evaluate, "wtal evaluate", arguments)


def evaluate(
    predictions: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="PRED")],
    annotations: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="GT")],
    protocol: str = "thumos14",
    ambiguous: Path | None = None,
    split: str | None = None,
    unit: Literal["seconds", "snippets"] = "seconds",
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
    per_class: bool = False,
    diagnose: bool = False,
) -> None:
    """Score predictions: mean average precision in percent at each tIoU threshold.

    Args:
        predictions: Predicted instances: ActivityNet JSON, or CSV with video,label,start,end,score.
        annotations: The truth: ActivityNet JSON.
        protocol: A name of wtal.evaluate.PROTOCOLS. thumos14 is the ActivityNet form (seconds, 210 videos);
            thumos14-wtalc the form of W-TALC and RSKP (whole snippets, all test videos); thumos14-paper is that with
            the ambiguity list on, as the paper's evaluator has it: compare its tables with this one. On the same
            predictions the three differ by points. activitynet13 has tIoU .5:.05:.95.
        ambiguous: Drop predictions that touch an interval of this list (Ambiguous_test.txt), whatever list the
            protocol has. Worth over a point, so the output always says whether one was on.
        split: Evaluate the videos of this split instead of the protocol's own.
        unit: What the predictions count in; snippets are 16 frames at 25 frames a second.
        as_json: Print one JSON object instead of tables.
        per_class: Show the average precision of each class too.
        diagnose: Show what the false positives at tIoU 0.5 are, what they cost, and which lengths are missed.
    """
    from wtal import evaluate as measures
    from wtal.formats import read_annotations, read_predictions
    from wtal.named import match_endings

    with data_warnings_on_stderr():
        truth = read_annotations(annotations)
        found = read_predictions(predictions, truth.classes, unit)
        known = match_endings(found, truth.videos)
        found = {known.get(name, name): instances for name, instances in found.items()}
        case = measures.prepare(
            found,
            truth,
            protocol=protocol,
            split=split,
            ambiguous=None if ambiguous is None else measures.read_ambiguous(ambiguous),
        )
        _warn_of_nothing(predictions, annotations, found, truth, len(case.predictions))
    score = measures.mean_average_precision(case)
    diagnosis = _diagnosis(case) if diagnose else None
    if as_json:
        import json

        print(json.dumps(_as_json(score, per_class, diagnosis), allow_nan=False))
    else:
        _print_tables(score, per_class, diagnosis)
        _say_if_decided(predictions, found)


def _warn_of_nothing(
    file: Path, gt: Path, found: "Mapping[str, Instances]", truth: "Annotations", n_scored: int
) -> None:
    """Say why the score is zero where there is nothing that could be right."""
    import warnings

    total = sum(map(len, found.values()))
    if not total:
        why = f"{file} holds no predictions"
    elif not any(name in truth.videos for name in found):
        why = f"no video of {file} (such as {min(found)}) is in {gt} (such as {min(truth.videos)})"
    elif not n_scored:
        why = f"none of the {total} predictions of {file} is of a video and a class that are scored here"
    else:
        return
    warnings.warn(f"{why}: every score is 0", DataWarning, stacklevel=2)


def _say_if_decided(file: Path, found: "Mapping[str, Instances]") -> None:
    """Say so where predictions seem to be decisions: mAP is of ranked lists, in which many overlap."""
    import sys

    from wtal.decide import overlaps_little

    # a handful of instances may well lie apart
    if sum(map(len, found.values())) >= 10 and all(map(overlaps_little, found.values())):
        said = (
            "as in decisions; mAP is meant for ranked lists, which wtal localize --all writes, and lower without them"
        )
        print(f"note: no two instances of a class overlap in {file}, {said}", file=sys.stderr)


def _as_json(score: "Score", per_class: bool, diagnosis: dict[str, Any] | None) -> dict[str, Any]:
    content = score.as_dict()
    if per_class:
        content["per_class"] = _rounded(dict(zip(score.classes, score.ap.tolist(), strict=True)))
    return content if diagnosis is None else {**content, "diagnosis": diagnosis}


def _diagnosis(case: "Case") -> dict[str, Any]:
    """Everything that `--diagnose` shows."""
    from dataclasses import asdict

    from wtal import evaluate as measures

    why = asdict(measures.diagnose(case))
    counts = (1, 5, 10, 50, 100)
    recall = 100.0 * measures.average_recall(case, counts=counts)
    shown = {name: why[name] for name in ("tiou", "counts", "gains", "n_missed", "lengths")}
    shown["average_recall"] = dict(zip(map(str, counts), recall.tolist(), strict=True))
    shown["video_level_map"] = measures.classification_map(*measures.video_level(case))
    plain: dict[str, Any] = _rounded(shown)
    return plain


def _rounded(value: Any) -> Any:
    """The same with numbers of four digits, and None for infinity, which JSON has no word for."""
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return None if value == float("inf") else round(value, 4) if isinstance(value, float) else value


def _print_tables(score: "Score", per_class: bool, diagnosis: dict[str, Any] | None) -> None:
    rows = [["mAP", *(f"{value:.2f}" for value in score.map)]]
    if per_class:
        rows += [[name, *(f"{value:.1f}" for value in ap)] for name, ap in zip(score.classes, score.ap, strict=True)]
    head = ("tIoU", *(f"{threshold:g}" for threshold in score.tiou))
    print_table(head, rows, title=f"{score.protocol}: mAP in percent")
    for name, value in score.average.items():
        print(f"average {name}: {value:.2f}")
    dropped = score.n_ambiguous
    list_used = "off" if dropped is None else f"on, {dropped} predictions dropped"
    print(
        f"{score.n_videos} videos, {score.n_truth} true instances of {len(score.classes)} classes, "
        f"{score.n_predictions} predictions; ambiguity list {list_used}"
    )
    if diagnosis is not None:
        _print_diagnosis(diagnosis)


def _print_diagnosis(diagnosis: dict[str, Any]) -> None:
    numbers = {**diagnosis["counts"], "missed": diagnosis["n_missed"]}
    errors = []
    for kind, number in numbers.items():
        gain = diagnosis["gains"].get(kind)
        errors.append((kind.replace("_", " "), str(number), "" if gain is None else f"{gain:+.2f}"))
    title = f"\nAt tIoU {diagnosis['tiou']:g}, the best 10 predictions per true instance"
    print_table(("kind", "number", "mAP without"), errors, title=title)
    lengths = []
    for each in diagnosis["lengths"]:
        seconds = f"over {each['over_s']:g}"
        if each["up_to_s"] is not None:
            seconds += f" to {each['up_to_s']:g}"
        share = f"{100 * each['n_found'] / each['n_truth']:.0f}%" if each["n_truth"] else "–"
        level = "–" if each["normalised_map"] is None else f"{each['normalised_map']:.1f}"
        lengths.append((each["name"], seconds, str(each["n_truth"]), share, level))
    head = ("length", "seconds", "true instances", "found", "normalised mAP")
    print_table(head, lengths, title="\nBy length of the true instance", left=(0, 1))
    recall = ", ".join(f"AR@{count} {share:.1f}" for count, share in diagnosis["average_recall"].items())
    print(f"\nproposals, whatever their class (tIoU .5:.05:.95): {recall}")
    print(f"classes of whole videos by their best instance: mAP {diagnosis['video_level_map']:.1f}")
