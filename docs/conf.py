"""How the site is built of these pages: `make docs`."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))

project = "Junctura"
author = "the authors of Junctura"
version = release = re.findall(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[0]

extensions = ["myst_parser", "python_reference"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_static"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# Grammars and plain blocks have no language.
highlight_language = "none"
# Decision records are linked from their index alone.
suppress_warnings = ["toc.not_included"]
# A link that leads nowhere is an error (`-W`).
nitpicky = True
# Signatures have a parameter in each line where one line is too long.
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"Junctura {version}"
html_static_path = ["_static"]
html_css_files = ["junctura.css"]
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
html_js_files = [("junctura.js", {"defer": "defer"})]


def publish_schemas(app: Sphinx, error: Exception | None) -> None:
    """Copies the schemas of JSON documents: their addresses are those of the pages that list them."""
    if error is None:
        shutil.copytree(ROOT / "docs/formats/json", app.outdir / "formats/json", dirs_exist_ok=True)


def mend(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: object) -> None:
    """Replaces elements that Sphinx and the theme use against their meaning: a screen reader would announce them."""
    heading, leveled = 'class="caption" role="heading"', 'class="caption" role="heading" aria-level="2"'
    context["furo_navigation_tree"] = context.get("furo_navigation_tree", "").replace(heading, leveled)
    # A signature of several lines has a list of definitions inside a term.
    signature = re.compile(r'<dt class="sig .*?</dt>', re.DOTALL)
    context["body"] = signature.sub(lambda found: plain(found[0]), context.get("body", ""))


def plain(signature: str) -> str:
    """Returns a signature whose lines are no definitions."""
    lines = signature.replace("<dl>", '<span class="sig-lines">').replace("</dl>", "</span>")
    return lines.replace("<dd>", '<span class="sig-line">').replace("</dd>", "</span>")


def setup(app: Sphinx) -> None:
    """Adds what is not a page, and mends pages after the theme."""
    app.connect("build-finished", publish_schemas)
    app.connect("html-page-context", mend, priority=900)
