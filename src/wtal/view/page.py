"""The page with the video: one HTML file that needs nothing else, or the shell of the same page for a server."""

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from wtal.files import written_whole

#: the front end, as it lies in the package: plain modules, so that nothing has to be built
STATIC = files("wtal.view") / "static"
LIBRARY = ("vendor/uPlot.iife.min.js", "vendor/uPlot.min.css")
#: each module after those that it imports
MODULES = (
    *("dom.js", "axis.js", "player.js", "pointer.js", "lanes.js", "curves.js"),
    *("server.js", "list.js", "controls.js", "edit.js", "help.js", "app.js"),
)
_IMPORT = re.compile(r'^import .* from "\./\w+\.js";\n', flags=re.MULTILINE)
_ICON = "data:image/svg+xml," + quote(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#0072b2"/>'
    '<path d="M2 5h5M6 8h8M3 11h6" stroke="#fff" stroke-width="2"/></svg>'
)


def write_page(path: Path | str, payloads: Sequence[Mapping[str, Any]], *, title: str | None = None) -> None:
    """Write one self-contained HTML file about these videos.

    Args:
        path: The file to write.
        payloads: What `wtal.view.payload.payload` gives, one for each video.
        title: What stands above it all; by default the video's name, or how many there are.
    """
    shown = title or (payloads[0]["name"] if len(payloads) == 1 else f"{len(payloads)} videos")
    text = whole_page({"mode": "file", "editable": False, "title": shown, "payloads": list(payloads)})
    with written_whole(Path(path)) as file:
        file.write(text)


def whole_page(data: Mapping[str, Any]) -> str:
    """The page with everything in it. Its policy runs our scripts by their hashes alone, and loads from no network."""
    library, modules = _text(LIBRARY[0]), "".join(_inlined(_text(name)) for name in MODULES)
    style = _text(LIBRARY[1]) + _text("app.css")
    policy = (
        f"default-src 'none'; script-src {_hash(library)} {_hash(modules)}; style-src {_hash(style)}; "
        "img-src data:; media-src 'self' file: data:; base-uri 'none'; form-action 'none'"
    )
    return _html(
        data,
        policy,
        head=f"<style>{style}</style>",
        scripts=f'<script>{library}</script>\n<script type="module">{modules}</script>',
    )


def shell(*, title: str, editable: bool) -> str:
    """The same page for a server, which has the files of `STATIC` under /static and answers what the page asks."""
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'"
    )
    return _html(
        {"mode": "live", "editable": editable, "title": title, "payloads": []},
        policy,
        head=f'<link rel="stylesheet" href="/static/{LIBRARY[1]}">\n<link rel="stylesheet" href="/static/app.css">',
        scripts=f'<script src="/static/{LIBRARY[0]}"></script>\n<script type="module" src="/static/app.js"></script>',
    )


def _html(data: Mapping[str, Any], policy: str, *, head: str, scripts: str) -> str:
    # inside a script nothing but its end tag is markup: without < there is none
    content = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(str(data["title"]))}</title>
<link rel="icon" href="{_ICON}">
{head}
</head>
<body>
<noscript>This page needs JavaScript.</noscript>
<script type="application/json" id="data">{content}</script>
{scripts}
</body>
</html>
"""


def link_to(video: Path, page: Path) -> str:
    """The address of a video file in a page: relative, so that both can move together."""
    try:
        return quote(os.path.relpath(video.resolve(), page.resolve().parent).replace(os.sep, "/"))
    except ValueError:  # another drive
        return video.resolve().as_uri()


def embedded(video: Path, kind: str) -> str:
    """The file itself as an address."""
    return f"data:{kind};base64,{base64.b64encode(video.read_bytes()).decode('ascii')}"


def _text(name: str) -> str:
    return STATIC.joinpath(name).read_text(encoding="utf-8")


def _inlined(module: str) -> str:
    """A module's text as a part of one: what it imports stands above it already."""
    return re.sub(r"^export ", "", _IMPORT.sub("", module), flags=re.MULTILINE)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
