"""One writer at a time: the second is told who the first is, and the dead hold nothing."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from small import RECIPE, make_store
from wtal.cli import main
from wtal.errors import DataWarning, InputError
from wtal.locks import held
from wtal.training import Execution, train

HOLD = """
import sys
from pathlib import Path
from wtal.locks import held
with held(Path(sys.argv[1]), beside=sys.argv[2] == "beside"):
    print("held", flush=True)
    sys.stdin.read()
"""
#: a child of a fork goes on after its parent has been killed; it says so, since it lets go as the first thing it does
HOLD_AND_FORK = HOLD.replace(
    '    print("held", flush=True)\n',
    '    import os, time\n    if not os.fork():\n        print("held", flush=True)\n        time.sleep(600)\n',
)

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def holder() -> Iterator[Start]:
    """A process that holds a folder until its input ends."""
    started = []

    def start(folder: Path, where: str = "in", code: str = HOLD) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(folder), where],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_the_second_is_told_who_holds_it_and_since_when(tmp_path: Path, holder: Start) -> None:
    first = holder(tmp_path / "run")
    who = rf"run is being written to by process {first.pid} on \S+, since 2\d{{3}}-\S+ \S+ UTC: -c {tmp_path}"
    with pytest.raises(InputError, match=who), held(tmp_path / "run"):
        pass
    with held(tmp_path / "other"):
        pass


@pytest.mark.parametrize("code", [HOLD, HOLD_AND_FORK])
def test_the_lock_of_a_killed_process_does_not_hold_nor_does_its_child(
    tmp_path: Path, holder: Start, code: str
) -> None:
    first = holder(tmp_path / "run", code=code)
    first.kill()
    first.wait()
    assert (tmp_path / "run" / ".lock").exists()
    with held(tmp_path / "run"):
        assert json.loads((tmp_path / "run" / ".lock").read_text())["process"] == os.getpid()
    assert not (tmp_path / "run" / ".lock").exists()


def test_nothing_is_left_behind_and_one_thread_may_hold_what_it_holds(tmp_path: Path) -> None:
    def elsewhere() -> None:
        try:
            with held(tmp_path / "run"):
                seen.append("held")
        except InputError as error:
            seen.append(str(error))

    seen: list[str] = []
    with held(tmp_path / "run"), held(tmp_path / "run"):
        other = threading.Thread(target=elsewhere)
        other.start()
        other.join()
    assert re.search(f"process {os.getpid()} ", seen[0])
    assert not (tmp_path / "run").exists()


def test_what_a_process_of_another_machine_left_is_named_and_taken_over(tmp_path: Path) -> None:
    left = {"process": 7, "machine": "elsewhere", "since": "2026-01-01 00:00:00 UTC", "command": "wtal train demo"}
    (tmp_path / ".lock").write_text(json.dumps(left))
    with pytest.warns(DataWarning, match="process 7 on elsewhere, since 2026.* taken to have died"), held(tmp_path):
        pass


def test_damaged_lock_files_and_folders_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".lock").write_text('{"process": ')
    with held(tmp_path):
        pass

    def unable(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("wtal.locks.fcntl.flock", unable)
    with pytest.warns(DataWarning, match="cannot lock: see to it yourself"), held(tmp_path):
        pass


def test_training_writing_a_store_and_a_sweep_refuse_a_second(
    tmp_path: Path, holder: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    store = make_store(tmp_path / "store", n_train=4)
    (tmp_path / "tiny.yaml").write_text(RECIPE)
    held_by = "is being written to by process"
    holder(tmp_path / "run")
    with pytest.raises(InputError, match=held_by):
        train(tmp_path / "tiny.yaml", store, tmp_path / "run", execution=Execution(threads=1))
    holder(tmp_path / "again", "beside")
    with pytest.raises(InputError, match=held_by):
        make_store(tmp_path / "again")
    holder(tmp_path / "sweep")
    data = ["--data", str(store.path), "--out", str(tmp_path / "sweep"), "--recipe", str(tmp_path / "tiny.yaml")]
    with pytest.raises(SystemExit):
        main(["paper", "components", *data, "--seeds", "0"])
    assert held_by in capsys.readouterr().err
    main(["paper", "components", *data, "--seeds", "0", "--dry-run"])
    assert not list((tmp_path / "sweep").glob("runs/*"))
