"""Trained runs: one forward pass each, kept beside the run, then every question about test settings in seconds."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from wtal.annotations import Annotations
from wtal.data.store import Store
from wtal.errors import InputError
from wtal.evaluate import Score, score
from wtal.evaluate.ambiguous import Intervals
from wtal.figures.table import Measure, measured
from wtal.formats.maps import read_maps, write_maps
from wtal.instances import Instances
from wtal.localize import Localizer, localize_map
from wtal.maps import Maps
from wtal.paper.plan import Plan, PlannedRun, Variant
from wtal.progress import Progress, silent, tracked
from wtal.propose import Proposer
from wtal.report.measures import clocks


@dataclass(frozen=True, eq=False)
class TrainedRuns:
    """The runs of a plan that was carried out, by variant and seed, over one store with its truth.

    `ambiguous` are the intervals that predictions must not touch, None if the list is off. Progress counts the videos
    of a forward pass.
    """

    plan: Plan
    store: Store
    seeds: tuple[int, ...]
    ambiguous: Intervals | None = None
    progress: Progress = silent
    _maps: dict[tuple[Path, str], Maps] = field(default_factory=dict)
    _scores: dict[tuple[Path, Proposer, str], Score] = field(default_factory=dict)

    @cached_property
    def truth(self) -> Annotations:
        """The true instances of all videos."""
        return self.store.truth()

    def job(self, variant: Variant, seed: int) -> PlannedRun:
        """The run of a variant and a seed, for what cannot do without it."""
        job = self.plan.found[variant.name, seed]
        if not job.run.ended:
            raise InputError(f"{job.path} is not trained, and this cannot do without it: leave `as_is=True` out")
        return job

    def maps(self, job: PlannedRun, split: str, *, for_targets: bool = False) -> Maps:
        """The activation maps of a split's videos: from the file beside the run, or by one forward pass that writes
        it."""
        kind = f"{split}-label" if for_targets else split
        if (job.path, kind) not in self._maps:
            path = job.path / "maps" / f"{kind}.npz"
            if not path.exists():
                localizer = Localizer.load(job.path)
                names = tracked(self.store.names(split), "forward pass", self.progress)
                made = {n: localizer.maps(n, self.store.features(n), for_targets=for_targets) for n in names}
                write_maps(path, self.store.classes, made)
            self._maps[job.path, kind] = read_maps(path).videos
        return self._maps[job.path, kind]

    def predictions(self, job: PlannedRun, proposer: Proposer, split: str) -> dict[str, Instances]:
        """The instances in seconds that these settings find in a split's videos."""
        clock = clocks(self.store, job.recipe.test.offset_snippets)
        return {
            name: localize_map(maps, proposer, clock[name], self.store.duration_s(name))
            for name, maps in self.maps(job, split).items()
        }

    def score(self, job: PlannedRun, proposer: Proposer, protocol: str) -> Score:
        """How good the test videos' instances are with these settings."""
        key = (job.path, proposer, protocol)
        if key not in self._scores:
            split = job.recipe.test_split
            found = self.predictions(job, proposer, split)
            known = {name: instances for name, instances in found.items() if name in self.truth.videos}
            self._scores[key] = score(known, self.truth, protocol=protocol, split=split, ambiguous=self.ambiguous)
        return self._scores[key]

    def scores(self, variant: Variant | None, proposer: Proposer, protocol: str) -> list[Score]:
        """The same for every seed that is trained; none where there is no variant to train."""
        jobs = [self.plan.found[variant.name, seed] for seed in self.seeds] if variant is not None else []
        return [self.score(job, proposer, protocol) for job in jobs if job.run.ended]

    def average(self, variant: Variant | None, proposer: Proposer, protocol: str) -> Measure | None:
        """Average mAP over seeds."""
        return measured(one.headline for one in self.scores(variant, proposer, protocol))

    @property
    def gaps(self) -> tuple[str, ...]:
        """Names of the runs that are not trained."""
        return tuple(job.path.name for job in self.plan.jobs if not job.run.ended)

    @property
    def ambiguity(self) -> str:
        """Whether the list of ambiguous intervals was used, in words."""
        return "ambiguity list as each protocol has it" if self.ambiguous is None else "ambiguity list on"

    @property
    def said_seeds(self) -> str:
        """The seeds, in words."""
        return f"seeds {', '.join(map(str, self.seeds))}"

    @property
    def conditions(self) -> str:
        """Seeds, list and videos behind a table, in words."""
        held_out = f", scored on part {self.store.part} of the training videos" if self.store.part else ""
        return f"{self.said_seeds}, {self.ambiguity}{held_out}"
