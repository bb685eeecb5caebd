"""A trained model as an ONNX graph: the features of one video of any length in, what the model says of it out."""

import json
import logging
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wtal.card import Card
from wtal.errors import InputError, MissingExtraError, missing_extra
from wtal.files import written_whole
from wtal.models.detector import Detector
from wtal.models.protocol import Batch, Model

#: how far the graph's outputs may be from torch's, absolutely and relatively
TOLERANCE = 1e-4
#: numbers of snippets that it is tried with; it is made with another one
TRIED = (1, 2, 37, 160)


def write_onnx(path: Path, model: Model, card: Card) -> tuple[str, ...]:
    """The names of the outputs of the graph that was written, which agrees with torch.

    `tcam` (snippets, columns), `attention` (snippets,) and `video_scores` (columns,), for each stream if there are
    several; of a detector `segments` (networks, cells, 2) in snippets and `scores` (networks, cells, classes). Columns
    beyond the classes are background.
    """
    try:
        import onnxruntime
        import onnxscript  # noqa: F401  which torch's exporter needs
    except ImportError as error:
        raise missing_extra(error) or MissingExtraError(error.name or "onnx", "onnx") from error
    graph = _Graph(model.cpu(), list(card.streams) if card.stream_weights else []).eval()
    example = _features(24, card.dimensions)
    outputs = tuple(graph.outputs)
    logging.disable(logging.WARNING)  # of operators that torchvision would have
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what torch itself uses
            made = torch.onnx.export(
                graph,
                (example,),
                dynamo=True,
                input_names=["features"],
                output_names=list(outputs),
                dynamic_shapes=({0: torch.export.Dim("snippets", min=1)},),
                custom_translation_table={torch.ops.aten.linalg_inv_ex.default: _inverse()},
                verbose=False,
            )
    except Exception as error:  # whatever an exporter raises
        why = _root(error)
        said = (str(why).strip().splitlines() or [type(why).__name__])[0]
        raise InputError(f"the model {card.model} cannot be exported to ONNX: {said[:300]}") from error
    finally:
        logging.disable(logging.NOTSET)
    assert made is not None
    made.model.metadata_props.update(classes=json.dumps(card.classes, ensure_ascii=False), producer="wtal")
    proto = made.model_proto.SerializeToString()
    session = onnxruntime.InferenceSession(proto, providers=["CPUExecutionProvider"])
    for length in TRIED:
        _compare(graph, session, _features(length, card.dimensions), outputs, card)
    with written_whole(path, "wb") as file:
        file.write(proto)
    return outputs


def _root(error: BaseException) -> BaseException:
    """What was wrong at first."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


class _Graph(nn.Module):
    """A model as a function of one video's features, with named outputs."""

    def __init__(self, model: Model, streams: list[str]) -> None:
        super().__init__()
        self.model, self.streams = model, streams
        self.outputs = [
            name if not streams else f"{name}_{stream}"
            for stream in streams or [""]
            for name in ("tcam", "attention", "video_scores")
        ]
        if isinstance(model, Detector):
            self.outputs = ["segments", "scores"]
            model.precision = "float32"  # as graphs compute

    def forward(self, features: Tensor) -> tuple[Tensor, ...]:
        with torch.no_grad():
            if isinstance(self.model, Detector):
                return self.model.boxes(features)
            output = self.model(Batch(features, (features.shape[0],)))
            return tuple(value for one in output.maps for value in (one.tcam, one.attention, one.video_scores[0]))


def _features(length: int, d: int) -> Tensor:
    values = np.random.default_rng(length).random((length, d), dtype=np.float32)
    return torch.from_numpy(values)


def _compare(graph: _Graph, session: Any, features: Tensor, outputs: Iterable[str], card: Card) -> None:
    expected = graph(features)
    found = session.run(None, {"features": features.numpy()})
    for name, want, got in zip(outputs, expected, found, strict=True):
        off = np.abs(want.numpy() - got) - TOLERANCE * np.abs(want.numpy())
        if want.shape != got.shape or not (off <= TOLERANCE).all():
            raise InputError(
                f"the ONNX graph of {card.model} differs from torch in {name} by {np.nanmax(off):.2g} "
                f"for {len(features)} snippets; nothing was written"
            )


def _inverse() -> Any:
    """Inverses of small well-conditioned matrices by Newton's iteration: ONNX has no operator for them."""
    from onnxscript import opset18

    op: Any = opset18

    def inverse(a: Any, check_errors: bool = False) -> Any:  # noqa: ARG001
        eye = op.Cast(op.EyeLike(op.ReduceMax(a, [0], keepdims=0)), to=1)
        row = op.ReduceMax(op.ReduceSum(op.Abs(a), [-1], keepdims=1), [-2], keepdims=1)
        column = op.ReduceMax(op.ReduceSum(op.Abs(a), [-2], keepdims=1), [-1], keepdims=1)
        x = op.Div(op.Transpose(a, perm=[0, 2, 1]), op.Mul(row, column))
        for _ in range(24):  # each doubles the digits once it is near
            x = op.MatMul(x, op.Sub(op.Mul(eye, op.Constant(value_float=2.0)), op.MatMul(a, x)))
        return x, op.Constant(value_ints=[0])

    return inverse
