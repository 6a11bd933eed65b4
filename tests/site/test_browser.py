"""The site in Chromium: no page violates WCAG 2.2 AA, none is wider than its window, and the search finds the terms.

axe-core looks at each page with all rules but that of contrast, which takes most of its time: it looks at the contrast
of every other page in the light theme, and of the others in the dark one. Both themes have the same elements.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium"),
    pytest.mark.timeout(1800),
]
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
# Only violations are described at length, which takes a fraction of the time.
VIOLATIONS = {"resultTypes": ["violations"]}
CONTRAST = "color-contrast"
STRUCTURE = {**VIOLATIONS, "runOnly": {"type": "tag", "values": WCAG}, "rules": {CONTRAST: {"enabled": False}}}
COLORS = {**VIOLATIONS, "runOnly": {"type": "rule", "values": [CONTRAST]}}
THEMES = ("light", "dark")
# Of a phone and of a large screen, in pixels.
WIDTHS = (400, 1600)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM)
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1600, "height": 1000})
    yield context.new_page()
    context.close()


def pages(site: Path) -> list[Path]:
    found = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    # Decisions have one form and mostly text: each tenth stands for the others, which takes half of the time.
    decisions = [path for path in found if path.parent.name == "decisions"]
    seen = [path for path in found if path not in decisions or decisions.index(path) % 10 == 0]
    assert len(seen) > 30
    return seen


def violations(response: dict[str, Any]) -> list[str]:
    return [f"{one['id']}: {node['target']}" for one in response["violations"] for node in one["nodes"]]


def violations_on(site: Path, page: Page, paths: list[Path], options: dict[str, Any]) -> Iterator[str]:
    """The violations on these pages."""
    for path in paths:
        page.goto(path.as_uri())
        for violation in violations(Axe().run(page, options=options).response):
            yield f"{path.relative_to(site)}: {violation}"


def test_every_page_is_accessible(site: Path, page: Page) -> None:
    assert list(violations_on(site, page, pages(site), STRUCTURE)) == []


@pytest.mark.parametrize("theme", THEMES)
def test_every_word_can_be_read(site: Path, page: Page, theme: str) -> None:
    page.add_init_script(f"localStorage.setItem('theme', '{theme}')")
    paths = pages(site)[THEMES.index(theme) :: len(THEMES)]
    page.goto(paths[0].as_uri())
    assert page.evaluate("document.body.dataset.theme") == theme
    assert list(violations_on(site, page, paths, COLORS)) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_wider_than_its_window(site: Path, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 1000})
    wide = []
    for path in pages(site):
        page.goto(path.as_uri())
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide.append(str(path.relative_to(site)))
    assert wide == []


def test_the_search_finds_the_terms_of_the_glossary(site: Path, page: Page) -> None:
    text = (ROOT / "docs/guide/glossary.md").read_text()
    terms = re.findall(r"^\| \*\*([^*]+)\*\* \|", text, re.MULTILINE)
    assert len(terms) > 30
    missing = []
    for term in terms:
        page.goto(f"{(site / 'search.html').as_uri()}?q={term}")
        page.wait_for_function("/finished|did not match/.test(document.querySelector('#search-results').textContent)")
        if page.locator("#search-results ul.search li").count() == 0:
            missing.append(term)
    assert missing == []
