"""A small one-stage detector: a pyramid over time that is taught boxes, and finds boxes by itself.

The other models see one snippet at a time, so that they cannot tell where an action begins. This one sees time. It is
taught by the boxes that another model and the fusion have found in the training videos (their scores are the boxes'
weights), beside the tags. It is a distant, small relative of ActionFormer and TriDet: features → a linear layer →
twice as many cells → convolutions → levels by max pooling → one head for the class and one for the distances to both
ends, shared by all levels.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import exp

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, log_softmax, softmax

from wtal.instances import Instances
from wtal.losses import box_loss, focal_loss
from wtal.models.bank import of_all_processes
from wtal.models.cells import Cells, Level, View, lay_out, nearest_box
from wtal.models.layers import check_shares
from wtal.models.precision import Precision, chosen
from wtal.models.protocol import Batch, Model, Output
from wtal.models.pyramid import PyramidNetwork
from wtal.pseudo.candidates import Candidates

#: of features: so many of 2048 channels take 0.5 MB
ROWS_IN_CACHE = 64


@dataclass(frozen=True, eq=False)
class CellFindings:
    """What a network says of each of all cells: class logits, distances to both ends in snippets, quality logits.

    And of each video: class logits.
    """

    cells: Cells
    logits: Float[Tensor, "n c"]
    distances: Float[Tensor, "n 2"]
    quality: Float[Tensor, " n"]
    video_logits: Float[Tensor, "b c"]


class Detector(Model):
    """The network, its losses, and a running average of its weights, which is what finds boxes at test.

    Args:
        n_classes: Number of classes.
        d: Dimensions of the features.
        networks: How many networks are trained side by side, each for itself; their boxes are pooled.
        width: Channels everywhere.
        cells: Cells a snippet: actions may be shorter than two snippets.
        levels: Levels of the pyramid, each half as fine as the one before.
        reach: A level's boxes have their farther end between half of this and this many of its cells away.
        radius: How many cells from a box's centre a cell is still to find the box.
        embedding: Convolutions before the pyramid.
        head: Convolutions of either head.
        channel_dropout: Share of a video's feature channels that are dropped in a training step.
        stretch: A training step sees each video faster or slower by up to this share.
        tag_weight: Weight of the loss that teaches the tags.
        tag_levels: How many of the finest levels it looks at.
        tag_share: A video's class score is the mean over one cell in so many, the highest.
        averaging: How slowly the average of the weights moves.
        least_score: Boxes with a lower score are not told.
        most_boxes: Of the others, no more than so many of a video and network.
        precision: bfloat16 is faster where the processor has it.
    """

    def __init__(
        self,
        n_classes: int,
        d: int,
        *,
        networks: int = 1,
        width: int = 256,
        cells: int = 2,
        levels: int = 4,
        reach: float = 4.0,
        radius: float = 1.5,
        embedding: int = 2,
        head: int = 1,
        channel_dropout: float = 0.3,
        stretch: float = 0.25,
        tag_weight: float = 1.0,
        tag_levels: int = 3,
        tag_share: int = 8,
        averaging: float = 0.999,
        least_score: float = 0.02,
        most_boxes: int = 2000,
        precision: Precision = "float32",
    ) -> None:
        super().__init__()
        check_shares(channel_dropout=channel_dropout, averaging=averaging)
        self.n_classes, self.cells, self.levels, self.reach, self.radius = n_classes, cells, levels, reach, radius
        self.channel_dropout, self.stretch = channel_dropout, stretch
        self.averaging, self.precision = averaging, chosen(precision)
        self.tag_weight, self.tag_levels, self.tag_share = tag_weight, tag_levels, tag_share
        self.least_score, self.most_boxes = least_score, most_boxes
        self.networks = nn.ModuleList(
            PyramidNetwork(n_classes, d, width=width, levels=levels, reach=reach, embedding=embedding, head=head)
            for _ in range(networks)
        )
        self.averages = deepcopy(self.networks).requires_grad_(False)
        self.register_buffer("mean", torch.zeros(d))
        self.register_buffer("deviation", torch.ones(d))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        # the usual number of cells of a step that have a box, by which losses are divided: a running mean
        self.register_buffer("positives", torch.tensor(20.0))

    mean: Tensor
    deviation: Tensor
    steps: Tensor
    positives: Tensor

    def begin(self, batches: Iterable[Batch]) -> None:
        """Learn each channel's mean and deviation: features are never negative, so their means are far from 0."""
        sums = torch.zeros(3, len(self.mean), dtype=torch.float64, device=self.mean.device)
        for batch in batches:
            x = batch.features.double()
            sums += torch.stack([torch.full_like(sums[0], len(x)), x.sum(dim=0), (x**2).sum(dim=0)])
        n, total, squares = sums
        mean = total / n
        self.mean.copy_(mean)
        # channels that hardly ever say anything must not be blown up
        self.deviation.copy_((squares / n - mean**2).clamp(min=0).sqrt() + 0.02)

    def forward(self, batch: Batch) -> Output:
        """What each network says of each cell, as `inner`; and as map the class probabilities of the finest cells."""
        found = self._found(batch)
        maps = torch.stack([self._map(one, batch) for one in found]).mean(dim=0)
        scores = torch.stack([softmax(one.video_logits.detach(), dim=1) for one in found])
        return Output(
            tcam=maps, attention=maps.amax(dim=1), video_scores=scores.mean(dim=0), supervised=(), inner=found
        )

    def _found(self, batch: Batch) -> list[CellFindings]:
        """What each network says of each cell: in training of its own view of the videos, at test by its average."""
        x = self._standardised(batch.features)
        if not self.training:
            cells = self._plain_cells(batch.lengths, x.device)
            return [self._findings(network, x, cells) for network in self.averages]
        found = []
        for number, network in enumerate(self.networks):
            seeds = [None if batch.seeds is None else [seed, number] for seed in batch.seeds or batch.lengths]
            rngs = [np.random.default_rng(seed) for seed in seeds]
            cells = lay_out(batch.lengths, [self._drawn(rng) for rng in rngs], self.levels, x.device)
            found.append(self._findings(network, self._thinned(x, batch, rngs), cells))
        return found

    def _plain_cells(self, lengths: Sequence[int], device: torch.device) -> Cells:
        return lay_out(lengths, [View(float(self.cells))] * len(lengths), self.levels, device)

    def _findings(self, network: nn.Module, x: Float[Tensor, "t d"], cells: Cells) -> CellFindings:
        logits, distances, quality = network(x, cells)
        return CellFindings(cells, logits, distances, quality, self._video_logits(logits, cells))

    def _standardised(self, features: Float[Tensor, "t d"]) -> Float[Tensor, "t d"]:
        """The features by each channel's mean and deviation; in training larger by as much as dropping takes away."""
        kept = 1.0 - self.channel_dropout if self.training else 1.0
        scale = 1 / (kept * self.deviation)
        if self.precision != "bfloat16":
            return (features - self.mean) * scale
        out = torch.empty_like(features, dtype=torch.bfloat16)
        for rows, made in zip(torch.split(features, ROWS_IN_CACHE), torch.split(out, ROWS_IN_CACHE), strict=True):
            torch.mul(rows - self.mean, scale, out=made)
        return out

    def _thinned(
        self, x: Float[Tensor, "t d"], batch: Batch, rngs: Sequence[np.random.Generator]
    ) -> Float[Tensor, "t d"]:
        """The features without some channels of each video."""
        kept = np.stack([rng.random(len(self.mean)) >= self.channel_dropout for rng in rngs])
        each = torch.from_numpy(kept).to(x.device, x.dtype)
        out = torch.empty_like(x)
        for start, end, own in zip(batch.offsets, batch.offsets[1:], each, strict=False):
            torch.mul(x[start:end], own, out=out[start:end])
        return out

    def _drawn(self, rng: np.random.Generator) -> View:
        """A random view: another speed, and the coarser cells beginning elsewhere."""
        speed = exp(rng.uniform(-self.stretch, self.stretch))
        return View(self.cells * speed, float(rng.uniform(0, 2 ** (self.levels - 1))))

    def _map(self, found: CellFindings, batch: Batch) -> Float[Tensor, "t c"]:
        """The class probabilities of each snippet: the mean of its finest cells."""
        finest = found.cells.levels[0]
        inside = finest.video >= 0
        starts = torch.tensor(batch.offsets[:-1], device=inside.device)
        row = starts[finest.video[inside]] + finest.centre[inside].floor().long()
        probabilities = torch.sigmoid(found.logits[: len(finest.video)].detach())[inside]
        sums = probabilities.new_zeros(len(batch.features), self.n_classes + 1)
        sums.index_add_(0, row, torch.cat([probabilities, torch.ones_like(probabilities[:, :1])], dim=1))
        return sums[:, :-1] / sums[:, -1:].clamp(min=1.0)

    def _video_logits(self, logits: Float[Tensor, "n c"], cells: Cells) -> Float[Tensor, "b c"]:
        """Of each video and class the mean of the highest logits of the finest levels."""
        video = torch.cat([one.video for one in cells.levels[: self.tag_levels]])
        best = []
        for number in range(len(cells.first)):
            rows = torch.nonzero(video == number)[:, 0]
            highest = max(1, len(rows) // self.tag_share)
            best.append(rows[logits.detach()[rows].topk(highest, dim=0, sorted=False).indices])
        chosen = torch.split(logits.gather(0, torch.cat(best)), [len(one) for one in best])
        return torch.stack([one.mean(dim=0) for one in chosen])

    def losses(self, output: Output, batch: Batch, epoch: int) -> dict[str, Float[Tensor, ""]]:  # noqa: ARG002
        """Class, place and quality of the boxes, by their weights, and the tags; summed over the networks."""
        boxes = _joined(batch.known_boxes(), batch.features.device)
        each = [self._losses(found, boxes, batch) for found in output.inner]
        return {name: torch.stack([one[name] for one in each]).sum() for name in each[0]}

    def _losses(self, found: CellFindings, boxes: "Boxes", batch: Batch) -> dict[str, Float[Tensor, ""]]:
        which, positive = nearest_box(found.cells, boxes.segments, boxes.owner, reach=self.reach, radius=self.radius)
        mine, every = which[positive], found.cells.all
        weights, class_ids = boxes.weights[mine], boxes.class_ids[mine]
        target = torch.zeros_like(found.logits)
        weight = (every.video >= 0).float()[:, None].expand_as(found.logits).clone()
        target[positive, class_ids] = 1.0
        weight[positive, class_ids] = weights
        scale = self._scale(weights.sum(), batch.n_videos)
        centre = every.centre[positive]
        wanted = torch.stack([centre - boxes.segments[mine, 0], boxes.segments[mine, 1] - centre], dim=1)
        apart, iou = box_loss(found.distances[positive], wanted)
        quality = binary_cross_entropy_with_logits(found.quality[positive], iou.detach(), reduction="none")
        share = batch.known_tags() / (batch.known_tags().sum(dim=1, keepdim=True) + 1e-8)
        return {
            "class": scale * (focal_loss(found.logits, target) * weight).sum(),
            "place": scale * (apart * weights).sum(),
            "quality": scale * (quality * weights).sum(),
            "tags": -self.tag_weight * (share * log_softmax(found.video_logits, dim=1)).sum(),
        }

    @torch.no_grad()
    def _scale(self, positives: Float[Tensor, ""], n_videos: int) -> Float[Tensor, ""]:
        """Videos of the step over the usual number of its positive cells, those of all training processes together."""
        (mine,) = of_all_processes(torch.stack([positives, torch.full_like(positives, n_videos)])[None])
        total, videos = mine.sum(dim=0)
        self.positives.lerp_(total.clamp(min=1.0), 0.1)
        return videos / self.positives

    def end_step(self, output: Output, batch: Batch, epoch: int) -> None:  # noqa: ARG002
        """Move the average of the weights; at the beginning faster, so that it forgets where it started."""
        self.steps += 1
        keep = min(self.averaging, (1 + int(self.steps)) / (10 + int(self.steps)))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.averages.parameters()), list(self.networks.parameters()), 1 - keep)

    def candidates(self, output: Output, batch: Batch) -> tuple[Candidates, ...]:
        """The boxes that the networks find in each video, in snippets; a box's score is √(class × quality)."""
        found: list[CellFindings] = output.inner
        scores = [_scores(one.logits, one.quality) for one in found]
        return tuple(
            Candidates.concat(
                [
                    self._boxes_of(number, length, one.cells.all, one.distances, score)
                    for one, score in zip(found, scores, strict=True)
                ]
            )
            for number, length in enumerate(batch.lengths)
        )

    def boxes(self, features: Float[Tensor, "t d"]) -> tuple[Float[Tensor, "k n 2"], Float[Tensor, "k n c"]]:
        """Segments in snippets and class scores of all cells of one video, by each network; cells in gaps score 0."""
        cells = self._plain_cells((features.shape[0],), features.device)
        every, x = cells.all, self._standardised(features)
        segments, scores = [], []
        for network in self.averages:
            logits, distances, quality = network(x, cells)
            segments.append(torch.stack([every.centre - distances[:, 0], every.centre + distances[:, 1]], dim=1))
            scores.append(_scores(logits, quality) * every.mask)
        return torch.stack(segments).clamp(0, features.shape[0]), torch.stack(scores)

    def _boxes_of(
        self,
        video: int,
        length: int,
        every: Level,
        distances: Float[Tensor, "n 2"],
        scores: Float[Tensor, "n c"],
    ) -> Candidates:
        own = every.video == video
        scores, centre, distances = scores[own], every.centre[own], distances[own]
        cell, class_id = torch.nonzero(scores > self.least_score, as_tuple=True)
        best = scores[cell, class_id].argsort(descending=True, stable=True)[: self.most_boxes]
        cell, class_id = cell[best], class_id[best]
        starts, ends = centre[cell] - distances[cell, 0], centre[cell] + distances[cell, 1]
        segments = torch.stack([starts, ends], dim=1).clamp(0, length).double().cpu().numpy()
        kept = segments[:, 1] - segments[:, 0] > 0.05
        value = scores[cell, class_id].double().cpu().numpy()[kept]
        made = Instances(segments[kept], value, class_id.cpu().numpy()[kept], unit="snippets")
        return Candidates(made, value)


def _scores(logits: Float[Tensor, "n c"], quality: Float[Tensor, " n"]) -> Float[Tensor, "n c"]:
    return torch.sqrt(torch.sigmoid(logits) * torch.sigmoid(quality)[:, None])


@dataclass(frozen=True, eq=False)
class Boxes:
    """The boxes of a batch's videos: in snippets, with class, weight and the number of the video of each."""

    segments: Float[Tensor, "m 2"]
    class_ids: Int[Tensor, " m"]
    weights: Float[Tensor, " m"]
    owner: Int[Tensor, " m"]


def _joined(boxes: Sequence[Instances], device: torch.device) -> Boxes:
    joined = Instances.concat([one.wanted_in("snippets", "detectors") for one in boxes])
    owner = np.repeat(np.arange(len(boxes)), [len(one) for one in boxes])
    return Boxes(
        torch.from_numpy(joined.segments).float().to(device),
        torch.from_numpy(joined.class_ids).to(device),
        torch.from_numpy(joined.scores).float().to(device),
        torch.from_numpy(owner).to(device),
    )
