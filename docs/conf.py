"""How the site is built of these pages: `make docs`."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

project = "Junctura"
author = "the authors of Junctura"
version = release = re.findall(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[0]

extensions = ["myst_parser"]
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

html_theme = "furo"
html_title = f"Junctura {version}"
html_static_path = ["_static"]
html_css_files = ["junctura.css"]
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
