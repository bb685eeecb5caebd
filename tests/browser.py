"""Chromium of the system, for tests that look at pages as a person does."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

#: by the names that Debian and others give it
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HOSTILE = '"><script>alert(1)</script>'


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; a test without one is skipped, but not in CI."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'wtal[dev]'")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium in CI; .ci/run ought to have installed it")
        pytest.skip("needs Chromium, such as Debian's package chromium")
    with playwright.sync_playwright() as started:
        # the sandbox needs rights that containers and root do not have; the page is our own
        opened = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


def wait(page: Any, holds: str, seconds: float = 30) -> None:
    """Wait until a JavaScript expression is true; Playwright's own way is forbidden by a strict policy."""
    for _ in range(int(seconds * 20)):
        if page.evaluate(holds):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"it never came true: {holds}")


@contextmanager
def quiet_page(browser: Any, address: str, **options: Any) -> Iterator[Any]:
    """An open page, in which nothing may go wrong: no error, no word in the console, nothing asked of a network."""
    page = browser.new_page(**options)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda asked: said.append(asked.url) if asked.url.startswith("https:") else None)
    page.goto(address)
    try:
        yield page
    finally:
        page.close()
    assert said == []
