"""Pages of names that somebody else has chosen: shown as they are, and nothing more."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from wtal.figures.page import Code, Folded, Page, Plot, Section, Side, Text, Tile, Tiles, render
from wtal.figures.plots import Line, Panel, bars_by_class, line_plot, small_multiples
from wtal.figures.style import save_figure
from wtal.figures.table import Column, Measure, Table, as_csv, latex, markdown, plain_name
from wtal.figures.timeline import timeline
from wtal.instances import Instances

HOSTILE = (
    '"><script>alert(9)</script>',
    "'><img src=x onerror=alert(9)>",
    "</style></title></svg><script>alert(9)</script>",
    "javascript:alert(9)",
    "{{ 7 * 7 }}{% raw %}",
    "$\\frac{1}{$ & \\input{/etc/passwd} %",
    "| a | b |\n| c |",
    "=HYPERLINK(1)",
    "[red]rich[/red]",
    "a\x00b\x1b[31mc\x0bd",
    "../../up",
)


def hostile_page(name: str) -> Page:
    values = {name: [Measure((1.0, 2.0))], f"{name}2": [None]}
    found = Instances(np.array([[0.0, 2.0]]))
    plots = (
        Plot("bars", bars_by_class([name], values, x=name), name),
        Plot("lines", line_plot([Line(name, [0, 1], [0, 1]), Line("b", [0, 1], [0, 1])], x=name, y=name), name),
        Plot("panels", small_multiples([Panel(name, [Line(name, [0, 1], [0, 1])])], x=name), name),
        Plot(plain_name("video", name), timeline({name: np.ones(3), f"{name}3": found}, title=name), name),
    )
    table = Table("t", name, (Column(name, name), Column("x")), ((name, name), (name, Measure((1.0,)))), name)
    blocks = (Side(plots), table, Text(name), Code(name), Tiles((Tile(name, name, name),)), Folded(name, (Text(name),)))
    return Page(name, name, (Section("one", name, blocks), Section("two", name, ())), name, (name,))


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_shown_and_never_run(name: str) -> None:
    text = render(hostile_page(name))
    seen = Seen()
    seen.feed(text)
    assert not {tag for tag, _ in seen.tags} & {"script", "img", "iframe", "object", "embed", "base", "form"}
    for tag, attributes in seen.tags:
        assert not [key for key in attributes if key.startswith("on")], (tag, attributes)
        for key in ("href", "src", "xlink:href"):
            assert (attributes.get(key) or "#").startswith(("#", "data:"))
        assert re.fullmatch(r"[A-Za-z0-9._-]*", attributes.get("id") or "")
    identities = [attributes["id"] for _, attributes in seen.tags if "id" in attributes]
    assert len(identities) == len(set(identities))
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f]", text)


def test_a_page_forbids_scripts_and_the_network() -> None:
    text = render(Page("t", "", ()))
    seen = Seen()
    seen.feed(text)
    (policy,) = [a["content"] for tag, a in seen.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    rules = dict(rule.split(maxsplit=1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"  # which goes for scripts, too, as nothing else is said of them
    assert "script-src" not in rules
    assert text.index("Content-Security-Policy") < text.index("<title>")


@pytest.mark.parametrize("name", HOSTILE)
def test_tables_keep_their_form_whatever_the_names(name: str) -> None:
    table = Table("t", name, (Column("run"), Column("x")), ((name, Measure((1.0,))), ("b", name)))
    lines = markdown(table).splitlines()
    assert [line.replace("\\|", "").count("|") for line in lines] == [3] * 4
    assert "<" not in markdown(table)
    rows = [line for line in latex(table).splitlines() if line.endswith(r"\\")]
    assert len(rows) == 3
    assert not re.search(r"(?<!\\)\\(input|frac)", latex(table))
    assert not re.search(r"^\s*[=+@-]", as_csv(table), flags=re.MULTILINE)


def test_pictures_of_hostile_names_are_whole_files(tmp_path) -> None:
    import xml.etree.ElementTree as ET

    for number, name in enumerate(HOSTILE[:8]):
        path = tmp_path / f"{number}.svg"
        save_figure(path, timeline({name: np.ones(3)}, title=name))
        texts = [element.text for element in ET.parse(path).iter("{http://www.w3.org/2000/svg}text")]
        assert name.splitlines()[0] in texts


def test_names_of_files_stay_in_their_folder() -> None:
    assert plain_name("video", "v_1.a-b") == "video-v_1.a-b"
    odd = [plain_name("video", name) for name in HOSTILE]
    assert len(set(odd)) == len(odd)
    for name in odd:
        assert re.fullmatch(r"video-[A-Za-z0-9._-]{1,110}", name)
    with pytest.raises(ValueError, match="plain_name"):
        Table("../up", "T", (), ())
