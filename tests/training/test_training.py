"""What a run learns from, and what it leaves behind."""

import json
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from small import outcome
from wtal.data.store import Store
from wtal.data.video_record import VideoRecord
from wtal.data.writer import new_store
from wtal.errors import DataWarning, InputError
from wtal.formats import read_predictions
from wtal.formats.targets import read_targets
from wtal.localize import Localizer
from wtal.losses import signed_cross_entropy
from wtal.maps import ActivationMap
from wtal.models import build
from wtal.models.protocol import Batch
from wtal.propose import Cut, Proposer
from wtal.pseudo.delta import Stage
from wtal.training import Execution, Recipe, read_recipe, train
from wtal.training.config import Optimizer, SegmentSampling, TargetSettings
from wtal.training.relabel import relabel
from wtal.training.videos import Videos, video_seeds


def metrics(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_a_run_leaves_everything_behind(whole_run: Path, store: Store) -> None:
    epochs = [line for line in metrics(whole_run) if "event" not in line]
    assert [line["epoch"] for line in epochs] == [0, 1, 2, 3, 4]
    assert [line["learning_rate"] for line in epochs] == [1e-2, 1e-2, 1e-2, 5e-3, 5e-3]
    assert [line["epoch"] for line in metrics(whole_run) if "event" in line] == [2, 4]
    about = json.loads((whole_run / "environment.json").read_text())
    assert about["python"] == platform.python_version()
    assert about["data"]["fingerprint"] == store.fingerprint
    assert (about["threads"], about["seed"], about["versions"]["torch"]) == (1, 0, torch.__version__)
    assert read_recipe(whole_run / "config.yaml").epochs == 5
    found = read_predictions(whole_run / "predictions.json", store.classes)
    assert set(found) == set(store.names("test"))
    scores = json.loads((whole_run / "evaluation.json").read_text())
    assert set(scores) == {"thumos14"}
    assert len(scores["thumos14"]["map"]) == 7


def test_progress_counts_epochs_and_the_videos_of_what_is_between_them(
    store: Store, recipe: Path, whole_run: Path, tmp_path: Path
) -> None:
    heard: dict[str, list[tuple[float, float, int]]] = {}
    last: dict[str, float] = {}

    def hear(step: str, completed: float, total: float, detail: Mapping[str, float]) -> None:
        heard.setdefault(step, []).append((completed, total, int(detail["epoch"])))
        last.update(detail)

    run = train(recipe, store, tmp_path / "run", progress=hear, execution=Execution(threads=1)).path
    assert list(heard) == ["training", "targets", "predictions"]
    steps = 5  # 13 videos, 3 at a time
    done = [number / steps for number in range(5 * steps + 1)]
    assert [completed for completed, _, _ in heard["training"]] == pytest.approx(done)
    assert {total for _, total, _ in heard["training"]} == {5}
    assert heard["targets"] == [(number, 13, epoch) for epoch in (2, 4) for number in range(14)]
    assert heard["predictions"] == [(number, 3, 5) for number in range(4)]
    assert last["steps"] == steps
    assert last["fore"] == pytest.approx(metrics(run)[-1]["fore"])
    assert outcome(run) == outcome(whole_run)  # which nobody watched


def test_the_losses_fall(store: Store, tmp_path: Path) -> None:
    recipe = Recipe("rskp", 12, ((12, 5e-3),), {"dropout": 0.0})
    run = train(recipe, store, tmp_path / "run", execution=Execution(threads=1))
    losses = [line["fore"] for line in metrics(run.path)]
    assert losses[-1] < 0.5 * losses[0]


def test_pseudo_labels_teach_in_their_stages_with_their_weight_and_target(store: Store, tmp_path: Path) -> None:
    """With a learning rate of 0 the model stays what it is, so that everything can be computed beside it."""
    stages = (
        Stage(1, source="raw", scale=0.5, temperature=0.1, weight=2.0, growth=1.5, growth_from=1, delay=1),
        Stage(4, source="delta", relabel=False, weight=3.0),
        Stage(5, source="delta", weight=3.0),
    )
    options = {"dropout": 0.0, "warmup_epoch": 99, "pseudo_mix": (0.7, 0.3)}
    recipe = Recipe("rskp", 6, ((6, 0.0),), options, targets=TargetSettings(stages=stages), batch_videos=4)
    run = train(recipe, store, tmp_path / "run", execution=Execution(threads=1))
    epochs = [line for line in metrics(run.path) if "event" not in line]
    assert ["pseudo" in line for line in epochs] == [False, False, True, True, True, True]
    assert [line.get("pseudo_weight") for line in epochs] == [None, None, 3.0, 4.5, 3.0, 3.0]

    model = Localizer.load(run.path).model
    names = store.names("train")
    with torch.no_grad():
        output = model(Batch.pack([torch.from_numpy(np.array(store.features(name))) for name in names]))
    made = read_targets(run.targets(1))
    assert list(made.targets) == list(names)
    assert made.classes == store.classes
    assert any(map(len, made.instances.values()))
    lengths = [len(values) for values in made.targets.values()]
    labels = torch.from_numpy(np.concatenate(list(made.targets.values())))
    assert labels.max() > 0
    assert (labels >= 0).all()
    shares = zip((0.7, 0.3), output.supervised, strict=True)
    once = sum(share * signed_cross_entropy(part.logits, labels, lengths).mean().item() for share, part in shares)
    # raw labels at half scale; then their change since nothing; then none, as the model has not changed
    expected = [3.0 * 0.5 * once, 4.5 * 0.5 * once, 3.0 * once, 0.0]
    assert [line["pseudo"] for line in epochs[2:]] == pytest.approx(expected, rel=1e-4, abs=1e-6)
    totals = [sum(line[name] for name in ("fore", "back", "attention", "spl")) for line in epochs[2:]]
    assert [line["loss"] - total for line, total in zip(epochs[2:], totals, strict=True)] == pytest.approx(
        expected, rel=1e-3, abs=1e-5
    )


def labels_by(store: Store, **settings: object) -> tuple[list[set[int]], list[set[int]], torch.Tensor]:
    torch.manual_seed(0)
    model = build("rskp", len(store.classes), store.dimensions)
    videos = Videos(store, "train", torch.device("cpu"))
    proposer = Proposer(Cut(class_threshold=0.0))
    targets = TargetSettings(proposer=proposer, **settings)  # type: ignore[arg-type]
    made = relabel(model, videos, Recipe("rskp", 1, ((1, 1e-3),), targets=targets), Stage(0))
    assert model.training
    found = [set(instances.class_ids.tolist()) for instances in made.instances]
    values = made.targets.toarray()
    parts = np.split(values, videos.offsets[1:-1])
    labelled = [set(np.flatnonzero(part.any(axis=0)).tolist()) for part in parts]
    return found, labelled, torch.from_numpy(values)


def test_labels_are_made_for_the_true_tags(store: Store) -> None:
    tags = [set(np.flatnonzero(row).tolist()) for row in store.tags("train")]
    found, labelled, _ = labels_by(store)
    assert found == tags
    assert all(there <= wanted for there, wanted in zip(labelled, tags, strict=True))
    found, _, values = labels_by(store, background=True)
    assert found == [wanted | {3} for wanted in tags]
    assert values.shape[1] == 4


def test_labels_may_be_made_for_predicted_classes_and_with_dropout(store: Store) -> None:
    found, _, values = labels_by(store, classes="scores")
    tags = [set(np.flatnonzero(row).tolist()) for row in store.tags("train")]
    assert any(there - wanted for there, wanted in zip(found, tags, strict=True))
    _, _, again = labels_by(store, classes="scores")
    assert torch.equal(values, again)
    _, _, noisy = labels_by(store, classes="scores", dropout=True)
    assert not torch.equal(values, noisy)
    assert torch.equal(noisy, labels_by(store, classes="scores", dropout=True)[2])


def test_the_localizer_gives_what_training_predicted(whole_run: Path, store: Store, tmp_path: Path) -> None:
    localizer = Localizer.load(whole_run)
    written = read_predictions(whole_run / "predictions.json", localizer.classes)
    name = store.names("test")[0]
    found = localizer(store.features(name), store.timebase(name), duration_s=store.duration_s(name))
    order = written[name].order()
    np.testing.assert_allclose(found.sorted().segments, written[name].segments[order], atol=1e-3)
    assert len(Localizer.load(whole_run)(np.ones((1, 16), np.float32))) == 0
    for wrong, message in (
        (np.zeros((4, 15)), r"\(snippets, 16\), got \(4, 15\)"),
        (np.full((4, 16), np.nan), "finite"),
        (np.zeros((4, 16)), "zero everywhere"),
    ):
        with pytest.raises(InputError, match=message):
            localizer(wrong)
    with pytest.raises(InputError, match="holds no trained model"):
        Localizer.load(tmp_path)


def test_localize_on_the_command_line(
    whole_run: Path, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from wtal.cli import main

    out = tmp_path / "found.json"
    main(["localize", str(whole_run), "--features", str(store.path), "--split", "test", "--all", "-o", str(out)])
    assert out.read_bytes() == (whole_run / "predictions.json").read_bytes()
    main(["localize", "--features", str(store.path), "--offset-snippets", "-0.5", str(whole_run), "-o", str(out)])
    assert len(read_predictions(out, store.classes)) == len(store)
    cases = [
        ([str(whole_run)], "wanted one of: RUN VIDEO"),
        (
            ["--features", str(store.path)],
            "wanted one of: RUN VIDEO ..., or RUN --features STORE, or --tcam FILE",
        ),
        ([str(whole_run), "--tcam", "maps.npz"], "without a run"),
        ([str(whole_run), "--features", str(store.path), "--fps", "30"], "known to the store"),
        ([str(tmp_path), "--features", str(store.path)], "is it a folder that wtal train made?"),
    ]
    for arguments, message in cases:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["localize", *arguments])
        assert ended.value.code == 2
        assert message in capsys.readouterr().err


def test_train_on_the_command_line(
    store: Store, recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from wtal.cli import main

    monkeypatch.chdir(tmp_path)
    recipe.write_text("model: rskp\nepochs: 1\nlearning_rate: [[1, 1e-3]]\n")
    main(["train", str(recipe), "--data", str(store.path), "--seed", "3", "--threads", "1"])
    assert "thumos14-paper" in capsys.readouterr().out
    assert (tmp_path / "runs" / "tiny-seed3" / "model" / "model.safetensors").exists()
    main(["train", str(recipe), "--data", str(store.path), "--fold", "2/3", "--threads", "1"])
    predicted = json.loads((tmp_path / "runs" / "tiny-fold2of3-seed0" / "predictions.json").read_text())["results"]
    assert len(predicted) == 4
    assert set(predicted) < set(store.names("train"))
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["train", str(recipe), "--data", str(store.path), "--fold", "half"])
    assert "--fold is a part and their number, such as 1/4" in capsys.readouterr().err
    (tmp_path / "tree" / "features" / "train").mkdir(parents=True)
    for data, message in (("none", "does not exist"), ("tree", "wtal data convert tree --layout cola -o tree-store")):
        with pytest.raises(SystemExit):
            main(["train", str(recipe), "--data", data])
        assert message in capsys.readouterr().err


def test_one_may_train_on_tagged_videos_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with new_store(tmp_path / "own", classes=("Run", "Jump")) as writer:
        for name, t in (("a", 9), ("b", 1), ("c", 30)):
            writer.add(VideoRecord(name, "train", ("Run",)), rng.standard_normal((t, 8)).astype(np.float32))
    recipe = Recipe("rskp", 2, ((2, 1e-3),), targets=TargetSettings(stages=(Stage(1),)))
    with pytest.warns(DataWarning, match="no training video is tagged Jump"):
        run = train(recipe, tmp_path / "own", tmp_path / "run", execution=Execution(threads=1))
    assert run.ended
    assert run.evaluation == {}
    assert not (run.path / "predictions.json").exists()
    assert Localizer.load(run.path).classes == ("Run", "Jump")


def test_a_loss_that_is_not_finite_stops_the_run_and_says_where(store: Store, tmp_path: Path) -> None:
    recipe = Recipe("rskp", 3, ((3, 1e-3),), {"attention_weight": float("inf")})
    with pytest.raises(InputError, match=r"epoch 0, step 0: the loss is not finite .*attention.*videos train_"):
        train(recipe, store, tmp_path / "run", execution=Execution(threads=1))


def test_other_seeds_learn_otherwise(store: Store, tmp_path: Path) -> None:
    recipe = Recipe("rskp", 1, ((1, 1e-3),))
    first, second = (
        train(replace(recipe, seed=s), store, tmp_path / str(s), execution=Execution(threads=1)).path for s in (0, 1)
    )
    assert metrics(first)[0]["loss"] != metrics(second)[0]["loss"]


def test_the_package_trains_and_localizes_in_two_calls(
    store: Store, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wtal

    monkeypatch.chdir(tmp_path)
    recipe.write_text("model: rskp\nepochs: 1\nlearning_rate: [[1, 1e-3]]\n")
    run = wtal.train(recipe, store.path, execution=Execution(threads=1))
    assert run.path == Path("runs") / "tiny-seed0"
    assert isinstance(wtal.Localizer.load(run.path)(store.features(store.names("test")[0])), wtal.Instances)


def test_torch_is_not_loaded_before_training_begins() -> None:
    code = (
        "import sys, wtal; wtal.train, wtal.Localizer\n"
        "import wtal.cli.train, wtal.cli.localize, wtal.cli.demo; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


WITHOUT_TORCH = """
import sys
class Without:
    def find_spec(self, name, *_):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, Without())
from wtal.cli import main
main()
"""


def test_without_torch_the_error_names_the_extra(
    start: Callable[..., "subprocess.Popen[str]"], recipe: Path, store: Store
) -> None:
    process = start("-c", WITHOUT_TORCH, "train", recipe, "--data", store.path)
    _, said = process.communicate()
    assert process.returncode == 2
    assert "pip install 'wtal[train]'" in said


def test_scores_on_the_way_change_nothing_but_the_log(store: Store, tmp_path: Path, whole_run: Path) -> None:
    run = train(
        read_recipe(whole_run / "config.yaml"),
        store,
        tmp_path / "run",
        execution=Execution(threads=1, evaluate_every=2),
    )
    watched, plain_run = outcome(run.path), outcome(whole_run)
    logged = watched.pop("log")
    assert [line for line in logged if line.get("event") != "evaluation"] == plain_run.pop("log")
    assert watched == plain_run
    scores = [line for line in logged if line.get("event") == "evaluation"]
    assert [line["epoch"] for line in scores] == [1, 3]
    assert set(scores[0]["average"]["thumos14"]) == {"0.1:0.5", "0.3:0.7", "0.1:0.7"}
    with pytest.raises(InputError, match="evaluate_every must be 1 or more"):
        train(read_recipe(whole_run / "config.yaml"), store, tmp_path / "other", execution=Execution(evaluate_every=0))


def test_a_step_sees_the_sampled_snippets_and_their_labels(store: Store) -> None:
    videos = Videos(store, "train", torch.device("cpu"))
    lengths = np.diff(videos.offsets)
    seeds = video_seeds(0, 3, range(len(videos)))
    n = int(np.median(lengths))
    for sampling in (SegmentSampling(n), SegmentSampling(n, repeat=False), SegmentSampling()):
        rows = videos.sampled(range(len(videos)), seeds, sampling)
        for number, part in enumerate(rows):
            whole = sampling.segments is None or (lengths[number] <= n and not sampling.repeat)
            assert len(part) == (lengths[number] if whole else n)
            assert (np.diff(part) >= 0).all()
            assert 0 <= part[0] <= part[-1] < lengths[number]
        batch = videos.batch(range(len(videos)), snippets=rows)
        everything = torch.from_numpy(np.concatenate([store.features(name) for name in videos.names]))
        torch.testing.assert_close(batch.features, everything[videos.rows(range(len(videos)), rows)])
    again, other = (videos.sampled([1], video_seeds(0, epoch, [1]), SegmentSampling(5))[0] for epoch in (3, 4))
    assert (again == videos.sampled([0, 1], seeds[:2], SegmentSampling(5))[1]).all()  # whatever step it falls to
    assert (again != other).any()


def test_losses_are_logged_per_video_and_a_mean_only_shrinks_the_step(store: Store, tmp_path: Path) -> None:
    """With a momentum of 0 and a large ε Adam's step is in proportion to the gradient."""
    optimizer = Optimizer(betas=(0.0, 0.0), eps=1e6, weight_decay=0.0)
    base = Recipe("stpn", 1, ((1, 1e3),), optimizer=optimizer, batch_videos=13)
    before = build_state(store, base)
    weights = {}
    for reduction in ("sum", "mean"):
        run = train(replace(base, reduction=reduction), store, tmp_path / reduction, execution=Execution(threads=1))
        weights[reduction] = Localizer.load(run.path).model.state_dict()["classifier.weight"] - before
    torch.testing.assert_close(weights["sum"], 13 * weights["mean"], rtol=1e-2, atol=1e-8)
    assert metrics(tmp_path / "sum")[0]["loss"] == metrics(tmp_path / "mean")[0]["loss"]


def build_state(store: Store, recipe: Recipe) -> torch.Tensor:
    torch.manual_seed(recipe.seed)
    return build(recipe.model, len(store.classes), store.dimensions).state_dict()["classifier.weight"].clone()


def test_a_sampled_map_lies_on_the_videos_own_snippets(whole_run: Path, store: Store) -> None:
    localizer = Localizer.load(whole_run)
    name = store.names("test")[0]
    features = store.features(name)

    def shown(segments: int | None) -> ActivationMap:
        return replace(localizer, card=replace(localizer.card, segments=segments)).maps(name, features)[0]

    whole, few = shown(None), shown(len(features) // 2)
    assert few.tcam.shape == whole.tcam.shape
    assert few.attention is not None
    assert few.attention.shape == (len(features),)
    assert not np.allclose(few.tcam, whole.tcam)
    np.testing.assert_array_equal(shown(len(features)).tcam, whole.tcam)
