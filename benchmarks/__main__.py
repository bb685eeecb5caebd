"""`python -m benchmarks [NAME …]`: run all benchmarks, or the named ones, and print their tables."""

import sys
from importlib import import_module
from pathlib import Path

from rich.console import Console

from wtal.machine import prepare_torch

# these take hours or arguments of their own: python -m benchmarks.activitynet
APART = ("activitynet", "corrections", "real")
NAMES = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py") if path.stem not in APART)


def main() -> None:
    unknown = [name for name in sys.argv[1:] if name not in NAMES]
    if unknown:
        sys.exit(f"no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    prepare_torch()  # as the command line does
    console = Console(width=110)
    for name in sys.argv[1:] or NAMES:
        console.rule(name)
        import_module(f"benchmarks.{name}").run(console)


main()
