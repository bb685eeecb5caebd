"""The server's answers: the page, the list, a video's payload, the video itself, and corrections."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from wtal.corrections import Correction, Corrections, StaleError, segments_of
from wtal.errors import InputError, MissingExtraError, did_you_mean
from wtal.extract import find_videos
from wtal.pseudo.templates import Template
from wtal.serve.catalogue import Catalogue
from wtal.serve.guard import Guard, TooLargeError, refusal
from wtal.serve.served import Recent, Served
from wtal.video.playable import browser_type, playable
from wtal.view.page import shell

Query = Mapping[str, str]
#: levels that one may ask for at once: more would only cost time
MOST_LEVELS = 200


class Media:
    """The video files of a folder by name, and nothing else: each has to lie inside when it is asked for, too.

    Args:
        folder: Where the files are; None: there are none.
        cache: Where copies that browsers play are kept.
    """

    def __init__(self, folder: Path | None, cache: Path | None = None) -> None:
        self._folder = None if folder is None else folder.resolve()
        self._files = {} if folder is None else find_videos([folder])
        self._cache = cache

    def path(self, name: str) -> Path | None:
        """The file of a video; None if there is none, or if it is a link to a place outside the folder."""
        path = self._files.get(name)
        if path is None or self._folder is None or not path.is_file():
            return None
        return path if path.resolve().is_relative_to(self._folder) else None

    def address(self, name: str) -> tuple[str | None, str | None]:
        """Where the page finds the video, and its type."""
        path = self.path(name)
        if path is None:
            return None, None
        return f"/media?name={quote(name, safe='')}", _type(path)

    def playable(self, path: Path) -> tuple[Path, str]:
        """The file as a browser plays it, and its type."""
        return playable(path, self._cache)


def _type(path: Path) -> str:
    try:
        return browser_type(path) or "video/mp4"
    except (InputError, MissingExtraError):
        return "video/mp4"


def application(
    runs: Sequence[Served],
    *,
    media: Media | None = None,
    corrections: Corrections | None = None,
    host: str = "127.0.0.1",
    token: str | None = None,
) -> Guard:
    """The whole server as an ASGI application.

    Args:
        runs: What is served; their names differ.
        media: The videos themselves.
        corrections: Where corrections are read from and saved to; None: nothing is ever written.
        host: The address that it will listen at.
        token: What viewers have to know.
    """
    api = _Api(runs, media or Media(None), corrections)
    title = ", ".join(one.name for one in runs)
    page = shell(title=title, editable=corrections is not None)

    async def index(_: Request) -> Response:
        return HTMLResponse(page)

    routes = [
        Route("/", index),
        Mount("/static", StaticFiles(packages=[("wtal.view", "static")])),
        Route("/api/videos", api.videos),
        Route("/api/video", api.video),
        Route("/api/corrections", api.corrections, methods=["GET"]),
        Route("/api/corrections", api.save, methods=["PUT"]),
        Route("/media", api.media),
    ]
    refusals = {
        StaleError: partial(_refused, 409),
        TooLargeError: partial(_refused, 413),
        InputError: partial(_refused, 400),
        MissingExtraError: partial(_refused, 501),
        HTTPException: _failed,
    }
    return Guard(Starlette(routes=routes, exception_handlers=refusals), host=host, token=token)  # type: ignore[arg-type]


class _Api:
    def __init__(self, runs: Sequence[Served], media: Media, corrections: Corrections | None) -> None:
        self._runs = {one.name: one for one in runs}
        self._list = Catalogue(runs)
        self._media = media
        self._corrections = corrections
        self._payloads: Recent[bytes] = Recent(256)

    async def videos(self, request: Request) -> Response:
        asked = request.query_params
        corrected = {} if self._corrections is None else self._corrections.videos()
        page = self._list.page(
            asked.get("q", ""),
            asked.get("sort", "doubt"),
            _whole(asked, "offset", 0),
            _whole(asked, "limit", 50),
            corrected,
        )
        return Response(page, media_type="application/json")

    async def video(self, request: Request) -> Response:
        asked = request.query_params
        settings = settings_from(asked)
        one, name = self._known(asked.get("run"), asked.get("name"))

        def make() -> bytes:
            content = one.payload(name, settings, *self._media.address(name))
            return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()

        key = (one.name, name, tuple(sorted(settings.items())))
        return Response(await run_in_threadpool(self._payloads, key, make), media_type="application/json")

    async def media(self, request: Request) -> Response:
        path = self._media.path(request.query_params.get("name", ""))
        if path is None:
            return refusal(404, "there is no such video file")
        file, kind = await run_in_threadpool(self._media.playable, path)
        return FileResponse(file, media_type=kind)

    async def corrections(self, request: Request) -> Response:
        _, name = self._known(None, request.query_params.get("name"))
        saved = None if self._corrections is None else self._corrections.videos().get(name)
        if saved is None:
            return JSONResponse({"revision": 0, "segments": None, "done": False})
        segments = [asdict(one) for one in saved.segments]
        return JSONResponse({"revision": saved.revision, "segments": segments, "done": saved.done})

    async def save(self, request: Request) -> Response:
        if self._corrections is None:
            return refusal(403, "this server only shows; start it with --edit to correct")
        one, name = self._known(None, request.query_params.get("name"))
        content = _object(await request.body())
        revision, done = content.get("revision"), content.get("done", False)
        if type(revision) is not int or revision < 0 or type(done) is not bool:
            raise InputError("wanted revision, a whole number, and done, true or false")
        duration_s = one.store.duration_s(name)
        segments = segments_of(content.get("segments"), one.store.classes, duration_s)
        made = Correction(revision, segments, done, one.store.records[name].split, duration_s)
        return JSONResponse({"revision": await run_in_threadpool(self._corrections.save, name, made)})

    def _known(self, run: str | None, name: str | None) -> tuple[Served, str]:
        """The run, or the first that has the video, and the video."""
        if run is not None and run not in self._runs:
            raise HTTPException(404, f"there is no run {run!r}{did_you_mean(run, self._runs)}")
        chosen = self._runs.values() if run is None else [self._runs[run]]
        one = next((one for one in chosen if name in one.found), None)
        if one is None or name is None:
            raise HTTPException(404, f"there is no video {name!r}")
        return one, name


def settings_from(asked: Query) -> dict[str, Any]:
    """The settings that a request names, checked; the same names as in recipes."""
    settings: dict[str, Any] = {}
    if "levels" in asked:
        levels = tuple(_number("levels", text) for text in asked["levels"].split(","))
        if len(levels) > MOST_LEVELS:
            raise InputError(f"no more than {MOST_LEVELS} levels, got {len(levels)}")
        settings["levels"] = levels
    for name, least, most in (("temperature", 1e-6, 1e6), ("threshold", 0.0, 1.0), ("evidence", 0.0, 100.0)):
        if name in asked:
            value = settings[name] = _number(name, asked[name])
            if not least <= value <= most:
                raise InputError(f"{name} lies between {least:g} and {most:g}, got {value:g}")
    for name, known in (("template", get_args(Template)), ("combine", ("fusion", "nms"))):
        if name in asked:
            if asked[name] not in known:
                raise InputError(f"{name} is one of {', '.join(known)}, got {asked[name][:40]!r}")
            settings[name] = asked[name]
    return settings


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{name}: {text[:40]!r} is not a number") from None
    if not math.isfinite(value):
        raise InputError(f"{name}: {text[:40]!r} is not a number")
    return value


def _whole(asked: Query, name: str, default: int) -> int:
    text = asked.get(name, str(default))
    if not text.isdecimal() or len(text) > 9:
        raise InputError(f"{name} must be a whole number, got {text[:40]!r}")
    return int(text)


def _object(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise InputError("the body is not JSON") from None
    if not isinstance(content, dict):
        raise InputError("the body must be an object")
    return content


async def _refused(status: int, _: Request, error: Exception) -> Response:
    return refusal(status, str(error))


async def _failed(_: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    return refusal(status, str(getattr(error, "detail", error)))
