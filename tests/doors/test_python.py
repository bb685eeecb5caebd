"""Python calls as people get them wrong: each is refused by a sentence that names the argument."""

import json
import re
import subprocess
import sys

import pytest

#: a call, and what the error says; None: it works, since what is meant is clear
CALLS = {
    "wtal.PAPER(tcam, scores).instances.segments.tolist() == [[1.0, 3.0]] or 1 / 0": None,
    "wtal.PAPER(tcam, scores, n_classes=2)": None,
    "wtal.PAPER(None, scores)": "tcam must be an array of numbers, got None",
    "wtal.PAPER(tcam, list)": "video_scores must be an array of numbers",
    "wtal.PAPER(tcam, 'ab')": "video_scores must be an array of numbers, got 'ab'",
    "wtal.PAPER(tcam, scores, classes=5)": "classes must be a list of class numbers, got 5",
    "wtal.PAPER(tcam, scores, classes=[0.5])": "classes must be a list of class numbers",
    "wtal.PAPER(tcam, scores, n_classes='2')": "n_classes must be a whole number",
    "wtal.Cut(thresholds=[0.1, 0.2]) == wtal.Cut(thresholds=(0.1, 0.2)) or 1 / 0": None,
    "hash(wtal.Cut(thresholds=np.array([0.1, 0.2])))": None,
    "wtal.Cut(thresholds=5)": "thresholds must be a list, got 5",
    "wtal.Cut(flanks=0.25)": r"flanks must be .*in Python a Flanks.*, got 0\.25",
    "wtal.Cut(dilation=1.0)": "dilation must be a list",
    "wtal.Flanks('a quarter')": "scale must be a number",
    "wtal.Fusion(template='gausian')": "template must be .*did you mean gaussian",
    "wtal.Fusion(temperature=None)": "temperature must be a number",
    "wtal.Proposer(wtal.Fusion())": "cut must be .*in Python a Cut",
    "wtal.Proposer(wtal.Cut(), 0.5)": "combine must be .*in Python one of Fusion, Nms, SoftNms",
    "wtal.find_candidates(tcam, 0.5)": "thresholds must be a list of numbers",
    "wtal.find_candidates(tcam, [0.5], flanks=0.25)": "flanks must be",
    "wtal.fuse(found)": "candidates must be of type Candidates, got Instances",
    "wtal.nms([[0, 1]])": "instances must be of type Instances, got list",
    "wtal.nms(found, overlap='own')": "overlap must be iou or own_length",
    "wtal.soft_nms(None)": "instances must be of type Instances, got None",
    "wtal.make_targets(snippets, n_snippets=5, n_classes=1)": r"n_snippets is 5, but 1 of 1 .*\[30\.0, 40\.0\]",
    "wtal.make_targets(snippets, n_snippets=40.5, n_classes=1)": "n_snippets must be a whole number",
    "wtal.make_targets(snippets, n_snippets=np.int32(40), n_classes=1)": None,
    "wtal.make_targets([[30, 40]], n_snippets=40, n_classes=1)": "instances must be of type Instances",
    "wtal.delta_targets([[0.5]], [[0.25]])": None,
    "wtal.delta_targets(None, None)": "targets must be an array",
    "wtal.write_predictions('p.json', found, ['Run'])": r'predictions must be .*got Instances; write \{"name',
    "wtal.write_predictions('p.json', [found], ['Run'])": "predictions must be .*got list",
    "wtal.write_predictions('p.json', {'v': [[0, 1]]}, ['Run'])": r"predictions\['v'\] must be of type Instances",
    "wtal.write_predictions(None, {'v': found}, ['Run'])": "path must be a path, got None",
    "wtal.score(truth, {'v': found})": "annotations must be of type Annotations, got dict.*predictions come first",
    "wtal.score({'v': found}, truth, ambiguous='a.txt')": "ambiguous must be of type Mapping, got str.*read_ambiguous",
    "wtal.score('pred.json', truth)": "predictions must be of type Mapping, got str",
    "wtal.Instances('abc')": "segments must be an array of numbers, got 'abc'",
    "wtal.Instances([[0, 1], [2]])": "segments must be an array of numbers",
    "wtal.TimeBase(fps='25fps')": "fps must be a number",
    "wtal.TimeBase().instances_to_seconds([[0, 1]])": "instances must be of type Instances",
    "wtal.Execution(device='gpu')": "device must be auto or cpu or cuda",
    "wtal.Execution(threads='all')": "threads must be a whole number",
    "wtal.read_recipe('demmo')": r"did you mean demo\?",
    "wtal.read_recipe(None)": "recipe must be a path",
    "wtal.train('demo', None)": "data must be a path, got None",
    "wtal.train('demo', 'store', seed='first')": "seed must be a whole number",
    "wtal.train('demo', store, teacher=5)": "teacher must be a path, got 5",
    "wtal.train('demo', store, 'taken')": r"taken holds a run already: `resume=True` goes on with it, `run=DIR` starts",
}
SETUP = """
import json, sys
from pathlib import Path
import numpy as np
import wtal
from wtal.data.synthetic import synthetic_source
from wtal.data.synthetic_annotations import random_annotations
from wtal.data.convert import convert

tcam, scores = [[0.0, 0.1], [0.9, 0.1], [0.9, 0.1], [0.0, 0.1]], [0.9, 0.0]
found = wtal.Instances([[0.0, 1.0]])
snippets = wtal.Instances([[30.0, 40.0]], unit="snippets")
truth = wtal.Annotations(("Run",), {})
store, rng = "store", np.random.default_rng(0)
made = random_annotations(rng, n_train=2, n_test=1, n_classes=2)
convert(synthetic_source(made, rng, n_dims=4), Path(store))
Path("taken").mkdir()
Path("taken/config.yaml").write_text("model: rskp")
answers = {}
for call in json.load(sys.stdin):
    try:
        eval(call)
        answers[call] = None
    except wtal.InputError as error:
        answers[call] = str(error)
    except Exception as error:
        answers[call] = f"RAW {type(error).__name__}: {error}"
json.dump(answers, sys.stdout)
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """What each call ends with, in a process where nothing but wtal itself looks at the types."""
    ended = subprocess.run(
        [sys.executable, "-c", SETUP],
        input=json.dumps(list(CALLS)),
        cwd=tmp_path_factory.mktemp("python"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    said: dict[str, str | None] = json.loads(ended.stdout)
    return said


@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_call_is_refused_by_the_name_of_its_argument(call: str, answers: dict[str, str | None]) -> None:
    wanted, said = CALLS[call], answers[call]
    if wanted is None:
        assert said is None
    else:
        assert said is not None
        assert re.search(wanted, said), said
        assert not said.startswith("RAW"), said
        assert not re.search(r"(^|\s)--[a-z]", said)  # options are the command line's
