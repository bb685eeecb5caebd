"""The page as a person meets it: watched, clicked, typed at, on a small screen, in the dark."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from browser import HOSTILE, quiet_page, wait
from videos import write_video
from wtal.data.store import Store
from wtal.localize import Localizer
from wtal.view import write_page
from wtal.view.build import payloads_of_store, with_video
from wtal.view.payload import Footage, payload
from wtal.view.taught import Taught


@pytest.fixture(scope="module")
def payloads(localizer: Localizer, store: Store, name: str, videos: Path, run: Path) -> dict[str, Any]:
    page, files = videos / "view.html", {name: videos / f"{name}.mp4"}
    names = [name, store.names("train")[0]]
    taught = Taught(run, localizer.classes)
    made = payloads_of_store(localizer, store, names, page, run="tiny", files=files, taught=taught)
    for one in made:  # every confidence there may be
        stands = [found for found in one["instances"] if found["stands"]]
        for number, found in enumerate(stands):
            found["confidence"] = round(0.95 - 0.9 * number / len(stands), 3)
        one["least"] = 0.0
    return {one["name"]: one for one in made}


@pytest.fixture(scope="module")
def address(payloads: dict[str, Any], videos: Path) -> str:
    write_page(videos / "view.html", list(payloads.values()))
    return (videos / "view.html").as_uri()


def drawn(page: Any) -> int:
    return page.locator(".bar.found").count()


def ready(page: Any) -> None:
    wait(page, "document.querySelector('video')?.readyState > 0")


def test_a_click_seeks_and_loops_and_the_slider_hides(browser, address, payloads, name):
    stands = [one for one in payloads[name]["instances"] if one["stands"]]
    with quiet_page(browser, address) as page:
        ready(page)
        assert page.locator("h2.name").inner_text() == name
        assert page.locator(".bar.true").count() == len(payloads[name]["truth"])
        assert drawn(page) == page.locator(".items li").count() == len(stands)
        entry = page.locator(".items .entry").last
        entry.click()
        one = max(stands, key=lambda made: (made["start"], made["end"]))
        at = "document.querySelector('video').currentTime"
        assert page.evaluate(at) == pytest.approx(one["start"], abs=0.01)
        assert page.locator(".bar.member").count() == len(one["members"])
        # a bar, and any other place on the axis
        page.locator(".bar.found").first.click()
        assert page.evaluate(at) in [pytest.approx(made["start"], abs=0.01) for made in stands]
        ruler = page.locator(".ruler").bounding_box()
        page.mouse.click(ruler["x"] + ruler["width"] / 2, ruler["y"] + 10)
        assert page.evaluate(at) == pytest.approx(payloads[name]["duration"] / 2, abs=0.2)
        page.locator("#least").fill("60")
        sure = sum(made["confidence"] >= 0.6 for made in stands)
        assert drawn(page) == page.locator(".items li").count() == sure < len(stands)
        page.locator(".chip", has_text="all it considered").click()
        best = max(made["score"] for made in payloads[name]["instances"])
        weaker = [made for made in payloads[name]["instances"] if not made["stands"]]
        assert drawn(page) == sure + sum(made["score"] >= 0.6 * best for made in weaker)
        page.locator(".chip", has_text="NMS").click()
        assert page.locator(".bar.nms").count() == min(drawn(page), len(payloads[name]["nms"]))


def test_what_each_model_finds_stands_under_the_chosen_instance(browser, payloads, name, videos):
    one = payloads[name]
    models = [{"name": who, "instances": one["instances"][:2]} for who in ("rskp", "detector")]
    write_page(videos / "pair.html", [{**one, "models": models}])
    with quiet_page(browser, (videos / "pair.html").as_uri()) as page:
        ready(page)
        assert page.locator(".lane.of-model").count() == 0
        page.locator(".bar.found").first.click()
        assert page.locator(".lane.of-model .what").all_inner_texts() == ["rskp", "detector"]
        mine = page.locator(".bar.found.chosen").get_attribute("title").split(",")[0]
        assert page.locator(".bar.model").count() == 2 * sum(found["label"] == mine for found in one["instances"][:2])
        page.locator(".chip", has_text="each model").click()
        assert page.locator(".lane.of-model").count() == 0


def test_boxes_that_were_taught_have_a_lane(browser, payloads, name, videos):
    one = payloads[name]
    label = one["instances"][0]["label"]
    ends = {1.0: (1.0, 4.0), 0.3: (2.0, 3.0)}
    boxes = [{"start": start, "end": end, "label": label, "score": score} for score, (start, end) in ends.items()]
    write_page(videos / "taught.html", [{**one, "boxes": boxes}])
    with quiet_page(browser, (videos / "taught.html").as_uri()) as page:
        ready(page)
        titles = [bar.get_attribute("title") for bar in page.locator(".bar.taught").all()]
        assert [title.split(" · ")[1] for title in titles] == ["weight 1.00", "weight 0.30"]
        page.locator(".chip", has_text="taught").click()
        assert page.locator(".bar.taught").count() == 0


def test_keys_do_everything(browser, address, payloads, name):
    stands = sorted((one for one in payloads[name]["instances"] if one["stands"]), key=lambda one: one["start"])
    with quiet_page(browser, address) as page:
        ready(page)
        at = "document.querySelector('video').currentTime"
        page.keyboard.press("n")
        first = page.evaluate(at)
        page.keyboard.press("n")
        assert page.evaluate(at) == pytest.approx(
            stands[stands.index(next(one for one in stands if abs(one["start"] - first) < 0.01)) + 1]["start"], abs=0.01
        )
        page.keyboard.press("p")
        assert page.evaluate(at) == pytest.approx(first, abs=0.01)
        page.keyboard.press("ArrowRight")
        assert page.evaluate(at) == pytest.approx(first + 1, abs=0.01)
        page.keyboard.press("Shift+ArrowLeft")
        assert page.evaluate(at) == pytest.approx(first + 0.9, abs=0.01)
        page.keyboard.press("Escape")
        assert page.locator(".chosen.bar").count() == 0
        page.keyboard.press(" ")
        wait(page, "!document.querySelector('video').paused")
        page.keyboard.press(" ")
        assert page.evaluate("document.querySelector('video').paused")
        ticks = page.locator(".tick").all_inner_texts()
        page.keyboard.press("+")
        assert page.locator(".tick").all_inner_texts() != ticks
        page.keyboard.press("0")
        assert page.locator(".tick").all_inner_texts() == ticks
        page.keyboard.press("?")
        assert "play or pause" in page.locator("dialog.help").inner_text()
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        other = next(one for one in payloads if one != name)
        assert page.locator("h2.name").inner_text() == other
        # labels of each generation, and their change
        assert page.locator(".chart").count() == 4
        wait(page, f"location.hash.includes({json.dumps(other)})")
        page.reload()
        assert page.locator("h2.name").inner_text() == other
        assert "No video file" in page.locator(".screen").inner_text()


@pytest.mark.parametrize("width", [390, 1600])
def test_no_width_makes_the_page_scroll_sideways(browser, address, width):
    with quiet_page(browser, address, viewport={"width": width, "height": 800}) as page:
        ready(page)
        page.keyboard.press("n")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        lanes, curve = page.locator(".ruler").bounding_box(), page.locator(".u-over").first.bounding_box()
        # one axis: lanes and curves begin and end together
        assert curve["x"] == pytest.approx(lanes["x"], abs=1.5)
        assert curve["x"] + curve["width"] == pytest.approx(lanes["x"] + lanes["width"], abs=1.5)


def test_dark_follows_the_reader_and_the_button(browser, address):
    def ground(page: Any) -> str:
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    with quiet_page(browser, address, color_scheme="dark") as page:
        dark = ground(page)
        page.get_by_role("button", name="Light or dark").click()
        assert ground(page) == "rgb(255, 255, 255)" != dark
        page.reload()
        assert ground(page) == "rgb(255, 255, 255)"


def test_nothing_found_is_said(browser, payloads, name, tmp_path):
    weak = [{**one, "confidence": 0.3 if one["stands"] else None} for one in payloads[name]["instances"]]
    for number, (instances, said) in enumerate(
        (([], "Nothing found in this video."), (weak, "Nothing found above 50 %."))
    ):
        one = {**payloads[name], "instances": instances, "least": 0.5, "video": {"url": None, "type": None}}
        write_page(tmp_path / f"{number}.html", [one])
        with quiet_page(browser, (tmp_path / f"{number}.html").as_uri()) as page:
            assert page.locator(".nothing").inner_text() == said
            assert drawn(page) == 0


def test_names_that_are_markup_are_text_everywhere(browser, payloads, name, tmp_path):
    text = json.dumps(payloads[name])
    for plain in {one["label"] for one in payloads[name]["instances"]} | set(payloads[name]["tags"]):
        text = text.replace(json.dumps(plain), json.dumps(HOSTILE))
    one = {**json.loads(text), "name": HOSTILE, "run": HOSTILE, "video": {"url": None, "type": None}}
    write_page(tmp_path / "hostile.html", [one, {**one, "name": "other"}])
    with quiet_page(browser, (tmp_path / "hostile.html").as_uri()) as page:
        page.keyboard.press("n")
        assert page.locator("h2.name").inner_text() == HOSTILE
        for place in (".entry strong", ".items .label", ".group h3", ".results .facts", ".values", ".tags"):
            assert HOSTILE in page.locator(place).first.inner_text(), place
        assert page.evaluate("document.querySelectorAll('script').length") == 0


def test_an_avi_is_said_not_to_play_and_plays_when_embedded(browser, localizer, store, name, tmp_path):
    n = round(store.duration_s(name) * 10)
    avi = write_video(tmp_path / "clip.avi", [100.0] * n, fps=10, codec="mpeg4")
    footage = Footage.of_store(store, name)
    linked = with_video(footage, avi, tmp_path / "linked.html", embed=False)
    assert linked.type is None
    write_page(tmp_path / "linked.html", [payload(localizer, linked)])
    page = browser.new_page()  # the browser itself complains in the console
    page.goto((tmp_path / "linked.html").as_uri())
    wait(page, "document.querySelector('.screen').innerText.includes('cannot play clip.avi')")
    assert "--embed" in page.locator(".screen").inner_text()
    page.keyboard.press("n")
    assert page.locator(".bar.chosen").count() == 1
    page.close()
    inside = with_video(footage, avi, tmp_path / "inside.html", embed=True)
    write_page(tmp_path / "inside.html", [payload(localizer, replace(inside))])
    with quiet_page(browser, (tmp_path / "inside.html").as_uri()) as page:
        ready(page)
        assert page.evaluate("document.querySelector('video').duration") == pytest.approx(n / 10, abs=0.2)
        page.locator(".items .entry").first.click()
        wait(page, "!document.querySelector('video').seeking")
