"""How good pseudo labels are, against annotations that training never sees: the paper's real claim, measured.

First, labels of one and the same model made in different ways. Then, labels as they came out in training, generation
by generation. The bar is the activation map itself: labels that rank snippets worse than it cannot teach it much.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from wtal.evaluate import score, target_calibration, target_quality
from wtal.evaluate.target_quality import calibration_error
from wtal.figures.page import Picture, Section
from wtal.figures.plots import line_plot
from wtal.figures.table import Cell, Column, Table, measured
from wtal.formats.targets import VideoTargets
from wtal.instances import Instances
from wtal.paper import variants
from wtal.paper.finished import Finished
from wtal.paper.maps import mean_map
from wtal.paper.plan import Job, Variant
from wtal.paper.setting import Experiment, Setting
from wtal.propose import Nms, Proposer
from wtal.pseudo.linpro import Rows
from wtal.report.content import over_seeds
from wtal.report.measures import GenerationQuality, average, clocks, in_seconds, label_qualities
from wtal.report.runs import load_run
from wtal.training.config import TargetSettings


def wanted(setting: Setting) -> list[Variant]:
    """The base model, raw labels of NMS and of fusion, and Δ labels."""
    stem, recipe = setting.stem, setting.recipe
    return [
        variants.base(stem, recipe),
        variants.raw_labels(stem, recipe, "nms"),
        variants.raw_labels(stem, recipe, variants.way_of(recipe.targets.proposer)),
        variants.delta_targets(stem, recipe),
    ]


@dataclass(frozen=True)
class Quality:
    """In percent: snippet average precision, calibration error, and mAP of the instances behind the labels."""

    precision: float
    calibration: float
    instances: float | None


def section(setting: Setting, finished: Finished) -> Section:
    """Labels of one model in several ways, and labels in training generation by generation."""
    base, *trained = (variant.name for variant in wanted(setting))
    names = ("NMS, raw", f"{variants.way_of(setting.recipe.targets.proposer)}, raw", "Δ labels")
    generations = {
        name: [_generations(setting, finished, finished.job(variant, seed)) for seed in finished.seeds]
        for name, variant in zip(names, trained, strict=True)
    }
    lines = [
        over_seeds(name, number, [g.epoch for g in runs[0]], [[g.targets for g in run] for run in runs])
        for number, (name, runs) in enumerate(generations.items())
    ]
    figure = line_plot(lines, x="epoch at which the labels were made", y="snippet AP of G, %", ticks=lines[0].x)
    said = "How well labels rank snippets inside an action above those outside, on training videos."
    return Section(
        "labels",
        "Pseudo labels",
        (
            _one_model(setting, finished, base),
            _in_training(setting, finished, generations),
            Picture("label-quality", figure, said),
        ),
    )


def _one_model(setting: Setting, finished: Finished, base: str) -> Table:
    proposer = setting.recipe.targets.proposer
    ways: list[tuple[str, Proposer, Rows]] = [
        (f"{name}, rows {rows}", made_by, rows)
        for name, made_by in (("NMS", proposer.by(Nms)), (variants.way_of(proposer), proposer))
        for rows in ("sum", "mean")
    ]
    jobs = [finished.job(base, seed) for seed in finished.seeds]
    rows = [_row("the activation map itself", [_map_quality(finished, job) for job in jobs])]
    for name, made_by, kind in ways:
        settings = replace(
            setting.recipe.targets,
            proposer=made_by,
            rows=kind,
            background=False,  # a class of its own, which changes no other's labels
        )
        rows.append(_row(name, [_made_quality(setting, finished, job, settings) for job in jobs]))
    epoch = jobs[0].recipe.epochs
    said = (
        f"Recipe {setting.stem}, the model at epoch {epoch}, dropout off, seeds {', '.join(map(str, finished.seeds))}. "
        "Calibration error: how far labels are from the share of snippets that are in an action."
    )
    heads = (Column("labels"), Column("snippet AP"), Column("calibration error"), Column("mAP of instances"))
    title = "Labels of one model, training videos, %"
    return Table("labels-one-model", title, heads, tuple(rows), said, sections={1: ""})


def _row(name: str, qualities: list[Quality]) -> tuple[Cell, ...]:
    return (
        name,
        measured(one.precision for one in qualities),
        measured(one.calibration for one in qualities),
        measured(one.instances for one in qualities),
    )


def _map_quality(finished: Finished, job: Job) -> Quality:
    maps = finished.maps(job, job.recipe.train_split, for_targets=True)
    return _quality(finished, job, {name: mean_map(streams) for name, streams in maps.items()}, None)


def _made_quality(setting: Setting, finished: Finished, job: Job, settings: TargetSettings) -> Quality:
    from wtal.training.relabel import targets_from

    split = job.recipe.train_split
    maps = finished.maps(job, split, for_targets=True)
    made = targets_from(
        maps.values(),
        finished.store.tags(split),
        settings,
        temperature=setting.recipe.targets.stages[0].temperature,
    )
    names = list(maps)
    labels = VideoTargets.split(names, [len(streams[0].tcam) for streams in maps.values()], made.targets)
    return _quality(finished, job, labels, dict(zip(names, made.instances, strict=True)))


def _quality(
    finished: Finished,
    job: Job,
    labels: Mapping[str, Float[np.ndarray, "_ _"]],
    instances: Mapping[str, Instances] | None,
) -> Quality:
    store, truth = finished.store, finished.truth
    clock = clocks(store, job.recipe.test.offset_snippets)
    known = {name: values for name, values in labels.items() if name in truth.videos}
    found = None
    if instances is not None:
        seconds = in_seconds(instances, store, clock, n_classes=len(store.classes))
        there = {name: one for name, one in seconds.items() if name in truth.videos}
        protocol = job.recipe.test.protocols[0]
        found = average(score(there, truth, protocol=protocol, subset=job.recipe.train_split))
    return Quality(
        target_quality(known, truth, clock).mean, calibration_error(*target_calibration(known, truth, clock)), found
    )


def _generations(setting: Setting, finished: Finished, job: Job) -> list[GenerationQuality]:
    run = load_run(job.path, job.path.name)
    return label_qualities(run, finished.store, finished.truth, setting.protocols[0])


def _in_training(
    setting: Setting, finished: Finished, generations: Mapping[str, list[list[GenerationQuality]]]
) -> Table:
    rows: list[tuple[Cell, ...]] = []
    starts = set()
    for name, runs in generations.items():
        starts.add(len(rows))
        for same in zip(*runs, strict=True):
            rows.append(
                (
                    f"{name}, epoch {same[0].epoch}",
                    measured(g.targets for g in same),
                    measured(g.delta for g in same),
                    measured(calibration_error(*g.calibration) for g in same),
                    measured(g.instances for g in same),
                )
            )
    heads = (
        Column("labels of"),
        Column("G", "snippet AP"),
        Column("ΔG", "snippet AP"),
        Column("calibration error"),
        Column("mAP of instances"),
    )
    said = f"Recipe {setting.stem}, seeds {', '.join(map(str, finished.seeds))}, mAP by {setting.protocols[0]}."
    title = "Labels in training, %"
    return Table("labels-in-training", title, heads, tuple(rows), said, sections=dict.fromkeys(starts, ""))


EXPERIMENT = Experiment("labels", "Quality of the pseudo labels", wanted, section)
