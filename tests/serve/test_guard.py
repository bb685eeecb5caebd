"""Who may ask, by which name, and how much: no other site's page reads from or writes to the server."""

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from wtal.errors import InputError
from wtal.serve.app import application
from wtal.serve.guard import LIMIT_BYTES, Guard


async def echo(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"read {len(await request.body())}")


def client(base="http://localhost:8000", **options):
    inner = Starlette(routes=[Route("/", echo, methods=["GET", "PUT"])])
    return TestClient(Guard(inner, **options), base_url=base, follow_redirects=False)


JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:9000", "[::1]:8000", "LOCALHOST:1"])
def test_the_machines_own_names_are_answered(host):
    assert client().get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "evil.example:8000", "127.0.0.1.nip.io", "", "localhost:80:80"]
)
def test_another_name_is_refused_so_that_dns_rebinding_gets_nothing(host):
    answer = client().get("/", headers={"host": host})
    assert answer.status_code == 421
    assert "read" not in answer.text


def test_every_answer_forbids_what_a_page_of_ours_never_does():
    for answer in (client().get("/"), client().get("/nothing"), client().get("/", headers={"host": "evil.example"})):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_no_other_origin_is_let_in_by_cors():
    asked = {"origin": "http://evil.example", "access-control-request-method": "PUT"}
    answer = client().options("/", headers=asked)
    assert answer.status_code >= 400
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({**JSON}, 200),
        ({**JSON, "origin": "http://localhost:8000"}, 200),
        ({**JSON, "origin": "http://localhost:9999"}, 403),
        ({**JSON, "origin": "http://evil.example"}, 403),
        ({**JSON, "origin": "null"}, 403),
        ({**JSON, "sec-fetch-site": "cross-site"}, 403),
        ({**JSON, "sec-fetch-site": "same-site"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({}, 415),
    ],
)
def test_only_the_servers_own_page_writes_and_only_json(headers, status):
    assert client().put("/", content=b"{}", headers=headers).status_code == status


def test_a_large_body_is_not_read():
    large = b" " * (LIMIT_BYTES + 1)
    assert client().put("/", content=large, headers=JSON).status_code == 413
    assert client().put("/", content=large[:-1], headers=JSON).text == f"read {LIMIT_BYTES}"


def test_a_large_body_that_does_not_say_its_length_is_cut_short():
    def parts():
        for _ in range(20):
            yield b" " * (LIMIT_BYTES // 10)

    with pytest.raises(InputError, match="no more than"):  # which the server's application answers with 413
        client().put("/", content=parts(), headers=JSON)


def test_who_knows_the_token_gets_a_cookie_and_a_clean_address():
    known = client(token="correct horse")
    assert known.get("/").status_code == 401
    assert known.get("/?token=wrong").status_code == 401
    answer = known.get("/?a=1&token=correct%20horse&b=2")
    assert (answer.status_code, answer.headers["location"]) == (303, "/?a=1&b=2")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "correct" not in cookie
    assert known.get("/").status_code == 200  # the client keeps the cookie
    assert client(token="correct horse").get("/", headers={"cookie": "wtal-token=x"}).status_code == 401


def test_with_a_token_pages_of_others_still_do_not_write():
    known = client(token="correct horse")
    known.get("/?token=correct%20horse")
    assert known.put("/", content=b"{}", headers={**JSON, "origin": "http://evil.example"}).status_code == 403


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_an_address_that_others_reach_asks_for_a_token(host):
    with pytest.raises(InputError, match="`token=SECRET`"):
        client(host=host)
    with pytest.raises(InputError, match="8 characters"):
        client(host=host, token="short")
    open_to_all = client(base="http://my-machine:8000", host=host, token="correct horse")
    assert open_to_all.get("/").status_code == 401
    open_to_all.get("/?token=correct%20horse")
    assert open_to_all.get("/").status_code == 200


def test_a_run_called_like_markup_is_text(served):
    from dataclasses import replace

    named = replace(served["tiny"], name="</script><script>alert(1)</script>")
    page = TestClient(application([named]), base_url="http://localhost").get("/").text
    assert "<script>alert" not in page
