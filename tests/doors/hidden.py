"""Run as a program: `wtal` in an environment that lacks packages, which the first argument lists."""

import sys


class Hiding:
    """A finder that does not find what is hidden, so that importing it fails as if it were not installed."""

    def __init__(self, finder, hidden):
        self._finder, self._hidden = finder, hidden

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in self._hidden else self._finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self._finder, name)


if __name__ == "__main__":
    hidden = set(sys.argv.pop(1).split(","))
    sys.meta_path[:] = [Hiding(finder, hidden) for finder in sys.meta_path]
    from wtal.cli import main

    main(sys.argv[1:])
