"""Without the real weights: the architecture is checked by published numbers, the loader by files of both kinds."""

import pytest
import torch
from torch import nn

from wtal.cli import main
from wtal.errors import InputError
from wtal.video.i3d import I3D, ConvolutionUnit
from wtal.video.i3d_weights import CONVERSIONS, load_i3d
from wtal.video.weights import folded

BY_NAME = {conversion.name: conversion for conversion in CONVERSIONS}


def random_state(stream, conversion):
    """A state dict as a conversion has it, classifier and counters included."""
    generator = torch.Generator().manual_seed(0)
    state = {}
    for name, unit in I3D(stream).units().items():
        names, c = conversion.names(name), unit.out_channels
        fan_in = unit.weight[0].numel()
        state[names["kernel"]] = torch.randn(unit.weight.shape, generator=generator) / fan_in**0.5
        state[names["weight"]] = torch.rand(c, generator=generator) + 0.5
        state[names["bias"]] = torch.randn(c, generator=generator) / 4
        state[names["running_mean"]] = torch.randn(c, generator=generator) / 4
        state[names["running_var"]] = torch.rand(c, generator=generator) + 0.5
        state[names["weight"].replace(".weight", ".num_batches_tracked")] = torch.tensor(1)
    state["logits.conv3d.weight"] = torch.zeros(400, 1024, 1, 1, 1)
    return state


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    made = {}
    for stream in ("rgb", "flow"):
        for name, conversion in BY_NAME.items():
            made[stream, name] = folder / f"{stream}-{name}.pt"
            torch.save(random_state(stream, conversion), made[stream, name])
    return made


@pytest.mark.parametrize(("stream", "published"), [("rgb", 12_697_264), ("flow", 12_675_312)])
def test_the_number_of_parameters_is_the_published_one(stream, published):
    # as counted by users of the conversions: with the batch norms' scales, and a classifier of 400 classes
    units = I3D(stream).units().values()
    scales = sum(unit.out_channels for unit in units)
    assert sum(p.numel() for p in I3D(stream).parameters()) + scales + 1024 * 400 + 400 == published
    assert len(units) == 57


def test_the_shapes_are_those_of_the_paper():
    network, x = I3D("rgb").eval(), torch.zeros(1, 3, 16, 224, 224)
    shapes = {}
    with torch.inference_mode():
        for name, layer in network.named_children():
            x = layer(x)
            shapes[name] = tuple(x.shape[1:])
    assert shapes["Conv3d_1a_7x7"] == (64, 8, 112, 112)
    assert shapes["MaxPool3d_3a_3x3"] == (192, 8, 28, 28)
    assert shapes["Mixed_3c"] == (480, 8, 28, 28)
    assert shapes["Mixed_4f"] == (832, 4, 14, 14)
    assert shapes["Mixed_5c"] == (1024, 2, 7, 7)


def test_a_folded_batch_norm_computes_the_same():
    torch.manual_seed(0)
    plain, norm = nn.Conv3d(2, 5, 3, bias=False), nn.BatchNorm3d(5, eps=1e-3).eval()
    for value in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
        value.data.uniform_(0.5, 1.5)
    state = {"c.weight": plain.weight.data} | {f"n.{name}": value for name, value in norm.state_dict().items()}
    unit = ConvolutionUnit(2, 5, (3, 3, 3))
    unit.weight.data, unit.bias.data = folded(state, "c.weight", "n")
    x = torch.randn(1, 2, 6, 7, 8)
    with torch.inference_mode():
        torch.testing.assert_close(unit(x)[..., 1:-1, 1:-1, 1:-1], norm(plain(x)).relu())


def test_files_of_both_conversions_give_the_same_network(files):
    x = torch.rand(1, 3, 16, 64, 64, generator=torch.Generator().manual_seed(1)) * 2 - 1
    outputs = []
    for name in BY_NAME:
        network, file = load_i3d(files["rgb", name])
        assert (file.stream, file.conversion, len(file.sha256)) == ("rgb", name, 64)
        with torch.inference_mode():
            outputs.append(network(x))
    torch.testing.assert_close(*outputs)
    assert outputs[0].shape == (1, 1024)
    assert outputs[0].std() > 1e-3


def test_wrapped_and_old_files_load_too(files, tmp_path):
    state = random_state("flow", CONVERSIONS[0])
    torch.save({"epoch": 3, "state_dict": {f"module.{key}": value for key, value in state.items()}}, tmp_path / "a.pt")
    torch.save(state, tmp_path / "b.pt", _use_new_zipfile_serialization=False)
    whole, _ = load_i3d(files["flow", "pytorch-i3d"])
    for name in ("a.pt", "b.pt"):
        network, _ = load_i3d(tmp_path / name, "flow")
        torch.testing.assert_close(network.state_dict(), whole.state_dict())


def test_other_files_are_refused_with_what_is_wrong(files, tmp_path):
    state = random_state("rgb", CONVERSIONS[0])
    del state["Mixed_4c.b2b.bn.running_mean"]
    torch.save(state, tmp_path / "lacking.pt")
    torch.save({"layer1.0.conv1.weight": torch.zeros(3)}, tmp_path / "resnet.pt")
    torch.save(nn.Linear(2, 2), tmp_path / "pickled.pt")
    (tmp_path / "text.pt").write_text("no weights")
    shaped = random_state("rgb", CONVERSIONS[0])
    shaped["Mixed_3b.b0.conv3d.weight"] = torch.zeros(64, 192, 3, 3, 3)
    torch.save(shaped, tmp_path / "shaped.pt")
    for name, message in {
        "lacking.pt": "1 of 285 tensors are missing, such as Mixed_4c.b2b.bn.running_mean",
        "resnet.pt": "ResNet-50 I3D is another network",
        "pickled.pt": "read safely",
        "text.pt": "read safely",
        "shaped.pt": "Mixed_3b.b0.conv3d.weight has shape",
        "none.pt": "No such file",
    }.items():
        with pytest.raises(InputError, match=message) as error:
            load_i3d(tmp_path / name)
        assert name in str(error.value)
    with pytest.raises(InputError, match="is the flow stream of I3D, wanted rgb"):
        load_i3d(files["flow", "pytorch-i3d"], "rgb")


def test_the_command_tells_and_checks(files, capsys):
    main(["weights"])
    told = capsys.readouterr().out
    assert "rgb_imagenet.pt" in told
    assert "hassony2/kinetics_i3d_pytorch" in told
    main(["weights", str(files["flow", "kinetics_i3d_pytorch"])])
    assert "flow stream, as kinetics_i3d_pytorch names it" in capsys.readouterr().out


def test_two_streams_side_by_side(files, make_video):
    from wtal.video.extractor import ExtractorOptions, open_extractor
    from wtal.video.pipeline import video_features
    from wtal.video.snippets import Sampling

    path = make_video("a.mp4", [10, 60] * 5, size=(32, 24))
    rgb, flow = files["rgb", "pytorch-i3d"], files["flow", "pytorch-i3d"]
    sampling = Sampling(length_frames=8, stride_frames=8)
    extractor, identity = open_extractor(ExtractorOptions("i3d", rgb, flow, "dis"), sampling, device="cpu")
    both = video_features(path, extractor, sampling)
    assert both.array.shape == (1, 2048)
    assert identity.flow == "dis"
    assert set(identity.weights) == {"rgb", "flow"}
    alone, _ = open_extractor(ExtractorOptions("i3d-rgb", rgb), sampling, device="cpu")
    assert abs(video_features(path, alone, sampling).array - both.array[:, :1024]).max() < 1e-5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"extractor": "i3d"}, "needs the rgb weights: --weights"),
        ({"extractor": "i3d-rgb", "flow": "dis"}, "no use for --flow"),
        ({"extractor": "frames", "flow": "dis"}, "no use for --flow"),
        ({"extractor": "i4d"}, "no extractor 'i4d'"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message):
    from wtal.video.extractor import ExtractorOptions, open_extractor
    from wtal.video.snippets import Sampling

    with pytest.raises(InputError, match=message):
        open_extractor(ExtractorOptions(**options), Sampling())
