"""Payloads of video files, and of videos in a store, each with a video that the page can play."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from wtal.annotations import Annotations
from wtal.data.store import Store, is_store
from wtal.errors import InputError
from wtal.localize import Localizer
from wtal.progress import Progress, silent, tracked
from wtal.propose import Proposer
from wtal.training.run import Run
from wtal.video.decode import probe
from wtal.video.extractor import Extractor
from wtal.video.pipeline import video_features
from wtal.video.playable import browser_type, playable
from wtal.video.snippets import Sampling
from wtal.view.page import embedded, link_to
from wtal.view.payload import Footage, payload, truth_of
from wtal.view.records import Record
from wtal.view.taught import Taught


def payloads_of_files(
    localizer: Localizer,
    files: Mapping[str, Path],
    opened: tuple[Extractor, Sampling],
    page: Path,
    *,
    run: str = "",
    embed: bool = False,
    truth: Annotations | None = None,
    proposer: Proposer | None = None,
    progress: Progress = silent,
) -> list[Record]:
    """What a page shows of these video files, whose features are extracted now.

    Args:
        localizer: The trained model.
        files: The files by the videos' names.
        opened: What `localizer.open_extractor` has given.
        page: Where the page will be, which links to the files.
        run: What the model's run is called.
        embed: Put the videos into the page.
        truth: The true instances, where they are known.
        proposer: Settings that take the place of the model's own.
        progress: Hears of seconds of video.
    """
    made, done_s = [], 0.0
    total_s = sum(probe(path).duration_s or 0.0 for path in files.values())
    for name, path in files.items():

        def of_all(step: str, at_s: float, _: float, detail: Mapping[str, object], before: float = done_s) -> None:
            progress(step, before + at_s, max(total_s, before + at_s), detail)

        found = video_features(path, *opened, progress=of_all)
        footage = Footage(name, found.array, found.timebase, found.duration_s, truth=truth_of(truth, name))
        made.append(payload(localizer, with_video(footage, path, page, embed), run=run, proposer=proposer))
        done_s += found.duration_s
    return made


def payloads_of_store(
    localizer: Localizer,
    store: Store,
    names: Iterable[str],
    page: Path,
    *,
    run: str = "",
    embed: bool = False,
    files: Mapping[str, Path] | None = None,
    taught: Taught | None = None,
    progress: Progress = silent,
) -> list[Record]:
    """What a page shows of videos whose features are in a store.

    Args:
        localizer: The trained model.
        store: The store.
        names: Its videos.
        page: Where the page will be, which links to the files.
        run: What the model's run is called.
        embed: Put the videos into the page.
        files: The video files that there are, by name.
        taught: What the run was taught of its training videos.
        progress: Hears of videos.
    """
    localizer.refuse_other_features(store)
    truth = store.truth() if store.has_truth else None
    made = []
    for name in tracked(list(names), "looking", progress):
        footage = Footage.of_store(store, name, truth)
        if files and name in files:
            footage = with_video(footage, files[name], page, embed)
        made.append(payload(localizer, footage, run=run, taught=taught))
    return made


def with_video(footage: Footage, path: Path, page: Path, embed: bool) -> Footage:
    """The same with a video to play: in the page, as a copy that browsers play if need be, or where the file is."""
    if embed:
        file, kind = playable(path)
        return replace(footage, url=embedded(file, kind), type=kind)
    return replace(footage, url=link_to(path, page), type=browser_type(path))


def store_of(run: Run, features: Path | None) -> Store:
    """The store that is named, or the one that a run was trained on.

    Args:
        run: The run.
        features: The store; None: where the run found it.
    """
    if features is not None:
        return Store.open(features)
    known = (run.environment() or {}).get("data", {}).get("path")
    if known is None:
        raise InputError(f"{run.path} does not say which data set it was trained on: name its store, `features=STORE`")
    if not is_store(Path(known)):
        raise InputError(f"the data set of {run.path} is not at {known} any more: say where, `features=STORE`")
    return Store.open(known)
