"""A trained model to hand on: a folder that `Localizer.load` takes wherever it is copied, with a card for people.

DIR/model.json          what has to be known beside the weights, with the calibration if there is one
DIR/model.safetensors   the weights; in teacher/, teacher-2/, … the same of a detector's teachers
DIR/classes.txt         the class names, one a line, in the order of their numbers
DIR/config.yaml         the recipe
DIR/evaluation.json     the scores on the run's test videos
DIR/README.md           the card: how to use it, scores, training data, limits
DIR/model.onnx          the network alone, if asked for
"""

import shutil
from pathlib import Path

from wtal.card import model_folder, read_card, teacher_folder
from wtal.errors import InputError
from wtal.export.readme import card_text
from wtal.files import copy_whole
from wtal.localize import Localizer
from wtal.training.run import Run

__all__ = ["export"]


def export(run: Path | str, folder: Path | str, *, onnx: bool = False, overwrite: bool = False) -> tuple[str, ...]:
    """Write a trained model as a folder to hand on, atomically.

    Args:
        run: A finished run's folder, or its folder `model`.
        folder: Where to write; it must not be there yet.
        onnx: Whether to write the networks as ONNX graphs too, checked against torch (extra `onnx`).
        overwrite: Replace a folder that was exported before.

    Returns:
        The files that were written, by their names in the folder.
    """
    run, folder = Path(run), Path(folder)
    card = read_card(run)
    if folder.exists() and not (overwrite and (folder / "model.json").is_file()) and any(folder.iterdir()):
        hint = "--overwrite replaces it" if (folder / "model.json").is_file() else "choose another folder"
        raise InputError(f"{folder} is there already; {hint}")
    localizer = Localizer.load(run, device="cpu")

    def finish(made: Path) -> None:
        (made / "classes.txt").write_text("".join(f"{name}\n" for name in card.classes), encoding="utf-8")
        for name in ("config.yaml", "evaluation.json"):
            if (run / name).is_file():
                shutil.copyfile(run / name, made / name)
        outputs = _write_graphs(made, localizer) if onnx else {}
        teachers = [teacher.card for teacher in localizer.teachers]
        text = card_text(card, Run(run), teachers=teachers, outputs=outputs)
        (made / "README.md").write_text(text, encoding="utf-8")

    copy_whole(model_folder(run), folder, finish)
    return tuple(path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file())


def _write_graphs(folder: Path, localizer: Localizer) -> dict[str, tuple[str, ...]]:
    """The outputs of each graph by the name of its file."""
    from wtal.export.onnx import write_onnx

    parts = {folder: localizer}
    parts |= {teacher_folder(folder, number): one for number, one in enumerate(localizer.teachers)}
    return {
        (place.relative_to(folder) / "model.onnx").as_posix(): write_onnx(place / "model.onnx", part.model, part.card)
        for place, part in parts.items()
    }
