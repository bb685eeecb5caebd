"""The same page with a server behind it: settings that act, edits that stay."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import quiet_page, wait
from wtal.data.store import Store
from wtal.localize import Localizer
from wtal.view.payload import Footage, changed, payload

uvicorn = pytest.importorskip("uvicorn", reason="needs uvicorn: pip install 'wtal[serve]'")
pytest.importorskip("starlette", reason="needs starlette: pip install 'wtal[serve]'")


@pytest.fixture(scope="module")
def corrections_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("corrections") / "corrections.json"


@pytest.fixture(scope="module")
def server(run: Path, videos: Path, corrections_file: Path) -> Iterator[str]:
    from wtal.corrections import Corrections
    from wtal.serve.app import Media, application
    from wtal.serve.served import Served

    app = application([Served.open(run, "tiny")], media=Media(videos), corrections=Corrections(corrections_file))
    made = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    until(lambda: made.started)
    yield f"http://127.0.0.1:{made.servers[0].sockets[0].getsockname()[1]}/"
    made.should_exit = True
    thread.join(10)


def until(holds: Callable[[], Any], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_list_is_searched_and_opens_videos(browser, server, store):
    with quiet_page(browser, server) as page:
        page.wait_for_selector(".videos .entry.chosen")
        assert page.locator(".videos .entry").count() == len(store)
        wanted = store.names("train")[3]
        page.keyboard.press("/")
        page.keyboard.type(wanted)
        wait(page, "document.querySelectorAll('.videos .entry').length === 1")
        page.locator(".videos .entry").click()
        wait(page, f"document.querySelector('h2.name')?.textContent === {json.dumps(wanted)}")
        page.keyboard.press("Escape")
        page.locator("input[type=search]").fill("there is no such video")
        wait(page, "document.querySelector('.list .note').textContent.startsWith('No video has')")


def test_a_temperature_changes_the_bars_to_what_the_library_finds(
    browser, server, localizer: Localizer, store: Store, name
):
    def shown(page: Any) -> list[str]:
        return sorted(
            page.evaluate(
                """() => {
              const page = [...document.querySelectorAll('.bar.found')];
              const seconds = (text) => text.split(':').reduce((sum, part) => 60 * sum + Number(part), 0);
              const all = page.map((bar) => bar.title.match(/, ([\\d:.]+) – ([\\d:.]+) · ([\\d.]+)/).slice(1));
              return all.map(([start, end, score]) => [seconds(start), seconds(end), Number(score)]);
            }"""
            )
        )

    with quiet_page(browser, f"{server}#run=tiny&video={name}") as page:
        page.wait_for_selector(".bar.found")
        page.locator("#least").fill("0")
        page.locator(".chip", has_text="all it considered").click()
        before = shown(page)
        page.locator(".controls summary").click()
        slider = page.locator("input[name=temperature]")
        slider.fill("0.3")
        wait(page, "document.querySelector('.controls .state').textContent === 'changed'")
        after = shown(page)
        temperature = float(f"{10**0.3:.3g}")
        made = payload(
            localizer, Footage.of_store(store, name), proposer=changed(localizer.card.proposer, temperature=temperature)
        )
        wanted = sorted(
            [round(one["start"], 1), round(one["end"], 1), round(one["score"], 2)] for one in made["instances"]
        )
        assert len(after) == len(wanted)
        for got, want in zip(after, wanted, strict=True):
            assert got == pytest.approx(want, abs=0.11)
        assert after != before
        # and NMS instead of fusion
        page.locator("input[name=combine][value=nms]").click()
        wait(page, "!document.querySelector('input[name=temperature]')")
        made = payload(
            localizer, Footage.of_store(store, name), proposer=changed(localizer.card.proposer, combine="nms")
        )
        assert len(shown(page)) == len(made["instances"])
        page.get_by_role("button", name="As the run has it").click()
        wait(page, "document.querySelector('input[name=temperature]')")
        assert shown(page) == before


def saved(page: Any) -> None:
    wait(page, "document.querySelector('.editor .state')?.textContent.startsWith('Saved')")


def test_edits_are_saved_and_there_after_a_reload(browser, server, corrections_file: Path, name):
    def kept() -> list[dict[str, Any]]:
        return json.loads(corrections_file.read_text())["database"][name]["annotations"]

    with quiet_page(browser, f"{server}#run=tiny&video={name}") as page:
        page.wait_for_selector(".bar.found")
        wait(page, "document.querySelector('video')?.readyState > 0")
        page.locator("#least").fill("0")
        n = page.locator(".bar.found").count()
        page.keyboard.press("Shift+A")
        saved(page)
        assert page.locator(".bar.yours").count() == len(kept()) == n
        assert {one["origin"] for one in kept()} == {"accepted"}
        # the edge of one is dragged
        page.keyboard.press("n")
        chosen = page.locator(".bar.yours.chosen")
        edge = chosen.locator(".edge.end").bounding_box()
        page.mouse.move(edge["x"] + 5, edge["y"] + 5)
        page.mouse.down()
        page.mouse.move(edge["x"] + 45, edge["y"] + 5, steps=4)
        page.mouse.up()
        until(lambda: any(one["origin"] == "moved" for one in kept()))
        # another gets another class, one more is added, and undone, and done again
        other = next(
            one
            for one in page.locator(".items select option").all_inner_texts()
            if one != page.locator(".items .chosen .label").inner_text()
        )
        page.keyboard.press("c")
        page.locator(".items .chosen select").select_option(other)
        until(lambda: any(one["origin"] == "relabelled" and one["label"] == other for one in kept()))
        page.keyboard.press("Escape")
        page.keyboard.press("i")
        until(lambda: len(kept()) == n + 1)
        page.keyboard.press("u")
        until(lambda: len(kept()) == n)
        page.keyboard.press("r")
        until(lambda: len(kept()) == n + 1)
        page.keyboard.press("n")
        page.keyboard.press("x")
        until(lambda: len(kept()) == n)
        saved(page)
        page.reload()
        page.wait_for_selector(".bar.yours")
        assert page.locator(".bar.yours").count() == n
        page.keyboard.press("d")
        until(lambda: json.loads(corrections_file.read_text())["database"][name]["done"])


def test_a_conflict_is_said_and_nothing_is_lost_when_the_server_is_away(browser, server, store, corrections_file):
    other = store.names("train")[1]
    address = f"{server}#run=tiny&video={other}"
    first, second = browser.new_page(), browser.new_page()  # what is refused is in the console, too
    for page in (first, second):
        page.goto(address)
        wait(page, f"document.querySelector('h2.name')?.textContent === {json.dumps(other)}")
    first.keyboard.press("i")
    saved(first)
    second.keyboard.press("i")
    wait(second, "document.querySelector('.trouble')?.textContent.includes('Somebody else')")
    second.get_by_role("button", name="Save mine over theirs").click()
    saved(second)
    first.close()
    second.close()
    page = browser.new_page()
    page.goto(address)
    page.wait_for_selector(".bar.yours")
    warned: list[str] = []
    page.on("dialog", lambda dialog: (warned.append(dialog.type), dialog.accept()))
    page.route("**/api/corrections?*", lambda it: it.abort() if it.request.method == "PUT" else it.continue_())
    page.keyboard.press("i")
    wait(page, "document.querySelector('.trouble')?.textContent.includes('Not saved')")
    page.reload()
    assert warned == ["beforeunload"]
    page.wait_for_selector(".bar.yours")
    assert page.locator(".bar.yours").count() == 2
    page.unroute_all()
    saved(page)  # it tries again by itself
    assert len(json.loads(corrections_file.read_text())["database"][other]["annotations"]) == 2
    page.close()
