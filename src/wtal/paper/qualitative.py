"""The qualitative figure: one video's way from activation map to pseudo labels, generation by generation."""

import numpy as np

from wtal.errors import InputError
from wtal.evaluate.target_quality import average_precision, inside
from wtal.figures.page import PageBlock, Plot
from wtal.figures.style import GREEN, ORANGE, PURPLE
from wtal.figures.table import plain_name
from wtal.figures.timeline import Row, timeline
from wtal.formats.targets import TargetFile, read_targets
from wtal.localize import Localizer, localize_map
from wtal.maps import mean_map
from wtal.paper.experiment import Experiment
from wtal.paper.plan import PlannedRun, Variant
from wtal.paper.setting import Setting, way_of
from wtal.paper.trained import TrainedRuns
from wtal.propose import Nms
from wtal.pseudo.delta import delta_targets
from wtal.report.measures import clocks

#: the classes that the paper shows
CLASSES = ("GolfSwing", "JavelinThrow")


def shown_variants(setting: Setting) -> list[Variant]:
    """The recipe as it is."""
    for name in setting.videos:
        if name not in setting.store.names(setting.recipe.train_split):
            raise InputError(
                f"`videos={name}`: not a training video of {setting.store.path}; pseudo labels are made for those only"
            )
    return [setting.full()]


def qualitative(setting: Setting, trained: TrainedRuns) -> list[PageBlock]:
    """A timeline for each video, from the first seed's run."""
    job = trained.job(setting.full(), trained.seeds[0])
    generations = _generations(job)
    if not generations:
        raise InputError(f"{job.path} holds no pseudo labels (targets/); they belong to the figure")
    chosen = [(name, _main_class(trained, name)) for name in setting.videos] or _chosen(trained, job, generations)
    localizer = Localizer.load(job.path)
    return [_plot(trained, job, localizer, generations, name, class_id) for name, class_id in chosen]


def _generations(job: PlannedRun) -> dict[int, TargetFile]:
    made = (job.run.targets(stage.from_epoch) for stage in job.recipe.targets.stages if stage.relabel)
    return {int(path.stem.partition("-")[2]): read_targets(path) for path in made if path.exists()}


def _main_class(trained: TrainedRuns, name: str) -> int:
    """The class with the most true instances in a video, or its first tag where there is no truth."""
    video = trained.truth.videos.get(name)
    if video is not None and len(video.instances):
        return int(np.bincount(video.instances.class_ids).argmax())
    return trained.store.classes.index(trained.store.records[name].tags[0])


def _chosen(trained: TrainedRuns, job: PlannedRun, generations: dict[int, TargetFile]) -> list[tuple[str, int]]:
    """Of each of the paper's classes (or of the first two, in other data) the video with the most typical labels."""
    classes = trained.store.classes
    named = [classes.index(name) for name in CLASSES if name in classes] or list(range(min(2, len(classes))))
    clock = clocks(trained.store, job.recipe.test.offset_snippets)
    last = list(generations.values())[-1]
    found = []
    for class_id in named:
        scores = {}
        for name, values in last.targets.items():
            video = trained.truth.videos.get(name)
            if video is None or not len(video.instances.of_class(class_id)):
                continue
            right = inside(video.instances.of_class(class_id), len(values), clock[name])
            if right.any():
                scores[name] = average_precision(values[:, class_id].astype(np.float64), right)
        if scores:
            middle = float(np.median(list(scores.values())))
            found.append((min(scores, key=lambda name: (abs(scores[name] - middle), name)), class_id))
    return found


def _plot(
    trained: TrainedRuns,
    job: PlannedRun,
    localizer: Localizer,
    generations: dict[int, TargetFile],
    name: str,
    class_id: int,
) -> Plot:
    store = trained.store
    clock = clocks(store, job.recipe.test.offset_snippets)[name]
    streams = localizer.maps(name, store.features(name))
    curve = mean_map(streams).tcam[:, class_id]
    test = job.recipe.test.proposer
    video = trained.truth.videos.get(name)
    truth = None if video is None else video.instances.of_class(class_id)
    rows: dict[str, Row] = {"TCAM": curve}
    colours = {"truth": GREEN}
    if truth is not None:
        rows["truth"] = truth
    for title, proposer in (("NMS", test.by(Nms)), (way_of(test), test)):
        seconds = localize_map(streams, proposer, clock, store.duration_s(name))
        rows[title] = seconds.of_class(class_id)
    before = None
    for epoch, made in generations.items():
        now = made.targets[name]
        rows[f"G, epoch {epoch}"] = now[:, class_id].astype(np.float64)
        colours[f"G, epoch {epoch}"] = PURPLE
        if before is not None:
            rows[f"ΔG, epoch {epoch}"] = delta_targets(now, before)[:, class_id].astype(np.float64)
            colours[f"ΔG, epoch {epoch}"] = ORANGE
        before = now
    edges = clock.to_seconds(np.arange(len(curve) + 1.0))
    figure = timeline(rows, truth=truth, edges=edges, unit="second", colours=colours, curve_height=0.5)
    said = (
        f"{store.classes[class_id]} in {name}, a training video: the final model's map, instances by NMS and by "
        f"fusion, labels G of each generation and their change ΔG. Run {job.path.name}."
    )
    return Plot(plain_name("qualitative", store.classes[class_id], name), figure, said)


QUALITATIVE = Experiment("The qualitative figure", shown_variants, qualitative)
