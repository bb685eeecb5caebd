"""Videos and classes with names that somebody has made to do harm: in a run, its report, tables and the terminal."""

import csv
import io
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import chromium
from small import RECIPE
from wtal.annotations import Annotations
from wtal.cli import main
from wtal.data.convert import convert
from wtal.data.synthetic import synthetic_source
from wtal.data.synthetic_annotations import random_annotations
from wtal.report.build import report
from wtal.training import Execution, train

NAMES = {
    "html": "\"><script>document.title='stolen'</script>",
    "attribute": "' onload=document.title='stolen' x='",
    "image": "<img src=x onerror=\"document.title='stolen'\">",
    "markdown": "[a](javascript:document.title='stolen') | **b** | `c`",
    "latex": r"\input{/etc/passwd} 100% & $x_1^2$ ~ #{",
    "formula": '=HYPERLINK("http://127.0.0.1/","x")',
    "sum": "@SUM(1+1)",
    "rich": "[red]red[/red] [link=x]",
    "terminal": "\x1b[31mred\x1b]0;title\x07",
    "nul": "nul\x00 and bell\x07",
    "math": r"$\frac{1}{0}$ and $unclosed",
    "xml": "form\x0cfeed \x1f \ufffe ]]> &amp; &#0;",
    "up": "../../up",
    "root": "/etc/passwd",
    "lines": "two\nlines\tand\r\ntabs",
    "template": "{{ 7 * 7 }}{% raw %}${7*7}",
    "right to left": "\u202egnp.exe",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store, a run, its report and tables, all of hostile names."""
    folder = tmp_path_factory.mktemp("outer") / "a" / "b" / "hostile"
    rng, names = np.random.default_rng(0), list(NAMES.values())
    usual = random_annotations(rng, n_train=9, n_test=8, n_classes=4, duration_s=25.0)
    classes = tuple(NAMES[kind] for kind in ("html", "latex", "formula", "terminal"))
    truth = Annotations(classes, dict(zip(names, usual.videos.values(), strict=True)))
    convert(synthetic_source(truth, rng, n_dims=16), folder / "store")
    (folder / "tiny.yaml").write_text(RECIPE)
    run = train(
        folder / "tiny.yaml",
        folder / "store",
        folder / "run",
        execution=Execution(threads=1),
        progress=False,
    )
    report([run.path], folder / "page.html", tables=folder / "tables")
    return folder


def test_files_stay_where_they_belong(made: Path) -> None:
    outer = made.parents[2]
    assert [path for path in outer.rglob("*") if made not in (path, *path.parents) and path not in made.parents] == []
    assert {path.name for path in made.iterdir()} == {"store", "run", "tiny.yaml", "page.html", "tables"}
    for path in made.rglob("*"):
        assert re.fullmatch(r"[A-Za-z0-9._-]+", path.name), path


def test_tables_keep_their_cells_and_compute_nothing(made: Path) -> None:
    seen = set()
    for path in (made / "tables").glob("*.csv"):
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
        assert len({len(row) for row in rows}) == 1, path.name
        cells = {cell for row in rows for cell in row}
        seen |= cells
        assert not [cell for cell in cells if cell[:1] in ("=", "@") or re.match(r"[+-][^0-9]", cell)]
    assert f"'{NAMES['formula']}" in seen
    for path in (made / "tables").glob("*.md"):
        lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1, path.name
        assert not any("<script" in line or "<img" in line for line in lines)
    for path in (made / "tables").glob("*.tex"):
        text = path.read_text(encoding="utf-8")
        assert r"\input" not in text
        bare = text.replace(r"\{", "").replace(r"\}", "")
        assert bare.count("{") == bare.count("}"), path.name


def test_pictures_are_whole_xml(made: Path) -> None:
    text = (made / "page.html").read_text(encoding="utf-8")
    pictures = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    assert len(pictures) >= 5
    for picture in pictures:
        ElementTree.fromstring(picture.replace("&nbsp;", " "))
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", text)


def test_terminals_are_not_steered(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = made / "store"
    main(["evaluate", str(made / "run" / "predictions.json"), str(store / "gt.json"), "--split", "test", "--per-class"])
    main(["data", "check", str(store)])
    with pytest.raises(SystemExit):
        main(["evaluate", f"{NAMES['terminal']}.json", str(store / "gt.json")])
    said = "".join(capsys.readouterr())
    assert not [sign for sign in said if not sign.isprintable() and sign != "\n"]
    assert NAMES["latex"] in said


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


def test_the_page_runs_nothing_and_breaks_no_table(browser: Any, made: Path) -> None:
    page = browser.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((made / "page.html").as_uri())
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert page.title() == "run"
    for kind in ("html", "latex", "formula"):
        assert page.get_by_text(NAMES[kind]).count() > 0, kind
    widths = page.evaluate(
        """[...document.querySelectorAll('table tbody')].map(body => [...body.rows].map(
            row => [...row.cells].reduce((sum, cell) => sum + cell.colSpan, 0)))"""
    )
    assert len(widths) > 3
    assert all(len(set(rows)) <= 1 for rows in widths), widths
    page.close()
