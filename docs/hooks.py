"""What mkdocs needs beside Markdown: pages that live elsewhere in the project, and the names of the API reference."""

import re
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import wtal

ROOT = Path(__file__).parents[1]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """README.md is the first page, and results/NOTES.md a page; their links are rewritten to the site's paths."""
    for source, page in (("README.md", "index.md"), ("results/NOTES.md", "notes.md")):
        text = (ROOT / source).read_text(encoding="utf-8")
        text = re.sub(r"\]\((?:\.\./)?docs/", "](", text).replace("](results/NOTES.md", "](notes.md")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Links to the notes lead to their page; `::: wtal.NAME` finds where the public name is defined."""
    up = "../" * page.file.src_uri.count("/")
    markdown = re.sub(r"\]\((?:\.\./)+results/NOTES\.md", f"]({up}notes.md", markdown)
    if page.file.src_uri == "reference.md":
        listed = set(re.findall(r"^::: wtal\.(\w+)$", markdown, flags=re.MULTILINE))
        rest = sorted(set(wtal._HOME) - listed)  # a name that nobody has put into a section yet
        markdown += "".join(["\n## More\n"] * bool(rest) + [f"\n::: wtal.{name}\n" for name in rest])
        markdown = re.sub(r"^::: wtal\.(\w+)$", _at_home, markdown, flags=re.MULTILINE)
    return markdown


def _at_home(directive: re.Match[str]) -> str:
    return f"::: wtal.{wtal._HOME[directive[1]]}.{directive[1]}"


class Doctests(griffe.Extension):
    """Shows the doctests of docstrings as code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence each block of `>>>` lines and their output."""
        if obj.docstring:
            obj.docstring.value = re.sub(r"(?m)^>>> (?:.+\n?)+", r"```pycon\n\g<0>\n```\n", obj.docstring.value)
