"""What has to be trained: each run once, what is shared once, what is there not at all."""

from dataclasses import replace
from pathlib import Path

import pytest

from small import make_store, outcome
from wtal.data.store import Store
from wtal.errors import InputError
from wtal.paper.plan import Variant, carry_out, make_plan
from wtal.paper.setting import Setting
from wtal.propose import Nms
from wtal.training import Execution, read_recipe, train
from wtal.training.config import Recipe
from wtal.training.run import Run


@pytest.fixture
def whole(recipe: Path) -> Recipe:
    return read_recipe(recipe)


def tiny(store: Store, recipe: Recipe) -> Setting:
    return Setting(store, "tiny", recipe)


def all_variants(setting: Setting) -> list[Variant]:
    return [setting.full(), setting.no_targets(), setting.raw_targets("nms"), setting.full()]


def test_what_runs_share_is_trained_once(whole: Recipe, store: Store, tmp_path: Path) -> None:
    plan = make_plan(all_variants(tiny(store, whole)), (0, 1), store, tmp_path)
    names = [job.path.name for job in plan.jobs]
    assert names[:4] == ["tiny-base-seed0", "tiny-full-seed0", "tiny-no-labels-seed0", "tiny-labels-nms-seed0"]
    assert len(names) == 8
    assert [job.epochs_to_train for job in plan.jobs[:4]] == [2, 3, 3, 3]
    assert (plan.epochs_to_train, plan.alone) == (22, 34)
    assert all(job.base is plan.jobs[0] for job in plan.jobs[1:4])
    assert (plan.unpaced, plan.seconds(*plan.jobs)) == (("rskp",), None)


def test_finished_runs_are_found_by_what_they_learned(whole: Recipe, store: Store, tmp_path: Path) -> None:
    elsewhere = train(whole, store, tmp_path / "elsewhere", execution=Execution(threads=1))
    other_test = replace(whole, test=replace(whole.test, proposer=whole.test.proposer.at_temperature(0.7)))
    plan = make_plan([tiny(store, other_test).full()], (0,), store, tmp_path / "runs", reuse=[elsewhere.path])
    (job,) = plan.jobs
    assert (job.path, job.state, job.epochs_to_train, job.base) == (elsewhere.path, "finished", 0, None)
    pace = plan.seconds_per_epoch["rskp"]
    stpn = Variant("stpn", replace(whole, model="stpn", model_options={}, targets=replace(whole.targets, stages=())))
    more = make_plan([stpn, tiny(store, whole.with_seed(5)).full()], (5,), store, tmp_path, reuse=[elsewhere.path])
    of_rskp = sum(job.epochs_to_train for job in more.jobs if job.recipe.model == "rskp")
    assert (more.unpaced, more.seconds(*more.jobs)) == (("stpn",), pytest.approx(pace * of_rskp))
    assert make_plan([stpn], (5,), store, tmp_path, reuse=[elsewhere.path]).seconds(job, more.jobs[0]) is None
    other = make_store(tmp_path / "other", seed=3)
    again = make_plan([tiny(other, whole).full()], (0,), other, tmp_path)
    assert [job.state for job in again.jobs] == ["new", "new"]
    for data, run in ((other, elsewhere.path), (store, tmp_path / "nowhere")):
        with pytest.raises(InputError, match=f"`reuse={run}`: not a run over"):
            make_plan([tiny(store, whole).full()], (0,), data, tmp_path / "runs", reuse=[run])


def test_a_sweep_goes_on_where_it_was_stopped(whole: Recipe, store: Store, tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    heard = []

    def stop(step, completed, total, detail) -> None:
        if step == "training":
            heard.append(completed)
            assert total == plan.epochs_to_train
        if detail["run"] == "tiny-full-seed0" and detail["epoch"] == 4:
            raise StopError

    wanted = [tiny(store, whole).full()]
    plan = make_plan(wanted, (0,), store, tmp_path)
    with pytest.raises(StopError):
        carry_out(plan, store, progress=stop, execution=Execution(threads=1))
    assert heard == sorted(heard)
    plan = make_plan(wanted, (0,), store, tmp_path)
    (begun,) = plan.jobs
    assert (begun.state, begun.epochs_done) == ("begun", 4)
    carry_out(plan, store, execution=Execution(threads=1))
    (done,) = make_plan(wanted, (0,), store, tmp_path).jobs
    assert done.state == "finished"


class KilledError(Exception):
    """What kill -9 is to a test."""


@pytest.mark.parametrize("file", ["environment.json", "config.yaml", "predictions.json", "evaluation.json"])
@pytest.mark.parametrize("killed", ["tiny-base-seed0", "tiny-full-seed0"])
def test_a_sweep_killed_before_a_file_is_written_goes_on_to_the_same_end(
    whole: Recipe, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, killed: str
) -> None:
    wanted = [tiny(store, whole).full()]
    carry_out(make_plan(wanted, (0,), store, tmp_path / "whole"), store, execution=Execution(threads=1))

    replace_file = Path.replace

    def die(self: Path, target: Path) -> Path:
        if (Path(target).name, Path(target).parent.name) == (file, killed):
            raise KilledError
        return replace_file(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", die)
        with pytest.raises(KilledError):
            carry_out(make_plan(wanted, (0,), store, tmp_path / "cut"), store, execution=Execution(threads=1))
    run = Run(tmp_path / "cut" / killed)
    assert not run.ended
    assert run.begun == (file in ("predictions.json", "evaluation.json"))
    plan = make_plan(wanted, (0,), store, tmp_path / "cut")
    assert next(job for job in plan.jobs if job.path == run.path).state == ("begun" if run.begun else "new")
    carry_out(plan, store, execution=Execution(threads=1))
    assert [job.state for job in make_plan(wanted, (0,), store, tmp_path / "cut").jobs] == ["finished"]
    for name in ("tiny-base-seed0", "tiny-full-seed0"):
        assert outcome(tmp_path / "cut" / name) == outcome(tmp_path / "whole" / name)
    assert Run(tmp_path / "cut" / killed).ended


def test_a_folder_with_something_else_is_not_touched(whole: Recipe, store: Store, tmp_path: Path) -> None:
    train(
        replace(whole, epochs=1, targets=replace(whole.targets, stages=())),
        store,
        tmp_path / "tiny-full-seed0",
        execution=Execution(threads=1),
    )
    with pytest.raises(InputError, match="tiny-full-seed0 holds a run of another recipe or data set"):
        make_plan([tiny(store, whole).full()], (0,), store, tmp_path)


@pytest.mark.parametrize("seeds", [(), (0, 0), (-1,)])
def test_seeds_must_make_sense(whole: Recipe, store: Store, tmp_path: Path, seeds: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="seeds must be different"):
        make_plan([tiny(store, whole).full()], seeds, store, tmp_path)


def test_variants_change_what_their_names_say(whole: Recipe, store: Store) -> None:
    setting = tiny(store, whole)
    boxes = setting.raw_targets("nms").recipe.targets
    assert boxes.proposer == replace(whole.targets.proposer, combine=Nms(threshold=0.25))
    assert {stage.source for stage in boxes.stages} == {"raw"}
    assert [stage.from_epoch for stage in boxes.stages] == [2, 4]
    warm = setting.at_temperature(0.5)
    assert {stage.temperature for stage in warm.recipe.targets.stages} == {0.5}
    assert warm.name == "tiny-temperature-0.5"
    with pytest.raises(InputError, match="makes pseudo labels"):
        tiny(store, setting.no_targets().recipe).full()
