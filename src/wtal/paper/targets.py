"""How good pseudo labels are, against annotations that training never sees: the paper's real claim, measured.

First, labels of one and the same model made in different ways. Then, labels as they came out in training, generation
by generation. The bar is the activation map itself: labels that rank snippets worse than it cannot teach it much.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from wtal.figures.page import PageBlock, Plot
from wtal.figures.table import Cell, Column, Table, measured
from wtal.formats.targets import VideoTargets
from wtal.maps import mean_map
from wtal.paper.experiment import Experiment
from wtal.paper.plan import PlannedRun, Variant
from wtal.paper.setting import Setting, way_of
from wtal.paper.trained import TrainedRuns
from wtal.propose import Nms, Proposer
from wtal.pseudo.linpro import Rows
from wtal.report.measures import GenerationQuality, TargetJudge, label_qualities
from wtal.report.targets import quality_over_epochs
from wtal.training.config import TargetSettings


def target_variants(setting: Setting) -> list[Variant]:
    """The base model, raw targets of NMS and of fusion, and Δ targets."""
    return [setting.base(), setting.raw_targets("nms"), setting.raw_targets(), setting.delta_targets()]


def target_tables(setting: Setting, trained: TrainedRuns) -> list[PageBlock]:
    """Labels of one model in several ways, and labels in training generation by generation."""
    base, *others = target_variants(setting)
    names = ("NMS, raw", f"{way_of(setting.recipe.targets.proposer)}, raw", "Δ labels")
    generations = {
        name: [
            label_qualities(trained.job(variant, seed).run, trained.store, trained.truth, setting.protocols[0])
            for seed in trained.seeds
        ]
        for name, variant in zip(names, others, strict=True)
    }
    figure = quality_over_epochs((name, number, runs) for number, (name, runs) in enumerate(generations.items()))
    said = "How well labels rank snippets inside an action above those outside, on training videos."
    return [
        _one_model(setting, trained, base),
        _in_training(setting, trained, generations),
        Plot("label-quality", figure, said),
    ]


def _one_model(setting: Setting, trained: TrainedRuns, base: Variant) -> Table:
    own = setting.recipe.targets
    ways: list[tuple[str, Proposer, Rows]] = [
        (f"{name}, rows {rows}", made_by, rows)
        for name, made_by in (("NMS", own.proposer.by(Nms)), (way_of(own.proposer), own.proposer))
        for rows in ("sum", "mean")
    ]
    jobs = [trained.job(base, seed) for seed in trained.seeds]
    rows = [("the activation map itself", *_measures([_quality(trained, job) for job in jobs]))]
    for name, proposer, kind in ways:
        # background is a class of its own, which changes no other's labels
        settings = replace(own, proposer=proposer, rows=kind, background=False)
        rows.append((name, *_measures([_quality(trained, job, settings) for job in jobs])))
    said = (
        f"Recipe {setting.stem}, the model at epoch {jobs[0].recipe.epochs}, dropout off, {trained.said_seeds}. "
        "Calibration error: how far labels are from the share of snippets that are in an action."
    )
    heads = (Column("labels"), Column("snippet AP"), Column("calibration error"), Column("mAP of instances"))
    title = "Labels of one model, training videos, %"
    return Table("labels-one-model", title, heads, tuple(rows), said, sections={1: ""})


def _measures(same: Sequence[GenerationQuality], *, with_delta: bool = False) -> list[Cell]:
    """Over seeds: how well labels (and their change) rank snippets, calibration, and the instances behind them."""
    return [
        measured(one.targets for one in same),
        *([measured(one.delta for one in same)] if with_delta else []),
        measured(one.calibration_error for one in same),
        measured(one.instances for one in same),
    ]


def _quality(trained: TrainedRuns, job: PlannedRun, settings: TargetSettings | None = None) -> GenerationQuality:
    """Of the labels that these settings make of the run's activation maps, or of the maps themselves."""
    from wtal.training.relabel import targets_from

    split = job.recipe.train_split
    judge = TargetJudge(job.recipe, trained.store, trained.truth, job.recipe.test.protocols[0])
    maps = trained.maps(job, split, for_targets=True)
    if settings is None:
        return judge.judge({name: mean_map(streams).tcam for name, streams in maps.items()})
    tags = trained.store.tags(split)
    made = targets_from(maps.values(), tags, settings, temperature=settings.stages[0].temperature)
    targets = VideoTargets.split(list(maps), [len(streams[0].tcam) for streams in maps.values()], made.targets)
    return judge.judge(targets, dict(zip(maps, made.instances, strict=True)))


def _in_training(
    setting: Setting, trained: TrainedRuns, generations: Mapping[str, list[list[GenerationQuality]]]
) -> Table:
    rows: list[tuple[Cell, ...]] = []
    sections = {}
    for name, runs in generations.items():
        sections[len(rows)] = ""
        for same in zip(*runs, strict=True):
            rows.append((f"{name}, epoch {same[0].epoch}", *_measures(same, with_delta=True)))
    heads = (
        Column("labels of"),
        Column("G", "snippet AP"),
        Column("ΔG", "snippet AP"),
        Column("calibration error"),
        Column("mAP of instances"),
    )
    said = f"Recipe {setting.stem}, {trained.said_seeds}, mAP by {setting.protocols[0]}."
    return Table("labels-in-training", "Labels in training, %", heads, tuple(rows), said, sections=sections)


TARGETS = Experiment("Quality of the pseudo labels", target_variants, target_tables)
