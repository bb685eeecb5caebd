"""The page as a person meets it: in a browser, on a small screen, in the dark, on paper."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import chromium
from wtal.figures.page import Page, Plot, Section, Text, render
from wtal.figures.table import Column, Table
from wtal.figures.timeline import timeline
from wtal.report.build import report


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("page") / "report.html"
    report(runs, out)
    return out.as_uri()


def test_figures_and_tables_are_there_and_the_console_is_empty(browser, address: str) -> None:
    page = browser.new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert page.locator("h1").inner_text() == "tiny · base"
    figures = page.locator("figure.picture svg:visible")
    assert figures.count() >= 10
    for number in range(figures.count()):
        box = figures.nth(number).bounding_box()
        assert box["width"] > 300
        assert box["height"] > 80
        assert figures.nth(number).locator("path").count() > 3
    first = page.locator("#table-scores-thumos14 tbody tr")
    assert first.count() == 2
    assert "±" in first.nth(0).inner_text()
    page.locator("summary", has_text="The same as a table").click()
    assert page.locator("#table-classes tbody tr:visible").count() == 3
    with page.expect_download() as downloading:
        page.locator("#table-scores-thumos14 a", has_text="CSV").click()
    assert downloading.value.suggested_filename == "scores-thumos14.csv"
    assert Path(downloading.value.path()).read_text().startswith("recipe,seeds,")
    page.locator("nav a", has_text="Errors").click()
    assert page.locator("#errors").bounding_box()["y"] >= 0
    page.close()


def test_the_reader_chooses_a_video_without_any_script(browser, address: str) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(address)
    options = page.locator(".choice option").all_inner_texts()
    assert len(options) == 7
    for title in (options[0], options[4]):
        page.locator(".choice select").select_option(label=title)
        shown = page.locator(".choice > .option:visible")
        assert shown.count() == 1
        assert shown.locator("figcaption").inner_text().startswith(title.rpartition(" (")[0])
    page.close()


def test_on_a_small_screen_figures_scroll_and_say_so(browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    caption = page.locator("#figure-classes figcaption")
    assert "scroll" in caption.evaluate("element => getComputedStyle(element, '::after').content")
    picture = page.locator("#figure-classes .scroll")
    assert picture.evaluate("element => element.scrollWidth > element.clientWidth")
    assert caption.bounding_box()["y"] < picture.bounding_box()["y"]
    page.close()


def colours(page) -> tuple[str, str, str]:
    ground, text = page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    label = page.locator("figure.picture svg text").first
    return ground, text, label.evaluate("element => getComputedStyle(element).fill")


def test_dark_follows_the_reader_figures_too(browser, address: str) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.goto(address)
        seen[scheme] = colours(page)
        page.close()
    assert seen["light"][0] == "rgb(255, 255, 255)"
    assert all(light != dark for light, dark in zip(seen["light"], seen["dark"], strict=True))


def test_a_small_screen_scrolls_within_figures_not_the_page(browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 375, "height": 700})
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    page.close()


def test_on_paper_everything_is_light_and_open(browser, address: str) -> None:
    page = browser.new_page(color_scheme="dark")
    page.goto(address)
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("nav").is_hidden()
    assert page.locator("#table-classes").is_visible()
    assert page.pdf()[:4] == b"%PDF"
    page.close()


HOSTILE = "\"><script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"


def test_hostile_names_are_text_and_a_hole_would_run_nothing(browser, tmp_path: Path) -> None:
    plot = Plot("p", timeline({HOSTILE: np.ones(3)}, title=HOSTILE), HOSTILE)
    table = Table("t", HOSTILE, (Column(HOSTILE), Column("x")), ((HOSTILE, None),))
    text = render(Page(HOSTILE, HOSTILE, (Section("s", HOSTILE, (plot, table, Text(HOSTILE))),), HOSTILE, (HOSTILE,)))
    (tmp_path / "names.html").write_text(text)
    # as if a name had slipped through: the page's own policy stops it
    (tmp_path / "hole.html").write_text(text.replace("</main>", HOSTILE + "</main>"))
    for name, said_something in (("names", False), ("hole", True)):
        page = browser.new_page()
        said = []
        page.on("console", lambda message, said=said: said.append(message.text))
        page.goto((tmp_path / f"{name}.html").as_uri())
        assert page.title() == HOSTILE
        assert page.locator("h1").inner_text() == HOSTILE
        assert page.locator("figure.picture svg text", has_text=HOSTILE).count() > 0
        assert bool(said) == said_something
        assert all("Content Security Policy" in line for line in said)
        page.close()
