"""Kept maps answer for models of several streams, with attention, or of sampled snippets."""

from pathlib import Path

import pytest

from wtal.data.store import Store
from wtal.formats.maps import read_maps
from wtal.maps import mean_map
from wtal.paper.plan import Variant, carry_out, make_plan
from wtal.paper.trained import TrainedRuns
from wtal.training import Execution, read_recipe
from wtal.training.run import Run

COMMON = "epochs: 2\nbatch_videos: 5\nlearning_rate: [[2, 1e-2]]\n"
RECIPES = {
    "streams": """
model: facnet
stream_weights: {rgb: 0.5, flow: 1.0}
test: {protocols: [thumos14], proposer: {pool_threshold: 0.9}}
""",
    "attention": """
model: wum
model_options: {hidden: 16, class_reduction: sum}
test: {protocols: [thumos14], segments: 20, proposer: {cut: {attention_thresholds: [0.3, 0.5], upsample: 4}}}
""",
}


@pytest.mark.parametrize("kind", RECIPES)
def test_kept_maps_give_the_runs_own_scores(kind: str, store: Store, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(COMMON + RECIPES[kind])
    recipe = read_recipe(tmp_path / "r.yaml")
    plan = make_plan([Variant("one", recipe)], (0,), store, tmp_path / "runs")
    carry_out(plan, store, execution=Execution(threads=1))
    job = plan.found["one", 0]
    evaluation = Run(job.path).evaluation
    assert evaluation is not None
    for _ in range(2):  # by a forward pass, then from the file
        score = TrainedRuns(plan, store, (0,)).score(job, recipe.test.proposer, "thumos14")
        assert score.map.tolist() == pytest.approx(evaluation["thumos14"]["map"], abs=1e-4)
    maps = read_maps(job.path / "maps" / "test.npz").videos
    assert set(maps) == set(store.names("test"))
    for name, streams in maps.items():
        assert [one.weight for one in streams] == ([0.5, 1.0] if kind == "streams" else [1.0])
        assert mean_map(streams).tcam.shape == (store.length(name), len(store.classes))
