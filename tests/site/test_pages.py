"""The site: it is built, its links lead somewhere, and what its tables say is what the sources say."""

from __future__ import annotations

import inspect
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from sphinx.util.inventory import InventoryFile

import junctura
import junctura.aio
import junctura.dask
import junctura.errors
import junctura.products
import junctura.mesh
import junctura.remap
from junctura._progress import status_of_error

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs/guide"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
# The site is built in the first test that needs it, which takes two minutes on a loaded machine.
pytestmark = pytest.mark.timeout(600)
JUNCTURA = TARGET / os.environ.get("JUNCTURA_PROFILE", "ci") / "junctura"
RUST = TARGET / "doc"


class Links(HTMLParser):
    """What a page refers to, and the places in it that can be referred to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.places.add(value)
            elif value and ((tag == "a" and name == "href") or (tag in ("img", "script") and name == "src")):
                self.links.append(value)


def test_every_link_leads_somewhere(site: Path) -> None:
    pages = {page: Links(page.read_text()) for page in site.rglob("*.html")}
    assert len(pages) > 30
    for page, parsed in pages.items():
        for link in parsed.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            path = unquote(parts.path)
            target = (page.parent / path).resolve() if path else page
            if target.is_relative_to(site / "rust"):
                # `make docs` copies what the suite `reference` has made.
                target = RUST / target.relative_to(site / "rust")
            assert target.exists(), f"{page.name}: {link}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].places, f"{page.name}: {link}"


def test_every_page_of_the_guide_can_be_reached(site: Path) -> None:
    front = Links((site / "index.html").read_text()).links
    for page in GUIDE.glob("*.md"):
        assert f"guide/{page.stem}.html" in front


@pytest.mark.parametrize("picture", sorted(GUIDE.glob("*.svg")), ids=lambda path: path.stem)
def test_a_picture_can_be_read_on_any_color(picture: Path) -> None:
    text = picture.read_text()
    # It has its own ground and colors, and its content as text.
    assert '<rect class="panel"' in text
    assert "currentColor" not in text
    assert "<title" in text
    assert "<desc" in text


def test_the_picture_of_the_layouts_is_that_of_the_command() -> None:
    page = (GUIDE / "arrays.md").read_text()
    given = re.search(r"layout draw --from '([^']+)' --to '([^']+)'", page)
    assert given
    command = [str(JUNCTURA), "layout", "draw", "--from", given[1], "--to", given[2]]
    drawn = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert drawn == (ROOT / "docs/pictures/layouts.svg").read_text()


@pytest.mark.parametrize("picture", sorted((ROOT / "docs/pictures").iterdir()), ids=lambda path: path.name)
def test_pictures_are_small(picture: Path) -> None:
    assert picture.stat().st_size < 60_000


def documented(site: Path) -> set[str]:
    """Each name of the Python reference."""
    with (site / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda _, path: path)
    return {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}


def test_every_public_name_is_in_the_python_reference(site: Path) -> None:
    names = documented(site)
    assert {f"junctura.{name}" for name in dir(junctura)} <= names
    for module in (junctura.aio, junctura.dask, junctura.mesh, junctura.products, junctura.remap):
        assert {f"{module.__name__}.{name}" for name in module.__all__} <= names


def test_every_method_is_in_the_python_reference(site: Path) -> None:
    names = documented(site)
    missing = [
        f"junctura.{name}.{member}"
        for name in junctura.__all__
        if isinstance(thing := getattr(junctura, name), type) and not issubclass(thing, BaseException)
        for member in vars(thing)
        if not member.startswith("_") and f"junctura.{name}.{member}" not in names and is_method(thing, member)
    ]
    assert missing == []


def is_method(thing: type, member: str) -> bool:
    """Whether a member is a method or a property; fields of a dataclass are in its docstring."""
    return inspect.isroutine(getattr(thing, member)) or inspect.isdatadescriptor(inspect.getattr_static(thing, member))


def codes() -> list[tuple[str, str]]:
    """Each error with its advice, as the sources have them."""
    text = (ROOT / "crates/junctura-model/src/error.rs").read_text()
    advice = {"Retry": "retry", "FixInput": "fix the input", "GiveUp": "give up"}
    return [(name, advice[word]) for name, word in re.findall(r"^    (\w+) = \d+, (\w+);$", text, re.M)]


def statuses() -> dict[str, str]:
    """The exit status of each error that has one of its own."""
    text = (ROOT / "crates/junctura-cli/src/exit/mod.rs").read_text()
    arms = re.findall(r"^\s+((?:Code::\w+(?:\s*\|\s*)?)+) => (\d+),", text, re.M)
    return {name: status for names, status in arms for name in re.findall(r"Code::(\w+)", names)}


def test_every_error_has_its_entry() -> None:
    page = (GUIDE / "errors.md").read_text()
    rows = re.findall(r"^\| \[(\w+)\]\(#(\w+)\) \| ([\w ]+) \| (\d+) \|$", page, re.M)
    own = statuses()
    assert [(name, place, advice, status) for name, place, advice, status in rows] == [
        (name, name.lower(), advice, own.get(name, "1")) for name, advice in codes()
    ]
    assert {name: str(status_of_error(getattr(junctura.errors, name)())) for name, _, _, _ in rows} == {
        name: status for name, _, _, status in rows
    }
    entries = dict(re.findall(r"^### (\w+)\n(.+?)$", page, re.M))
    assert set(entries) == {name for name, _ in codes()}
    for name, entry in entries.items():
        assert "**Do:** " in entry, name


def test_every_limit_has_its_row() -> None:
    with tempfile.TemporaryDirectory(prefix="site-") as folder:
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder}
        serve = [str(JUNCTURA), "pool", "serve", "--pool", "unix:limits", "--announce"]
        with subprocess.Popen(serve, env=environment, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == "unix:limits\n"
            stat = subprocess.run(
                [str(JUNCTURA), "pool", "stat", "--json", "--pool", "unix:limits"],
                env=environment,
                capture_output=True,
                check=True,
            )
            subprocess.run(
                [str(JUNCTURA), "pool", "stop", "--pool", "unix:limits"],
                env=environment,
                capture_output=True,
                check=True,
            )
    limits = json.loads(stat.stdout)["limits"]
    page = (GUIDE / "operations.md").read_text()
    rows = {name: int(value) for name, value in re.findall(r"^\| `(\w+)` \| (\d+) \| [^|]+ \|$", page, re.M)}
    assert rows == limits


def test_the_options_of_a_server_are_those_that_it_has() -> None:
    said = subprocess.run([str(JUNCTURA), "pool", "serve", "--help"], capture_output=True, text=True, check=True).stdout
    for option in re.findall(r"`(--[\w-]+)", (GUIDE / "operations.md").read_text().partition("## Size it")[0]):
        assert option in said or option == "--quiet", option


def test_the_figures_are_those_of_the_benchmarks() -> None:
    done = subprocess.run(
        [sys.executable, "tools/comparison.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_decisions_and_formats_are_in_the_site(site: Path) -> None:
    for page in [*(ROOT / "docs/decisions").glob("0*.md"), *(ROOT / "docs/formats").glob("*.md")]:
        assert (site / page.relative_to(ROOT / "docs").with_suffix(".html")).exists()


# Variables for tests.
FOR_TESTS = {"JUNCTURA_ISA", "JUNCTURA_SEEDS"}


def test_every_variable_of_the_environment_has_its_row() -> None:
    read = set()
    rust, python = (ROOT / "crates").glob("*/src/**/*.rs"), (ROOT / "python/junctura").rglob("*.py")
    for path in itertools.chain(rust, python, (ROOT / "c").rglob("*.c")):
        if "tests" not in path.parts and path.name != "tests.rs":
            read |= set(re.findall(r'"(JUNCTURA_[A-Z_]+)"', path.read_text()))
    read = {name for name in read if name not in FOR_TESTS and not name.startswith("JUNCTURA_TEST_")}
    rows = re.findall(r"^\| `(JUNCTURA_\w+)` \|", (GUIDE / "environment.md").read_text(), re.M)
    assert sorted(rows) == sorted(read)
