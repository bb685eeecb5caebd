"""Write the pinned dependencies of the README's install lines with the hashes that the package index gives.

    python requirements/make.py        in an environment with all extras, after constraints.txt has changed

Which packages are needed is read from what is installed, the versions are those of constraints.txt, and the hashes are
what `pip install --dry-run --report` tells for each system and Python below. torch is left out: its builds for one
kind of processor or GPU are on indexes of their own, of which the public one gives no hashes; it is installed first.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from itertools import product
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
EXTRAS = {"train": ("train", "report"), "frames": ("frames", "report")}
SYSTEMS = {
    "Linux": ["manylinux2014_x86_64", "manylinux_2_27_x86_64", "manylinux_2_28_x86_64"],
    "Linux on ARM": ["manylinux2014_aarch64", "manylinux_2_27_aarch64", "manylinux_2_28_aarch64"],
    "macOS": ["macosx_11_0_arm64", "macosx_12_0_arm64", "macosx_14_0_arm64"],
    "Windows": ["win_amd64"],
}
PYTHONS = ("3.11", "3.12", "3.13")
ELSEWHERE = "torch"


def needed(extras: tuple[str, ...]) -> set[str]:
    """The names of all packages that wtal with these extras needs, directly or not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    found: set[str] = set()
    waiting = [Requirement(line) for line in [*project["dependencies"], *(one for e in extras for one in optional[e])]]
    while waiting:
        one = waiting.pop()
        if one.name == "wtal":
            waiting += [Requirement(line) for extra in one.extras for line in optional[extra]]
            continue
        if one.marker is not None and not any(one.marker.evaluate({"extra": extra}) for extra in ("", *one.extras)):
            continue
        name = canonicalize_name(one.name)
        if name not in found:
            found.add(name)
            try:
                waiting += [Requirement(line) for line in requires(name) or ()]
            except PackageNotFoundError:
                sys.exit(f"{name} is not installed here: pip install -e '.[dev]' -c constraints.txt first")
    return found


def versions() -> dict[str, str]:
    """The pinned versions by name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if "==" in line]
    return {canonicalize_name(name): version for name, version in pairs}


def hashes(pins: dict[str, str]) -> dict[str, set[str]]:
    """The sha256 of every file that pip would take for one of the systems, by name."""
    found: dict[str, set[str]] = {name: set() for name in pins}
    everywhere: set[str] = set()  # packages of one file for all systems
    for platforms, python in product(SYSTEMS.values(), PYTHONS):
        wanted = [f"{name}=={version}" for name, version in pins.items() if name not in everywhere]
        for one in dry_run(wanted, platforms, python):
            name, file = canonicalize_name(one["metadata"]["name"]), one["download_info"]
            found[name].add(file["archive_info"]["hashes"]["sha256"])
            if file["url"].endswith("-none-any.whl"):
                everywhere.add(name)
    return found


def dry_run(wanted: list[str], platforms: list[str], python: str) -> list[dict[str, Any]]:
    """What pip says it would install from the public index, whatever mirrors and folders this machine has besides."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--ignore-installed", "--quiet"]
        command += ["--report", f"{folder}/report.json", "--target", folder, "--only-binary", ":all:"]
        command += ["--python-version", python, *(f"--platform={one}" for one in platforms), *wanted]
        environment = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
        subprocess.run(command, check=True, env=environment)
        report: dict[str, Any] = json.loads(Path(folder, "report.json").read_text(encoding="utf-8"))
        return list(report["install"])


def main() -> None:
    """Write requirements/NAME.txt for each install line."""
    pinned, wanted = versions(), {name: needed(extras) for name, extras in EXTRAS.items()}
    every = sorted(set().union(*wanted.values()) - {ELSEWHERE})
    if unknown := [name for name in every if name not in pinned]:
        sys.exit(f"constraints.txt does not pin {', '.join(unknown)}")
    known = hashes({name: pinned[name] for name in every})
    for file, names in wanted.items():
        lines = [
            f"# What pip install 'wtal[{','.join(EXTRAS[file])}]' needs beside {ELSEWHERE}=={pinned[ELSEWHERE]}:",
            f"#   pip install --require-hashes --no-deps -r requirements/{file}.txt",
            "# Made by requirements/make.py.",
        ]
        for name in sorted(names - {ELSEWHERE}):
            lines += [f"{name}=={pinned[name]}", *(f"    --hash=sha256:{digest}" for digest in sorted(known[name]))]
        text = re.sub(r"\n(?=    --hash)", " \\\\\n", "\n".join(lines)) + "\n"
        (ROOT / "requirements" / f"{file}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
