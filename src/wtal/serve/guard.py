"""What stands before every request: whose it is, by which name it came, how large it is; and what every answer forbids.

A server on one's own machine is within reach of every page that is open in the browser. So another site's page must
not reach it under a name of its own (DNS rebinding), nor write to it, nor frame it.
"""

import hashlib
import hmac
import ipaddress
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wtal.errors import InputError

#: the largest body that is read; an hour of dense corrections is a tenth of it
LIMIT_BYTES = 1_000_000
COOKIE = "wtal-token"
#: everything comes from this server, nothing is run that is not a file of it, nobody frames it
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}


def is_loopback(host: str) -> bool:
    """Whether an address or name means this machine alone.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """The application behind all checks.

    Args:
        app: What answers.
        host: The address that the server listens at; one that others reach asks for a token.
        token: What a viewer has to know, once as ?token=…, from then on as a cookie.
    """

    def __init__(self, app: ASGIApp, *, host: str = "127.0.0.1", token: str | None = None) -> None:
        if token is None and not is_loopback(host):
            raise InputError(f"`host='{host}'` lets other machines in: say `token=SECRET`, which they have to know")
        if token is not None and len(token) < 8:
            raise InputError("`token` must have 8 characters or more, so that nobody guesses it")
        self._app, self._token = app, token
        self._names_matter = is_loopback(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._refused(scope)
        if answer is not None:
            await answer(scope, receive, sealed)
        else:
            await self._app(scope, _limited(receive), sealed)

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._names_matter and not is_loopback(_name(host)):
            return refusal(421, f"this server is known as localhost, not as {_name(host)}")
        if self._token is not None and (answer := self._unknown(scope, headers)) is not None:
            return answer
        if scope["method"] in ("GET", "HEAD"):
            return None
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
        own = {f"{scheme}://{host}" for scheme in ("http", "https")}
        if (origin is not None and origin not in own) or site not in ("same-origin", "none"):
            return refusal(403, "only the page of this server may write to it")
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return refusal(415, "what is sent has to be application/json")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > LIMIT_BYTES:
            return refusal(413, f"no more than {LIMIT_BYTES} bytes are taken")
        return None

    def _unknown(self, scope: Scope, headers: Headers) -> Response | None:
        token = (self._token or "").encode()
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        key = hashlib.blake2b(token, digest_size=16, person=b"wtal-cookie").hexdigest()
        given = dict(query).get("token")
        if given is not None and hmac.compare_digest(given.encode(), token):
            # the secret leaves the address bar, the history and the log
            rest = urlencode([pair for pair in query if pair[0] != "token"])
            answer = RedirectResponse(scope["path"] + (f"?{rest}" if rest else ""), status_code=303)
            answer.set_cookie(COOKIE, key, httponly=True, samesite="lax", path="/")
            return answer
        known = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        if hmac.compare_digest(known.encode(), key.encode()):
            return None
        return refusal(401, "this server asks for its token: open it as …/?token=SECRET")


def refusal(status: int, why: str) -> Response:
    """An answer that says what is wrong."""
    return JSONResponse({"error": why}, status_code=status)


class TooLargeError(InputError):
    """A body that is larger than it says or may be."""


def _limited(receive: Receive) -> Receive:
    read = 0

    async def limited() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > LIMIT_BYTES:
            raise TooLargeError(f"no more than {LIMIT_BYTES} bytes are taken")
        return message

    return limited


def _name(host: str) -> str:
    """The name in a Host header, without the port.

    >>> _name("localhost:8000"), _name("[::1]:80"), _name("::1")
    ('localhost', '::1', '')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, _, port = host.partition(":")
    return name.lower() if port.isdecimal() or not port else ""
