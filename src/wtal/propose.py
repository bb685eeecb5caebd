"""TCAM → instances: the one call that training and testing share, which is the idea of the paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Int

from wtal.errors import InputError
from wtal.instances import Instances
from wtal.maps import ActivationMap
from wtal.overlap import Overlap
from wtal.pseudo.candidates import Candidates, Curves, FlankRounding, find_candidates
from wtal.pseudo.flanks import Flanks
from wtal.pseudo.fusion import Fused, Logit, fuse
from wtal.suppress import nms, soft_nms

Combine = Literal["gaussian", "exponential", "student_t", "uniform", "nms", "soft_nms_linear", "soft_nms_gaussian"]

#: 0.001, 0.003, …, 0.039: the thresholds of RSKP and of the released code.
RSKP_THRESHOLDS = tuple(np.round(np.arange(0.001, 0.04, 0.002), 3).tolist())


@dataclass(frozen=True, eq=False)
class Proposals:
    """Instances on the snippet grid, best first, with the candidates and the fusion they come from."""

    instances: Instances
    candidates: Candidates
    #: which candidates made each instance; None where suppression chose among them instead
    fused: Fused | None


@dataclass(frozen=True)
class Proposer:
    """Candidates of a video's likely classes, combined into instances: settings once, then a call per video.

    The defaults are the paper's. Where it gives no value (class threshold, thresholds, minimum length, flanks,
    h_fuse), they are those of its base model RSKP.

    >>> tcam = np.array([[0.0, 0.1], [0.02, 0.1], [0.6, 0.1], [0.7, 0.1], [0.01, 0.1], [0.0, 0.1]])
    >>> found = Proposer()(tcam, np.array([0.9, 0.05]))
    >>> found.instances.segments.round(2).tolist(), found.instances.class_ids.tolist()
    ([[2.0, 4.0]], [0])
    """

    class_threshold: float = 0.1
    """Classes whose video score reaches this are looked for."""
    keep_best_class: bool = False
    """Look for the best class where none reaches the threshold (WUM, ACM-Net)."""
    thresholds: tuple[float, ...] = RSKP_THRESHOLDS
    """Activation levels that cut the curve into runs."""
    relative: bool = False
    """Take the thresholds as fractions of the curve's range in the video."""
    attention_thresholds: tuple[float, ...] = ()
    """Levels that cut the model's attention into further runs, which the activations score (WUM's magnitudes)."""
    min_length: float = 2.0
    """Shortest run, in snippets."""
    dilation: tuple[float, float] = (0.0, 0.0)
    """Snippets added before and after each run, before it is scored."""
    flank_scale: float = 0.25
    """Flanks of scale * length ** power snippets on either side."""
    flank_power: float = 1.0
    """See flank_scale."""
    flank_rounding: FlankRounding = "exact"
    """Fractions of snippets, or whole ones as in the released code."""
    outer_weight: float = 1.0
    """Weight of the flanks' mean in the contrast (0.6 in FAC-Net)."""
    zero_below: bool = False
    """Let what a threshold cuts off count as 0 in the contrast of its candidates (WUM)."""
    upsample: int = 1
    """Cells per snippet, by linear interpolation."""
    video_score_weight: float = 0.0
    """Share of the video's class score in an instance's score (0.2 in WUM)."""
    combine: Combine = "gaussian"
    """A template of weighted fusion, or a way of suppression."""
    temperature: float = 0.03
    """Temperature of the fusion's weights (Eq. 3)."""
    overlap: Overlap = "iou"
    """What makes two candidates one group: tIoU, or the overlap over the candidate's own length."""
    overlap_threshold: float = 0.25
    """h_fuse of Eq. 1, or the threshold of NMS."""
    overlap_pad: float = 0.0
    """Added to lengths and intersections: 1 where positions count as inclusive integers (released code)."""
    logit: Logit = "score"
    """What the fusion weighs candidates by: their contrast, or the mean activation inside."""
    pool_threshold: float | None = None
    """Of several streams: combine each one's candidates alone, then NMS at this overlap; null: all in one."""

    def __call__(
        self,
        tcam: Curves,
        video_scores: Curves | None = None,
        *,
        classes: Int[np.ndarray, " k"] | list[int] | None = None,
        attention: Curves | None = None,
    ) -> Proposals:
        """Instances of one video; `classes` overrides the choice by video score (training knows the tags)."""
        return self.combined(self.candidates(tcam, video_scores, classes=classes, attention=attention))

    def of_maps(
        self, maps: Sequence[ActivationMap], *, classes: Int[np.ndarray, " k"] | list[int] | None = None
    ) -> Proposals:
        """Instances of one video that several streams have seen, each with its own map, scores and weight."""
        parts = [
            self.candidates(one.tcam, one.video_scores, classes=classes, attention=one.attention).weighted(one.weight)
            for one in maps
        ]
        candidates = Candidates.concat(parts)
        if self.pool_threshold is None or len(parts) == 1:
            return self.combined(candidates)
        found = Instances.concat([self.combined(part).instances for part in parts])
        kept = nms(found, threshold=self.pool_threshold, overlap=self.overlap, pad=self.overlap_pad)
        return Proposals(kept, candidates, None)

    def candidates(
        self,
        tcam: Curves,
        video_scores: Curves | None = None,
        *,
        classes: Int[np.ndarray, " k"] | list[int] | None = None,
        attention: Curves | None = None,
    ) -> Candidates:
        """The first half alone: runs of the activations, and of the attention if it has thresholds, with scores."""
        if classes is None:
            classes = self.choose_classes(video_scores) if video_scores is not None else None
        families: list[tuple[tuple[float, ...], Curves | None]] = [(self.thresholds, None)]
        if self.attention_thresholds:
            if attention is None:
                raise InputError("attention_thresholds are given, but nobody gives an attention to cut")
            families.append((self.attention_thresholds, attention))
        return Candidates.concat(
            [
                find_candidates(
                    tcam,
                    thresholds,
                    classes=classes,
                    cut=cut,
                    relative=self.relative,
                    min_length=self.min_length,
                    dilation=self.dilation,
                    flanks=Flanks(self.flank_scale, self.flank_power),
                    flank_rounding=self.flank_rounding,
                    outer_weight=self.outer_weight,
                    zero_below=self.zero_below and cut is None,
                    upsample=self.upsample,
                    video_scores=video_scores,
                    video_score_weight=self.video_score_weight,
                )
                for thresholds, cut in families
            ]
        )

    def combined(self, candidates: Candidates) -> Proposals:
        """The second half alone: for candidates of one's own, or pooled over curves or models."""
        found = candidates.instances
        grouping = {"threshold": self.overlap_threshold, "overlap": self.overlap, "pad": self.overlap_pad}
        match self.combine:
            case "nms":
                return Proposals(nms(found, **grouping), candidates, None)  # type: ignore[arg-type]
            case "soft_nms_linear":
                kept = soft_nms(found, decay="linear", threshold=self.overlap_threshold)
                return Proposals(kept, candidates, None)
            case "soft_nms_gaussian":
                return Proposals(soft_nms(found, decay="gaussian"), candidates, None)
            case template:
                fused = fuse(
                    candidates,
                    temperature=self.temperature,
                    logit=self.logit,
                    template=template,
                    **grouping,  # type: ignore[arg-type]
                )
                return Proposals(fused.instances, candidates, fused)

    def choose_classes(self, video_scores: Curves) -> Int[np.ndarray, " k"]:
        """The classes that a video's scores make likely."""
        if not np.isfinite(video_scores).all():
            raise InputError(f"video scores must be finite, got {video_scores}")
        chosen = np.flatnonzero(video_scores >= self.class_threshold)
        if len(chosen) == 0 and self.keep_best_class and len(video_scores):
            return np.array([np.argmax(video_scores)])
        return chosen


#: The paper's test-time settings.
PAPER = Proposer()
#: The authors' released code, index for index (ends are one past the run, flanks are truncated, lengths inclusive).
RELEASED = Proposer(
    class_threshold=0.16,
    dilation=(0.0, 1.0),
    flank_scale=0.0785,
    flank_power=0.9,
    flank_rounding="truncate",
    temperature=0.2,
    overlap="own_length",
    overlap_threshold=0.25,
    overlap_pad=1.0,
    logit="inner",
)
PRESETS = {"paper": PAPER, "released": RELEASED}
