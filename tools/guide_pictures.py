"""Pictures of the guide and the README that Junctura draws itself; `make pictures` writes them into docs/pictures.

```text
  made-up weather (map_figures) ── products ──────► globe.png, europe.png, height.png
  layouts of the guide ─────────── layout draw ───► layouts.svg
  a run of an ensemble ─────────── junctura run ──► timeline.svg, in light colors
  the pipe of the page on meshes ─ PyVista ───────► mesh.png
```
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from map_figures import height, rain, temperature
from PIL import Image

from junctura.mesh import read
from junctura.mesh._pictures import PicturePainter, PictureStyle
from junctura.products import Field
from junctura.products._map.picture import picture
from junctura.products._outputs import Output

ROOT = Path(__file__).resolve().parent.parent
LARGEST_BYTES = 60_000
LAYOUTS = ("shape=64x64 grid=2x2 block=8x8", "shape=64x64 grid=4x1")
WORKFLOW = """\
workflow: ensemble
pool: {schema: free}
tasks:
  forcing:
    run: [sh, -c, "sleep 0.6"]
  member:
    run: [sh, -c, "for step in 1 2 3; do sleep 0.$((4 + {member})); echo field | junctura put - --pool {pool} \
--set space={member} --set name=$step --quiet; done"]
    matrix: {member: 1/to/4}
    start: {after: [forcing]}
  product:
    run: [sh, -c, "sleep 0.3"]
    start: {each: "name=1/2/3"}
  report:
    run: [sh, -c, "sleep 0.5"]
    start: {after: [member, product]}
"""


def maps() -> dict[str, tuple[Field, dict[str, Any]]]:
    """The fields of the maps, and how each is drawn."""
    europe = "0.5/0.5@72/-25/34/45"
    return {
        "globe": (temperature("0.5/0.5"), {"projection": "globe", "centre": (42, 10), "part": "map", "width": 420}),
        "europe": (rain(europe), {"width": 640, "theme": "light", "borders": True}),
        "height": (height("0.5/0.5", 500, 5850, 760), {"projection": "robinson", "width": 560, "isolines": True}),
    }


def draw_maps(folder: Path) -> None:
    for name, (field, options) in maps().items():
        path = folder / f"{name}.png"
        colors = picture(field, Output("png", **options)).quantize(96, dither=Image.Dither.NONE)
        colors.save(path, optimize=True)
        if path.stat().st_size > LARGEST_BYTES:
            sys.exit(f"{path} has {path.stat().st_size} bytes")


def draw_layouts(folder: Path) -> None:
    first, second = LAYOUTS
    command = ["junctura", "layout", "draw", "--from", first, "--to", second, "--out", str(folder / "layouts.svg")]
    subprocess.run(command, check=True)


def draw_timeline(folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="pictures-") as place:
        flow, run = Path(place, "ensemble.yaml"), Path(place, "run")
        flow.write_text(WORKFLOW)
        command = ["junctura", "run", str(flow), "--run-dir", str(run), "--parallel", "4", "--python", sys.executable]
        subprocess.run([*command, "--quiet"], check=True)
        page = (run / "timeline.html").read_text()
    found = re.search(r"<svg.*?</svg>", page, re.DOTALL)
    assert found
    style = (ROOT / "python/junctura/workflow/_timeline/style.css").read_text()
    light = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", style)
    ground = '<rect width="100%" height="100%" fill="#fdfcf8"/>'
    (folder / "timeline.svg").write_text(found[0].replace(">", f">\n<style>{light}</style>\n{ground}", 1) + "\n")


def draw_mesh(folder: Path) -> None:
    page = (ROOT / "docs/guide/meshes.md").read_text()
    program = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert program
    with tempfile.TemporaryDirectory(prefix="pictures-") as place:
        subprocess.run([sys.executable, "-c", program[1]], cwd=place, check=True)
        with read(Path(place, "pipe.exo")) as series:
            mesh = list(series)[-1]
    style = PictureStyle("temperature", size=(640, 400), limits=(300, 360), with_edges=True)
    with PicturePainter(style) as painter:
        colors = Image.fromarray(painter.pixels(mesh)).quantize(96, dither=Image.Dither.NONE)
    colors.save(folder / "mesh.png", optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/pictures", metavar="FOLDER")
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    draw_maps(folder)
    draw_layouts(folder)
    draw_timeline(folder)
    draw_mesh(folder)
    print(f"pictures: {folder}")


if __name__ == "__main__":
    main()
