"""`wtal evaluate`: score a prediction file against annotations, as a table or as JSON."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

if TYPE_CHECKING:
    from rich.console import Console

    from wtal.evaluate import Case, Score


def main(arguments: Sequence[str]) -> None:
    """Parse the arguments and run."""
    tyro.cli(evaluate, prog="wtal evaluate", args=list(arguments))


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

    with data_warnings_on_stderr():
        truth = read_annotations(annotations)
        case = measures.prepare(
            read_predictions(predictions, truth.classes, unit),
            truth,
            protocol=protocol,
            split=split,
            ambiguous=None if ambiguous is None else measures.read_ambiguous(ambiguous),
        )
    score = measures.mean_average_precision(case)
    diagnosis = _diagnosis(case) if diagnose else None
    if as_json:
        import json

        print(json.dumps(_as_json(score, per_class, diagnosis), allow_nan=False))
    else:
        _print_tables(score, per_class, diagnosis)


@contextmanager
def data_warnings_on_stderr() -> Iterator[None]:
    """Show what is odd in the data as one plain line each, without the place in our code that noticed it."""
    import sys
    import warnings

    from wtal.errors import DataWarning

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        print(f"warning: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        warnings.showwarning = show
        yield


def _as_json(score: "Score", per_class: bool, diagnosis: dict[str, Any] | None) -> dict[str, Any]:
    content = score.as_dict()
    if per_class:
        content["per_class"] = {name: _points(ap) for name, ap in zip(score.classes, score.ap.tolist(), strict=True)}
    if diagnosis is not None:
        content["diagnosis"] = diagnosis
    return content


def _diagnosis(case: "Case") -> dict[str, Any]:
    """Everything that `--diagnose` shows."""
    from wtal import evaluate as measures

    why = measures.diagnose(case)
    counts = (1, 5, 10, 50, 100)
    return {
        "tiou": why.tiou,
        "counts": why.counts,
        "gains": dict(zip(why.gains, _points(list(why.gains.values())), strict=True)),
        "n_missed": why.n_missed,
        "lengths": [
            {
                "name": each.name,
                "over_s": each.over_s,
                "up_to_s": each.up_to_s if each.up_to_s < float("inf") else None,
                "n_truth": each.n_truth,
                "n_found": each.n_found,
                "normalised_map": None if each.normalised_map is None else round(each.normalised_map, 4),
            }
            for each in why.lengths
        ],
        "average_recall": {
            str(count): round(100.0 * share, 4)
            for count, share in zip(counts, measures.average_recall(case, counts=counts).tolist(), strict=True)
        },
        "video_level_map": round(measures.classification_map(*measures.video_level(case)), 4),
    }


def _points(values: list[float]) -> list[float]:
    return [round(value, 4) for value in values]


def _print_tables(score: "Score", per_class: bool, diagnosis: dict[str, Any] | None) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title=f"{score.protocol}: mAP in percent")
    for heading in ("tIoU", *(f"{threshold:g}" for threshold in score.tiou)):
        table.add_column(heading, justify="left" if heading == "tIoU" else "right")
    if per_class:
        for name, ap in zip(score.classes, score.ap, strict=True):
            table.add_row(name, *(f"{value:.1f}" for value in ap))
        table.add_section()
    table.add_row("mAP", *(f"{value:.2f}" for value in score.map), style="bold")
    console.print(table)
    for name, value in score.average.items():
        console.print(f"average {name}: [bold]{value:.2f}[/bold]", highlight=False)
    dropped = score.n_ambiguous
    list_used = "off" if dropped is None else f"on, {dropped} predictions dropped"
    console.print(
        f"{score.n_videos} videos, {score.n_truth} true instances of {len(score.classes)} classes, "
        f"{score.n_predictions} predictions; ambiguity list {list_used}",
        highlight=False,
        soft_wrap=True,
    )
    if diagnosis is not None:
        _print_diagnosis(console, diagnosis)


def _print_diagnosis(console: "Console", diagnosis: dict[str, Any]) -> None:
    from rich.table import Table

    errors = Table(title=f"At tIoU {diagnosis['tiou']:g}", caption="the best 10 predictions per true instance")
    for heading in ("kind", "number", "mAP without"):
        errors.add_column(heading, justify="left" if heading == "kind" else "right")
    numbers = {**diagnosis["counts"], "missed": diagnosis["n_missed"]}
    for kind, number in numbers.items():
        gain = diagnosis["gains"].get(kind)
        errors.add_row(kind.replace("_", " "), str(number), "" if gain is None else f"{gain:+.2f}")
    console.print(errors)
    lengths = Table(title="By length of the true instance")
    for heading in ("length", "seconds", "true instances", "found", "normalised mAP"):
        lengths.add_column(heading, justify="left" if heading in ("length", "seconds") else "right")
    for each in diagnosis["lengths"]:
        seconds = f"over {each['over_s']:g}"
        if each["up_to_s"] is not None:
            seconds += f" to {each['up_to_s']:g}"
        share = f"{100 * each['n_found'] / each['n_truth']:.0f}%" if each["n_truth"] else "–"
        level = "–" if each["normalised_map"] is None else f"{each['normalised_map']:.1f}"
        lengths.add_row(each["name"], seconds, str(each["n_truth"]), share, level)
    console.print(lengths)
    recall = ", ".join(f"AR@{count} {share:.1f}" for count, share in diagnosis["average_recall"].items())
    console.print(f"proposals, whatever their class (tIoU .5:.05:.95): {recall}", highlight=False, soft_wrap=True)
    console.print(
        f"classes of whole videos by their best instance: mAP {diagnosis['video_level_map']:.1f}",
        highlight=False,
        soft_wrap=True,
    )
