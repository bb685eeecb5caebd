"""The file itself: whole, closed to the network, and deaf to names that are markup."""

import base64
import hashlib
import json
import re

import pytest

from browser import HOSTILE
from wtal.cli import main
from wtal.view.page import MODULES, STATIC, link_to, shell, whole_page

DATA = {"mode": "file", "editable": False, "title": HOSTILE, "payloads": []}


def test_the_policy_runs_our_scripts_and_nothing_else():
    text = whole_page(DATA)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert "unsafe" not in policy
    assert "http" not in policy
    for kind, pattern in (
        ("script", r"<script(?: type=\"module\")?>(.*?)</script>"),
        ("style", r"<style>(.*?)</style>"),
    ):
        found = re.findall(pattern, text, flags=re.DOTALL)
        assert found
        allowed = re.search(rf"{kind}-src ([^;]+);", policy)[1].split()
        assert allowed == [
            f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in found
        ]


@pytest.mark.parametrize("text", [whole_page(DATA), shell(title=HOSTILE, editable=True)])
def test_a_name_that_is_markup_is_text(text):
    assert "alert(1)</script>" not in text
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, flags=re.DOTALL)[1]
    assert json.loads(data)["title"] == HOSTILE


def test_modules_come_after_what_they_import():
    known = set()
    for name in MODULES:
        text = STATIC.joinpath(name).read_text(encoding="utf-8")
        assert set(re.findall(r'from "\./(\w+\.js)"', text)) <= known, name
        assert "innerHTML" not in text
        known.add(name)
    assert known == {one.name for one in STATIC.iterdir() if one.name.endswith(".js")}


def test_a_link_follows_page_and_video_when_they_move_together(tmp_path):
    video = tmp_path / "my videos" / "a#b?.mp4"
    assert link_to(video, tmp_path / "pages" / "view.html") == "../my%20videos/a%23b%3F.mp4"


def test_the_command_shows_a_store_and_refuses_what_does_nothing(run, store, tmp_path, capsys):
    main(["view", str(run), "-o", str(tmp_path / "all.html")])
    text = (tmp_path / "all.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, flags=re.DOTALL)[1])
    assert [one["name"] for one in data["payloads"]] == list(store.names("test"))
    for arguments, said in (
        (["-o", "page.pdf"], "page.pdf must end with .html"),
        (["nothing.mp4"], "say --features STORE"),
        (["--truth", "gt.json"], "--truth is for video files"),
        (["--embed"], "--embed needs the video files"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["view", str(run), *arguments])
        assert ended.value.code == 2
        assert said in capsys.readouterr().err
