"""The detector's grid, what each cell is to find, and that it learns boxes it is taught."""

import numpy as np
import pytest
import torch
from torch.nn.functional import pad

from wtal.errors import InputError
from wtal.instances import Instances
from wtal.models import build
from wtal.models.cells import Level, View, lay_out, nearest_box
from wtal.models.convolution import CellConvolution, OutputConvolution, halved, normed_relu
from wtal.models.detector import Detector
from wtal.models.protocol import Batch


def test_cells_of_packed_videos_are_those_of_each_alone() -> None:
    lengths, views = (5, 3), (View(2.0), View(2.4, shift=1.5))
    features = torch.arange(8.0)[:, None]
    both = lay_out(lengths, views, 3)
    first = 0
    for number, (length, view) in enumerate(zip(lengths, views, strict=True)):
        alone = lay_out([length], [view], 3)
        own = features[first : first + length]
        n, start = 2 * length + 2, int(both.first[number])
        torch.testing.assert_close(both.read(features)[start : start + n], alone.read(own)[:n])
        # what is read at a cell's centre is the place itself: snippet i's features stand at i + 1/2
        inside = alone.levels[0].video >= 0
        place = (alone.levels[0].centre[inside] - 0.5).clamp(0, length - 1) + own[0]
        torch.testing.assert_close(alone.read(own)[inside, 0], place)
        first += length
    for fine, coarse in zip(both.levels, both.levels[1:], strict=False):
        assert len(fine.video) == 2 * len(coarse.video)
        torch.testing.assert_close(coarse.width, 2 * fine.width[::2])
    assert (both.levels[-1].video.diff().abs() <= 2).all()
    assert -1 in both.levels[-1].video.tolist()  # a gap between the two, on the coarsest level too


def test_videos_of_many_lengths_share_few_sizes() -> None:
    """A kernel is compiled for each size of a product, which takes time."""
    sizes = {len(lay_out([30, n], [View(2.0), View(2.1, shift=3.7)], 4).levels[0].video) for n in range(100, 300)}
    assert len(sizes) <= 5


def test_a_cell_is_to_find_the_shortest_box_of_its_level_around_it() -> None:
    cells = lay_out([32], [View(2.0)], 4)
    segments = torch.tensor([[4.0, 6.0], [4.0, 28.0]])
    which, positive = nearest_box(cells, segments, torch.tensor([0, 0]), reach=4.0, radius=1.5)
    centre, width = cells.all.centre, cells.all.width
    for box, (start, end) in enumerate(segments.tolist()):
        mine = positive & (which == box)
        assert mine.any()
        assert ((centre[mine] > start) & (centre[mine] < end)).all()
        assert ((centre[mine] - (start + end) / 2).abs() <= 1.5 * width[mine]).all()
        far = torch.maximum(centre[mine] - start, end - centre[mine]) / width[mine]
        assert (far < 4.0).all() | bool((cells.number[mine] == 3).all())
    _, none = nearest_box(cells, segments[:0], torch.zeros(0, dtype=torch.long), reach=4.0, radius=1.5)
    assert not none.any()


def test_the_box_of_each_cell_is_that_of_the_rule_taken_literally() -> None:
    rng = np.random.default_rng(0)
    lengths, views = (30, 7, 55), (View(2.0), View(1.7, shift=3.3), View(2.4, shift=6.9))
    cells = lay_out(lengths, views, 4)
    owner = torch.from_numpy(rng.integers(3, size=40))
    starts = torch.from_numpy(rng.uniform(-1, 1, 40)) * 0.5 + torch.tensor(lengths)[owner] * torch.rand(40)
    # equal lengths too: of two such boxes the first counts
    segments = torch.stack(
        [starts, starts + torch.from_numpy(rng.choice([0.5, 1.0, 3.0, 8.0, 20.0], 40))], dim=1
    ).float()
    which, positive = nearest_box(cells, segments, owner, reach=4.0, radius=1.5)
    every, finds = cells.all, 0
    for cell, (video, centre, width) in enumerate(zip(every.video, every.centre, every.width, strict=True)):
        level = int(cells.number[cell])
        fitting = []
        for box, (start, end) in enumerate(segments):
            farther = max(centre - start, end - centre) / width
            of_level = (level == 0 or farther >= 2.0) and (level == 3 or farther < 4.0)
            near = abs((start + end) / 2 - centre) <= 1.5 * width
            if owner[box] == video and start < centre < end and near and of_level:
                fitting.append((float(end - start), box))
        assert bool(positive[cell]) == bool(fitting)
        finds += len(fitting) > 1
        assert not fitting or int(which[cell]) == min(fitting)[1]
    assert finds  # cells that had a choice


@pytest.mark.parametrize(("kind", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 5e-2)])
def test_a_layer_and_its_gradients_are_those_of_its_parts(kind: torch.dtype, tolerance: float) -> None:
    torch.manual_seed(0)
    n = 300
    layer, plain = (CellConvolution(8, 12) for _ in range(2))
    plain.load_state_dict(layer.state_dict())
    level = Level(torch.where(torch.rand(n) < 0.1, -1, 0), torch.arange(n).float(), torch.ones(n))
    x, y = (torch.randn(n, 8, generator=torch.Generator().manual_seed(1)).to(kind).requires_grad_() for _ in range(2))
    pull = torch.randn(n, 12).to(kind)
    made = layer(x, level)
    windows = torch.cat([pad(y[:-1], (0, 0, 1, 0)), y, pad(y[1:], (0, 0, 0, 1))], dim=1)
    wanted = normed_relu(windows @ plain.linear.weight.to(kind).t(), plain.norm) * level.mask.to(kind)
    (made * pull).sum().backward()
    (wanted * pull).sum().backward()
    with torch.no_grad():  # as at test
        torch.testing.assert_close(layer(x, level).float(), wanted.float(), atol=tolerance, rtol=tolerance)
    pairs = [(made, wanted), (x.grad, y.grad)]
    pairs += [(one.grad, other.grad) for one, other in zip(layer.parameters(), plain.parameters(), strict=True)]
    for got, expected in pairs:
        assert got is not None
        assert expected is not None
        scale = expected.float().abs().max()
        assert (got.float() - expected.float()).abs().max() <= tolerance * scale


def test_halving_and_its_gradient_are_torchs() -> None:
    x, y = (torch.randn(40, 6, generator=torch.Generator().manual_seed(0)).requires_grad_() for _ in range(2))
    pull = torch.randn(20, 6)
    made, wanted = halved(x), torch.maximum(y[::2], y[1::2])
    (made * pull).sum().backward()
    (wanted * pull).sum().backward()
    torch.testing.assert_close(made, wanted)
    torch.testing.assert_close(x.grad, y.grad)


def test_an_output_convolution_is_torchs() -> None:
    torch.manual_seed(0)
    layer, x = OutputConvolution(8, 3, bias=-1.0), torch.randn(50, 8)
    weight = layer.linear.weight.unflatten(1, (3, 8)).transpose(1, 2)
    wanted = torch.conv1d(x.t()[None], weight, layer.linear.bias, padding=1)[0].t()
    torch.testing.assert_close(layer(x), wanted)


def videos(n: int, rng: np.random.Generator) -> Batch:
    """Videos of 40 snippets with one action each, that shows in the channel of its class; the boxes and the tags."""
    features, boxes, tags = [], [], np.zeros((n, 2), np.float32)
    for number in range(n):
        start, length, class_id = int(rng.integers(2, 20)), int(rng.integers(3, 15)), int(rng.integers(2))
        x = rng.random((40, 6)).astype(np.float32)
        x[start : start + length, class_id] += 2.0
        features.append(torch.from_numpy(x))
        boxes.append(Instances([[start, start + length]], [1.0], [class_id], unit="snippets"))
        tags[number, class_id] = 1
    packed = Batch.pack(features, torch.from_numpy(tags), list(range(n)))
    return Batch(packed.features, packed.lengths, packed.tags, packed.seeds, tuple(boxes))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_it_learns_the_boxes_that_it_is_taught(precision: str) -> None:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    model = build("detector", 2, 6, networks=2, width=16, channel_dropout=0.0, averaging=0.9, precision=precision)
    model.begin([videos(20, rng)])
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(80):
        batch = videos(8, rng)
        output = model(batch)
        losses = model.losses(output, batch, step)
        torch.stack(list(losses.values())).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        model.end_step(output, batch, step)
    unseen = videos(20, np.random.default_rng(1))
    model.eval()
    with torch.no_grad():
        output = model(unseen)
    found = model.candidates(output, unseen)
    assert found is not None
    assert unseen.boxes is not None
    hits = 0
    for candidates, true in zip(found, unseen.boxes, strict=True):
        best = candidates.instances.sorted()[:1]
        shared = min(best.ends[0], true.ends[0]) - max(best.starts[0], true.starts[0])
        whole = max(best.ends[0], true.ends[0]) - min(best.starts[0], true.starts[0])
        hits += best.class_ids[0] == true.class_ids[0] and shared / whole > 0.7
    assert hits >= 18
    assert output.tcam.shape == (800, 2)
    assert (output.video_scores.argmax(dim=1) == unseen.known_tags().argmax(dim=1)).all()


def test_a_video_is_found_alike_alone_and_packed_with_others() -> None:
    torch.manual_seed(0)
    model = build("detector", 2, 6, width=16).eval()
    batch = videos(3, np.random.default_rng(0))
    with torch.no_grad():
        together = model.candidates(model(batch), batch)
        for number in range(3):
            alone = Batch.pack([batch.features[40 * number : 40 * (number + 1)]])
            found = model.candidates(model(alone), alone)
            assert found is not None
            assert together is not None
            np.testing.assert_allclose(found[0].instances.scores, together[number].instances.scores, atol=1e-6)
            np.testing.assert_allclose(found[0].instances.segments, together[number].instances.segments, atol=1e-4)


def test_it_wants_boxes() -> None:
    model = Detector(2, 6, width=8)
    batch = Batch.pack([torch.zeros(9, 6)], torch.ones(1, 2))
    with pytest.raises(InputError, match="taught boxes"):
        model.losses(model(batch), batch, 0)
