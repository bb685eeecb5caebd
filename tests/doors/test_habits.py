"""The habits of a command line: versions, help, completion, numbers in pipes, Ctrl-C."""

import io
import os
import re
import shlex
import subprocess
import sys
from contextlib import suppress

import pytest

from wtal.annotations import Annotations, Video
from wtal.bars import Lines, showing
from wtal.cli import COMMANDS, main
from wtal.cli.data import SUBCOMMANDS
from wtal.cli.parse import EXAMPLES
from wtal.cli.table import table_text
from wtal.formats import write_annotations, write_predictions
from wtal.instances import Instances


def wtal(*arguments, **options):
    command = [sys.executable, "-m", "wtal", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.fixture
def files(tmp_path):
    truth = Instances([[3.0, 8.0], [20.0, 60.0], [70.0, 80.0]], class_ids=[0, 0, 0])
    write_annotations(tmp_path / "gt.json", Annotations(("Jump",), {"a": Video("validation", 90.0, truth)}))
    found = Instances([[3.0, 8.0], [20.0, 58.0]], scores=[0.9, 0.8], class_ids=[0, 0])
    write_predictions(tmp_path / "pred.json", {"a": found}, ("Jump",))
    write_predictions(tmp_path / "none.json", {"a": Instances.empty()}, ("Jump",))
    write_predictions(tmp_path / "ending.json", {"a.mp4": found}, ("Jump",))
    write_predictions(tmp_path / "other.json", {"b": found}, ("Jump",))
    return tmp_path


def test_numbers_are_whole_in_a_pipe(files):
    narrow = {**os.environ, "COLUMNS": "40"}
    result = wtal("evaluate", files / "pred.json", files / "gt.json", "--protocol", "activitynet13", env=narrow)
    assert "…" not in result.stdout
    line = next(line for line in result.stdout.splitlines() if line.startswith("mAP"))
    assert re.fullmatch(r"mAP(  +\d+\.\d\d){10}", line)


def test_a_narrow_terminal_gets_further_tables_with_every_number():
    numbers = [f"{value:.2f}" for value in range(10)]
    texts = table_text(["tIoU", *map(str, range(10))], [["mAP", *numbers]], width=30)
    assert len(texts) > 1
    assert max(len(line) for text in texts for line in text.splitlines()) <= 30
    assert re.findall(r"\d\.\d\d", "\n".join(texts)) == numbers
    assert all(text.startswith("tIoU") for text in texts)


@pytest.mark.parametrize(
    ("predictions", "said"),
    [
        ("none.json", "none.json holds no predictions: every score is 0"),
        ("other.json", "(such as b) is in"),
        ("ending.json", ""),
    ],
)
def test_a_score_of_zero_has_a_reason(files, capsys, predictions, said):
    main(["evaluate", str(files / predictions), str(files / "gt.json"), "--protocol", "activitynet13"])
    out, err = capsys.readouterr()
    assert said in err
    assert ("average 0.5:0.95: 0.00" in out) is bool(said)
    assert bool(err) is bool(said)


def test_module_version_and_help():
    assert wtal("-V").stdout == wtal("--version").stdout
    assert wtal("-V").stdout.startswith("wtal ")
    assert wtal("help").stdout == wtal("--help").stdout
    assert wtal("help", "data", "convert").stdout.startswith("usage: wtal data convert")


@pytest.mark.parametrize(
    "command",
    [name for name in COMMANDS if name not in ("help", "completion")] + [f"data {name}" for name in SUBCOMMANDS],
)
def test_help_shows_an_example_and_no_python(command, capsys):
    with suppress(SystemExit):
        main(["help", *command.split()])
    shown = capsys.readouterr().out
    assert f"Example:  wtal {command}" in shown
    for python in ("{None", "None}", "default: None", "(default: )", "docs/"):
        assert python not in shown


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in ("wtal demo", "wtal train")])
def test_the_example_of_each_command_is_understood(name, tmp_path, monkeypatch, capsys):
    """In an empty folder it finds no file and says so."""
    monkeypatch.chdir(tmp_path)
    with suppress(SystemExit):
        main(shlex.split(EXAMPLES[name])[1:])
    said = "".join(capsys.readouterr())
    assert not re.search(r"unrecognized|invalid choice|unknown command|required option|parsing error", said.lower()), (
        said
    )


def test_a_mistyped_command_under_data_is_corrected(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["data", "convrt"])
    assert ended.value.code == 2
    assert "unknown command wtal data convrt (did you mean convert?)" in capsys.readouterr().err


def test_completion_knows_commands_options_and_recipes(capsys):
    main(["completion", "bash"])
    script = capsys.readouterr().out
    assert all(command in script for command in COMMANDS)
    train = next(line for line in script.splitlines() if line.strip().startswith("train)"))
    assert "--resume" in train
    assert "my-videos" in train
    checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_ctrl_c_while_torch_loads_is_one_line_and_130(tmp_path):
    (tmp_path / "torch").mkdir()
    # Ctrl-C in the middle of torch's start, and what torch makes of it
    (tmp_path / "torch" / "__init__.py").write_text(
        "try:\n    raise KeyboardInterrupt\n"
        "except KeyboardInterrupt as error:\n    raise SystemError('half loaded') from error\n"
    )
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [sys.executable, "-m", "wtal", "extract", "videos", "-o", "store", "--threads", "1"],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stderr) == (130, "interrupted\n")


def test_the_handler_of_ctrl_c_in_training_loads_no_torch():
    code = (
        "import sys\n"
        "from rich.console import Console\n"
        "from wtal.cli.train import interruptible\n"
        "try:\n"
        "    with interruptible(Console(), 'again'): raise KeyboardInterrupt\n"
        "except KeyboardInterrupt: print('torch' in sys.modules)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.stdout == "False\n"


def test_waiting_threads_sleep_unless_the_user_says_otherwise():
    code = "import os; from wtal.cli import main; main(['-V']); print(os.environ['OMP_WAIT_POLICY'])"
    bare = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    for given, wanted in (({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")):
        result = subprocess.run(
            [sys.executable, "-c", code], env={**bare, **given}, capture_output=True, text=True, check=False
        )
        assert result.stdout.splitlines()[-1] == wanted


def test_without_a_terminal_there_is_a_line_now_and_then(capsys):
    now = [0.0]
    show = Lines("epochs", main="training", clock=lambda: now[0])
    for second in range(300):
        now[0] = float(second)
        show("training", 10 + second / 30, 20, {"epoch": 10, "step": 3, "steps": 8, "cls": 0.123})
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "epochs: 10.3 of 20 (52 %), about 5 min left; training 3 of 8; cls 0.123"
    assert len(lines) == 6  # at 10, 30, 70, 130, 190, 250 s, and not at every step


def test_other_steps_leave_the_main_one_where_it_was(capsys):
    now = [0.0]
    show = Lines("epochs", main="training", clock=lambda: now[0])

    def said(second, *at):
        now[0] = float(second)
        show(*at)
        return capsys.readouterr().err

    assert said(10, "boxes", 2, 9, {"epoch": 0}) == "epochs: boxes 2 of 9\n"
    assert said(11, "training", 4.0, 8, {"epoch": 4, "step": 0, "steps": 2}) == ""
    assert said(40, "targets", 7, 9, {"epoch": 4}) == "epochs: 4.0 of 8 (50 %); targets 7 of 9\n"


def test_the_time_left_is_that_of_the_pass_that_is_going_on(capsys):
    now = [0.0]
    show = Lines("forward pass", clock=lambda: now[0])
    for second, completed in ((0, 0), (1000, 4), (2000, 0), (2100, 2)):
        now[0] = float(second)
        show("forward pass", completed, 4, {})
    assert capsys.readouterr().err.splitlines()[-1] == "forward pass: 2.0 of 4 (50 %), about 100 s left"


def test_in_a_terminal_there_are_two_bars_and_a_note(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with showing("epochs", main="training") as progress:
        progress("training", 2.5, 8, {"epoch": 2, "step": 3, "steps": 6, "cls": 0.1234})
        progress("targets", 7, 9, {"epoch": 3})
        progress("training", 3.5, 8, {"epoch": 3, "step": 3, "steps": 6, "cls": 0.0567})
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue()).splitlines()
    assert any(re.match(r"epochs .* 44% +4 of 8", line) for line in last), last
    assert any(re.match(r"training .* 50% +3 of 6", line) for line in last), last
    assert any(line.startswith("cls 0.057") for line in last), last
