"""The card of an exported model, in Markdown: what it is, how to use it, how good it is, what it cannot do."""

from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from wtal.card import Card, teacher_folder
from wtal.training.run import Run
from wtal.video.extractor import EXTRAS

#: what the graphs' outputs are
_OUTPUTS = {
    "tcam": "activation of each snippet and class",
    "attention": "how much each snippet matters",
    "video_scores": "class scores of the whole video",
    "segments": "start and end of each cell's box, in snippets, by network",
    "scores": "class scores of each cell's box, by network; 0 in gaps",
}


def card_text(card: Card, run: Run, *, teachers: Sequence[Card], outputs: Mapping[str, tuple[str, ...]]) -> str:
    """The card of a model, from its own record and what its run knows.

    Args:
        card: What has to be known beside the weights.
        run: The run's folder; what it lacks is not told.
        teachers: The cards of a detector's teachers.
        outputs: The outputs of each ONNX graph, by the name of its file.
    """
    told = [f"{_code(one.model)} in `{teacher_folder(Path(), n)}/`" for n, one in enumerate(teachers)]
    whose = "its teacher" if len(told) == 1 else "its teachers"
    pair = f", a detector, together with {whose}: {', '.join(told)}" if told else ""
    parts = [
        "---\nlibrary_name: wtal\ntags: [temporal-action-localization, weak-supervision, video]\n---",
        "# Temporal action localization, learned from tags",
        f"A model of wtal that finds when actions of {len(card.classes)} classes happen in untrimmed videos. "
        f"The network is {_code(card.model)}{pair}.",
        "## Use",
        _use(card),
        "## Scores",
        _scores(run),
        "## Training",
        _training(card, run),
        "## Limits",
        _limits(card),
        "## Classes",
        " · ".join(_code(name) for name in card.classes),
    ]
    if outputs:
        parts += ["## ONNX", _graphs(card, outputs)]
    return "\n\n".join(parts) + "\n"


def _use(card: Card) -> str:
    made = card.extraction
    extra = "train" if made is None else EXTRAS.get(made.extractor, "video")
    lines = [
        "```",
        f"pip install 'wtal[{extra}]'",
        f"wtal localize THIS_FOLDER {'--features STORE' if made is None else 'video.mp4'}",
        "```",
        "",
        "```python",
        "import wtal",
        "",
        'model = wtal.Localizer.load("THIS_FOLDER")',
        f"instances = model(features)   # (snippets, {card.dimensions}); start, end in seconds, class, score",
        "```",
        "",
    ]
    if made is None:
        return "\n".join(
            [*lines, "The features were made elsewhere; a video file needs the same ones (`--extractor`)."]
        )
    text = f"Features are made by the extractor {_code(made.extractor)} ({made.sampling})."
    if made.weights:
        text += " Its weights are not in this folder: `wtal weights` says where they are published."
    return "\n".join([*lines, text])


def _scores(run: Run) -> str:
    found: Mapping[str, Any] = (run.evaluation if run.ended else None) or {}
    if not found:
        return "Not measured: the test videos had no annotated instances."
    lines = []
    for protocol, one in found.items():
        average = ", ".join(f"{value:.1f} over {name}" for name, value in one["average"].items())
        head = " | ".join(f"{tiou:g}" for tiou in one["tiou"])
        values = " | ".join(f"{value:.1f}" for value in one["map"])
        lines += [
            f"Protocol `{protocol}`: mean mAP {average}; {one['n_videos']} videos, {one['n_truth']} true instances.",
            "",
            f"| tIoU | {head} |",
            f"|---|{'---:|' * len(one['tiou'])}",
            f"| mAP (%) | {values} |",
            "",
        ]
    return "\n".join(lines).rstrip()


def _training(card: Card, run: Run) -> str:
    lines = ["- Learned from tags that say what happens in a video, not when."]
    if run.begun:
        recipe, environment = run.recipe, run.environment() or {}
        data = environment.get("data", {})
        name = str(data.get("path", "")).replace("\\", "/").rstrip("/").rpartition("/")[2]
        held_out = f", without part {data['held_out']}" if data.get("held_out") else ""
        lines += [
            f"- Data: {_code(name)}, split {_code(recipe.train_split)}{held_out}, fingerprint "
            f"{_code(str(data.get('fingerprint', ''))[:16])}.",
            f"- {recipe.epochs} epochs, {recipe.batch_videos} videos a step, seed {recipe.seed}; the recipe is in "
            "`config.yaml`.",
        ]
    try:
        made_by = version("wtal")
    except PackageNotFoundError:  # run from a checkout that is not installed
        made_by = "unknown"
    clock = card.timebase
    rate = clock.fps / clock.stride_frames
    return "\n".join([*lines, f"- {rate:.3g} snippets a second; exported by wtal {made_by}."])


def _limits(card: Card) -> str:
    lines = [
        "- It knows the classes below and no others, and finds them in videos like those it was trained on.",
        "- Boundaries were never shown to it: they are where evidence for the class begins and ends, and the more "
        "exact an answer has to be, the more often it is wrong (see the scores at high tIoU).",
    ]
    if card.calibration is None:
        lines.append("- Scores rank instances; they are no probabilities.")
    else:
        lines.append("- The calibrated confidence speaks of the class, not of the boundary.")
    if card.segments is not None:
        lines.append(f"- Of a longer video the model is shown {card.segments} snippets, evenly spread.")
    return "\n".join(lines)


def _graphs(card: Card, outputs: Mapping[str, tuple[str, ...]]) -> str:
    lines = [
        f"Input `features`: float32 (snippets, {card.dimensions}), one video of any length. What turns outputs into "
        "instances (candidates, fusion, time) is not in the graph; `wtal localize --tcam` does it for saved maps. "
        "Checked against torch to 1e-4 with onnxruntime when this was exported.",
        "",
        "| file | output | |",
        "|---|---|---|",
    ]
    for file, names in outputs.items():
        for name in names:
            known = next((text for key, text in _OUTPUTS.items() if name == key or name.startswith(f"{key}_")), "")
            lines.append(f"| `{file}` | `{name}` | {known} |")
    return "\n".join(lines)


def _code(text: str) -> str:
    """The text as code, whatever is in it: a class name must not become a heading, a link or HTML."""
    plain = " ".join(text.split())
    longest = max((len(run) for run in plain.replace("`", " ` ").split(" ") if set(run) == {"`"}), default=0)
    fence = "`" * (1 if "`" not in plain else longest + plain.count("`") + 1)
    return f"{fence} {plain} {fence}" if "`" in plain else f"`{plain}`"
