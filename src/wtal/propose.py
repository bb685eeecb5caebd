"""TCAM → instances: the one call that training and testing share, which is the idea of the paper.

`Cut` says how candidates are made, `Fusion`, `Nms` or `SoftNms` how they become instances, and a `Proposer` is one of
each. Every setting acts; the names of presets stand in `PRESETS` alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Int

from wtal.errors import InputError
from wtal.instances import Instances
from wtal.maps import ActivationMap
from wtal.notebook import Bar, timeline
from wtal.overlap import Overlap
from wtal.pseudo.candidates import (
    QUARTER,
    RELEASED_FLANKS,
    Candidates,
    Curves,
    FlankRounding,
    Flanks,
    class_columns,
    find_candidates,
)
from wtal.pseudo.fusion import Evidence, Fused, Logit, fuse
from wtal.pseudo.templates import Template
from wtal.suppress import Decay, decayed, nms, soft_nms
from wtal.typed import as_array, check_fields, checked

Classes = Int[np.ndarray, " k"] | list[int] | None


#: 0.001, 0.003, …, 0.039: the thresholds of RSKP and of the released code.
RSKP_THRESHOLDS = tuple(np.round(np.arange(0.001, 0.04, 0.002), 3).tolist())


@dataclass(frozen=True, eq=False)
class Proposals:
    """Instances on the snippet grid, best first, with the candidates and the fusion they come from."""

    instances: Instances
    candidates: Candidates
    #: which candidates made each instance; None where suppression chose among them instead
    fused: Fused | None

    def moved(self, by: float) -> "Proposals":
        """The same so many snippets later."""
        fused = None if self.fused is None else replace(self.fused, instances=self.fused.instances.moved(by))
        return Proposals(self.instances.moved(by), self.candidates.moved(by), fused)

    def __repr__(self) -> str:
        how = "suppressed" if self.fused is None else "fused"
        return f"Proposals({self.instances!r}, {how} from {len(self.candidates.instances)} candidates)"

    def _repr_html_(self) -> str:
        of_candidates = self.candidates.instances.named(self.instances.names) if self.instances.names else None
        thin = (of_candidates or self.candidates.instances).lanes()
        lanes: dict[str, list[Bar]] = {}
        for label, bars in self.instances.lanes().items():
            faint = [(start, end, 0.08, told) for start, end, _, told in thin.get(label, [])]
            lanes |= {label: bars, f"candidates: {label}": faint}
        counted = f"{len(self.instances):,} instances of {len(self.candidates.instances):,} candidates"
        return f"<div>{counted}</div>{timeline(lanes, self.instances.unit, of_one_colour=2)}"

    def to_pandas(self) -> Any:
        """The instances as a DataFrame (needs pandas)."""
        return self.instances.to_pandas()


@dataclass(frozen=True)
class Cut:
    """How a video's map is cut into candidates; the defaults are those of RSKP, the paper's base model."""

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
    flanks: Flanks = QUARTER
    """How far on either side the contrast looks."""
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

    def __post_init__(self) -> None:
        check_fields(self)

    def __call__(
        self,
        tcam: Curves,
        video_scores: Curves | None = None,
        *,
        classes: Classes = None,
        attention: Curves | None = None,
    ) -> Candidates:
        """Runs of the activations, and of the attention if it has thresholds, with scores."""
        video_scores = None if video_scores is None else as_array(video_scores, "video_scores")
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
                    flanks=self.flanks,
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

    def choose_classes(self, video_scores: Curves) -> Int[np.ndarray, " k"]:
        """The classes that a video's scores make likely."""
        if not np.isfinite(video_scores).all():
            raise InputError(f"video_scores must be finite, got {video_scores}")
        chosen = np.flatnonzero(video_scores >= self.class_threshold)
        if len(chosen) == 0 and self.keep_best_class and len(video_scores):
            return np.array([np.argmax(video_scores)])
        return chosen


@dataclass(frozen=True)
class Fusion:
    """Weighted instance fusion: the arguments of `wtal.fuse`, under the same names."""

    template: Template = "gaussian"
    """The distribution whose location a fused instance is."""
    temperature: float = 0.03
    """Temperature of the weights (Eq. 3)."""
    threshold: float = 0.25
    """h_fuse of Eq. 1: candidates that overlap the best of a group by more join it."""
    overlap: Overlap = "iou"
    """What that overlap is: tIoU, or the overlap over the candidate's own length."""
    pad: float = 0.0
    """Added to lengths and intersections: 1 where positions count as inclusive integers (released code)."""
    logit: Logit = "score"
    """What weighs candidates: their contrast, or the mean activation inside."""
    evidence: float = 0.0
    """How much it counts how many candidates agree on an instance (an exponent); 0: as in the paper, not."""
    evidence_by: Evidence = "count"
    """What measures that: the count of the candidates, or the sum of their scores."""
    evidence_full: float = 20.0
    """The count or sum at which evidence leaves a score as it is."""
    decay_sigma: float | None = None
    """Fused instances of one class that overlap weaken each other, by a Gaussian decay of this sigma; null: not."""

    def __post_init__(self) -> None:
        check_fields(self)

    def __call__(self, candidates: Candidates) -> Proposals:
        """One instance for each group of candidates."""
        fused = fuse(candidates, **{name: value for name, value in vars(self).items() if name != "decay_sigma"})
        if self.decay_sigma is not None:
            fused = fused.scored(decayed(fused.instances, sigma=self.decay_sigma))
        return Proposals(fused.instances, candidates, fused)


@dataclass(frozen=True)
class Nms:
    """Non-maximum suppression: the best of each group that fusion would form."""

    threshold: float = 0.5
    """Candidates that overlap a better one by more are dropped."""
    overlap: Overlap = "iou"
    """What that overlap is: tIoU, or the overlap over the candidate's own length."""
    pad: float = 0.0
    """Added to lengths and intersections: 1 where positions count as inclusive integers (released code)."""

    def __post_init__(self) -> None:
        check_fields(self)

    def __call__(self, candidates: Candidates) -> Proposals:
        """The best candidate of each group."""
        return Proposals(nms(candidates.instances, **vars(self)), candidates, None)


@dataclass(frozen=True)
class SoftNms:
    """Soft-NMS: candidates stay, and their scores decay by their tIoU with better ones."""

    decay: Decay = "gaussian"
    """How scores decay: by 1 - tIoU above a threshold, or by exp(-tIoU² / sigma) always."""
    threshold: float | None = None
    """Linear decay alone: the tIoU above which scores shrink; null: 0.5."""
    sigma: float | None = None
    """Gaussian decay alone: how slowly scores shrink; null: 0.5."""
    min_score: float = 1e-3
    """What falls below is dropped."""

    def __post_init__(self) -> None:
        check_fields(self)
        idle, acting = ("threshold", "sigma") if self.decay == "gaussian" else ("sigma", "threshold")
        if getattr(self, idle) is not None:
            raise InputError(f"soft-NMS with {self.decay} decay has no {idle}; leave it out, or set {acting}")

    def __call__(self, candidates: Candidates) -> Proposals:
        """All candidates whose score is left."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        return Proposals(soft_nms(candidates.instances, **given), candidates, None)


#: The ways of combining; in recipes and on the command line each goes by its name in lower case: fusion, nms, soft_nms.
Combine = Fusion | Nms | SoftNms


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

    cut: Cut = Cut()
    """How candidates are made."""
    combine: Combine = Fusion()
    """How they become instances."""
    pool_threshold: float | None = None
    """Of several streams: combine each one's candidates alone, then NMS at this overlap; null: all in one."""

    def __post_init__(self) -> None:
        check_fields(self)

    def __call__(
        self,
        tcam: Curves,
        video_scores: Curves | None = None,
        *,
        n_classes: int | None = None,
        classes: Classes = None,
        attention: Curves | None = None,
    ) -> Proposals:
        """Instances of one video.

        Args:
            tcam: Activations (snippets, classes).
            video_scores: Class scores of the whole video (classes,).
            n_classes: How many classes there are; one more column, the last, is then background and left out.
            classes: The class ids to look for, instead of those whose video score is high: training knows the tags.
            attention: How much each snippet matters (snippets,), for `cut.attention_thresholds`.
        """
        if n_classes is not None:
            n_classes = checked(int, n_classes, "n_classes")
            tcam = class_columns(as_array(tcam, "tcam"), n_classes, "the TCAM")
            if video_scores is not None:
                video_scores = class_columns(as_array(video_scores, "video_scores"), n_classes, "video_scores")
        return self.combine(self.cut(tcam, video_scores, classes=classes, attention=attention))

    def of_maps(self, maps: Sequence[ActivationMap], *, classes: Classes = None) -> Proposals:
        """Instances of one video that several streams have seen, each with its own map, scores and weight."""
        parts = [
            self.cut(one.tcam, one.video_scores, classes=classes, attention=one.attention).weighted(one.weight)
            for one in maps
        ]
        candidates = Candidates.concat(parts)
        if self.pool_threshold is None or len(parts) == 1:
            return self.combine(candidates)
        found = Instances.concat([self.combine(part).instances for part in parts])
        kept = nms(found, **vars(self.by(Nms, threshold=self.pool_threshold).combine))
        return Proposals(kept, candidates, None)

    def by(self, way: type[Combine], **settings: Any) -> "Proposer":
        """The same candidates combined in another way, with these of its settings.

        Fusion and NMS take over the groups of what they replace, so that a comparison changes one thing.

        >>> RELEASED.by(Nms, threshold=0.5).combine
        Nms(threshold=0.5, overlap='own_length', pad=1.0)
        """
        now = self.combine
        if isinstance(now, way):
            kept = vars(now)
        elif isinstance(now, SoftNms) or way is SoftNms:
            kept = {}
        else:
            kept = {"threshold": now.threshold, "overlap": now.overlap, "pad": now.pad}
        return replace(self, combine=way(**kept | settings))

    def without_decay(self) -> "Proposer":
        """The same, but overlapping fused instances do not weaken each other."""
        return self.by(Fusion, decay_sigma=None) if isinstance(self.combine, Fusion) else self

    def at_temperature(self, temperature: float) -> "Proposer":
        """The same with fusion at this temperature; suppression has none and stays as it is."""
        return self.by(Fusion, temperature=temperature) if isinstance(self.combine, Fusion) else self


#: The paper's test-time settings.
PAPER = Proposer()
#: The authors' released code, index for index (ends are one past the run, flanks are truncated, lengths inclusive).
RELEASED = Proposer(
    Cut(class_threshold=0.16, dilation=(0.0, 1.0), flanks=RELEASED_FLANKS, flank_rounding="truncate"),
    Fusion(temperature=0.2, overlap="own_length", pad=1.0, logit="inner"),
)
#: What we recommend, chosen on THUMOS14's training videos: the test settings of recipes/thumos14-gaufuse.yaml.
RECOMMENDED = Proposer(
    Cut(
        class_threshold=0.05,
        # 20 levels in even ratios
        thresholds=(
            *(0.003, 0.003823, 0.004871, 0.006208, 0.00791, 0.01008, 0.01284, 0.01637, 0.02086, 0.02658),
            *(0.03386, 0.04315, 0.05498, 0.07005, 0.08927, 0.1137, 0.1449, 0.1847, 0.2354, 0.3),
        ),
        min_length=1.0,
        dilation=(0.75, 0.75),
        flanks=Flanks(0.1),
        outer_weight=0.5,
        upsample=4,
        video_score_weight=0.05,
    ),
    Fusion(temperature=0.1, threshold=0.5, logit="inner", evidence=0.3, decay_sigma=0.3),
)
PRESETS = {"recommended": RECOMMENDED, "paper": PAPER, "released": RELEASED}
if TYPE_CHECKING:
    Preset = str
else:
    Preset = Literal[tuple(PRESETS)]
