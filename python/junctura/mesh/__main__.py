"""The commands ``junctura mesh`` and ``junctura view``: ``python -m junctura.mesh``."""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from junctura._native import Pool
from junctura._pool_options import DEFAULT_POOL, add_pool_options
from junctura._progress import Screen, bar, counted, said_if_slow, say, status_of, status_of_error, worded
from junctura.errors import Closed, Disconnected, Error, NotFound
from junctura.mesh._compare import ValueTolerance, compare
from junctura.mesh._ends import MeshReader, create, read
from junctura.mesh._follow import MeshFollow, follow
from junctura.mesh._model import MeshStep
from junctura.mesh._movie import MovieFile
from junctura.mesh._objects import no_step, with_part
from junctura.mesh._pictures import PictureFiles, PicturePainter, PictureStyle

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status."""
    given = _parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = given.command
    try:
        return command(given)
    except Error as error:
        say(f"junctura: {worded(error)}", sys.stderr)
        return status_of_error(error)
    except BrokenPipeError:
        raise
    except (ImportError, OSError, ValueError) as error:
        say(f"junctura: {error}", sys.stderr)
        return 1
    except KeyboardInterrupt:
        return _INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("junctura mesh", allow_abbrev=False)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    one = commands.add_parser("copy", help="copy a series of meshes", allow_abbrev=False)
    one.add_argument("source", metavar="FROM")
    one.add_argument("target", metavar="TO")
    one.add_argument("-q", "--quiet", action="store_true")
    one.set_defaults(command=_copy, interval=0.0)

    one = commands.add_parser("replay", help="offer the steps of a series one by one", allow_abbrev=False)
    one.add_argument("source", metavar="FROM")
    one.add_argument("target", metavar="TO")
    one.add_argument("--interval", type=_time, default=1.0, metavar="TIME")
    one.add_argument("-q", "--quiet", action="store_true")
    one.set_defaults(command=_copy)

    one = commands.add_parser("compare", help="compare two series of meshes", allow_abbrev=False)
    one.add_argument("first", metavar="A")
    one.add_argument("second", metavar="B")
    one.add_argument("--abs", type=_positive, default=0.0, metavar="X", dest="absolute")
    one.add_argument("--rel", type=_positive, default=0.0, metavar="X", dest="relative")
    one.add_argument("--float-eps", action="store_true")
    one.add_argument("--limit", type=int, default=20, metavar="N")
    one.add_argument("-q", "--quiet", action="store_true")
    one.set_defaults(command=_compare)

    one = commands.add_parser("info", help="describe a series of meshes", allow_abbrev=False)
    one.add_argument("source", metavar="A")
    one.add_argument("--json", action="store_true")
    one.set_defaults(command=_info)

    one = commands.add_parser("view", help="draw the steps of a mesh", allow_abbrev=False)
    one.add_argument("selector", metavar="SELECTOR", nargs="*")
    add_pool_options(one, "junctura view")
    one.add_argument("--field", required=True, metavar="NAME")
    one.add_argument("--out", required=True, metavar="PATTERN")
    one.add_argument("--movie", metavar="FILE")
    one.add_argument("--rate", type=_rate, default=10.0, metavar="N")
    one.add_argument("--size", type=_size, default=(800, 600), metavar="WIDTHxHEIGHT")
    one.add_argument("--range", type=_range, metavar="LOW,HIGH", dest="limits")
    one.add_argument("--from", choices=["iso", "xy", "xz", "yz"], default="iso", dest="direction")
    one.add_argument("--colors", default="viridis", metavar="MAP")
    one.add_argument("--edges", action="store_true")
    one.add_argument("--every", type=int, default=1, metavar="N")
    one.add_argument("--last", type=int, metavar="STEP")
    one.add_argument("--now", action="store_true")
    one.add_argument("--redraw", action="store_true")
    one.add_argument("-q", "--quiet", action="store_true")
    one.set_defaults(command=_view)
    return parser


def _copy(given: argparse.Namespace) -> int:
    screen = Screen(given.quiet)
    notes: dict[str, None] = {}
    with read(given.source) as series:
        writer = create(given.target)
        try:
            for index, mesh in enumerate(series):
                if index and given.interval:
                    time.sleep(given.interval)
                writer.write(mesh)
                notes |= dict.fromkeys(mesh.notes)
                _progress(screen, "copy", index + 1, len(series))
            writer.close()
        except BaseException:
            writer.abort()
            raise
        notes |= getattr(writer, "left_out", {})
        count = len(series)
    screen.draw([])
    if notes:
        screen.say(f"left out: {', '.join(notes)}")
    screen.say(f"{counted(count, 'step')} from {given.source} to {given.target}")
    return 0


def _compare(given: argparse.Namespace) -> int:
    screen = Screen(given.quiet)
    tolerance = ValueTolerance(given.absolute, given.relative, given.float_eps)
    found = 0
    with read(given.first) as first, read(given.second) as second:
        count = len(first)
        for difference in compare(_counted(first, screen), second, tolerance):
            found += 1
            if found > given.limit:
                screen.draw([])
                say(f"more differences than {given.limit} are not shown (--limit)", sys.stdout)
                return 1
            say(str(difference), sys.stdout)
    screen.draw([])
    if not found:
        screen.say(f"equal: {counted(count, 'step')}")
    return 1 if found else 0


def _counted(series: MeshReader, screen: Screen) -> Iterable[MeshStep]:
    for index, mesh in enumerate(series):
        _progress(screen, "compare", index + 1, len(series))
        yield mesh


def _progress(screen: Screen, word: str, done: int, count: int) -> None:
    if screen.is_terminal:
        screen.draw([f"{word}: {bar(done, count, 30)} step {done} of {count}"])


def _info(given: argparse.Namespace) -> int:
    with read(given.source) as series:
        meshes = iter(series)
        mesh = next(meshes)
        times = [mesh.time, *(later.time for later in meshes)]
    described = _described(mesh, times)
    if given.json:
        print(json.dumps(described))
        return 0
    if mesh.title:
        print(f"title   {mesh.title}")
    for one in described["points"]:
        print(f"points  {one['name']}: {one['points']} in {one['dimensions']}-D")
    for one in described["blocks"]:
        dims = f" ({' x '.join(map(str, one['extents']))})" if "extents" in one else ""
        print(f"block   {one['name']}: {counted(one['elements'], one['shape'] + ' element')}{dims}")
    for one in described["sets"]:
        entries = counted(one["entries"], {"vertex": "point"}.get(one["of"], one["of"]))
        print(f"set     {one['name']}: {entries}{' ' + one['kind'] if one['kind'] else ''}")
    for one in described["fields"]:
        components = f" ({', '.join(one['components'])})" if one["components"] else ""
        print(f"field   {one['name']} on {', '.join(one['on'])}{components}")
    known = [value for value in times if value is not None]
    print(f"steps   {len(times)}" + (f", time {known[0]:.6g} to {known[-1]:.6g}" if known else ""))
    return 0


def _described(mesh: MeshStep, times: list[float | None]) -> dict[str, Any]:
    fields: dict[str, dict[str, Any]] = {}
    for field in mesh.fields:
        known = fields.setdefault(field.name, {"name": field.name, "of": field.association, "on": [], "components": []})
        known["on"].append(field.on)
        known["components"] = [component for component in field.values if component]
    return {
        "title": mesh.title,
        "points": [
            {"name": name, "points": one.count, "dimensions": len(one.axes)} for name, one in mesh.points.items()
        ],
        "blocks": [
            {"name": name, "points": block.points, "shape": block.shape, "elements": block.count}
            | ({"extents": list(block.dims)} if block.dims else {})
            for name, block in mesh.blocks.items()
        ],
        "sets": [
            {"name": name, "of": one.association, "entries": int(one.indices.size), "kind": one.kind}
            for name, one in mesh.sets.items()
        ],
        "fields": list(fields.values()),
        "times": times,
    }


def _view(given: argparse.Namespace) -> int:
    style = PictureStyle(given.field, given.size, given.limits, given.direction, given.colors, given.edges)
    files = PictureFiles(given.out)
    movie = MovieFile(given.movie, given.rate) if given.movie else None
    screen = Screen(given.quiet)
    selector = ", ".join(given.selector)
    counts = Counter[str]()
    status = 0
    # A batch system ends a job by this signal: no half picture is left.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with ExitStack() as stack:
        pool = stack.enter_context(Pool(given.pool or DEFAULT_POOL, name=given.name))
        with said_if_slow("loading VTK", given.quiet):
            painter = stack.enter_context(PicturePainter(style))
        steps = stack.enter_context(follow(pool, selector, until_live=given.now))
        if not pool.list(with_part(selector, "fields"), limit=1):
            if given.now:
                raise NotFound(pool.url, no_step(pool, selector))
            screen.say(f"{no_step(pool, selector)}; waiting")
        try:
            _draw(steps, painter, files, given, counts)
        except (Closed, Disconnected):
            # The simulation, or its pool, has ended.
            pass
        except KeyboardInterrupt:
            status = _INTERRUPTED
    ended = "interrupted after " if status else ""
    present = f"; {counts['kept']} were there" if counts["kept"] else ""
    missed = len(steps.missed) + steps.missed_others
    lost = f"; {counted(missed, 'step')} had left the pool" if missed else ""
    screen.say(f"{ended}{counted(counts['drawn'], 'picture')} of {given.field}{present}{lost}")
    if movie is not None:
        _join(files.of(steps.series), movie, screen, has_limits=given.limits is not None)
    return status


def _draw(
    steps: MeshFollow, painter: PicturePainter, files: PictureFiles, given: argparse.Namespace, counts: Counter[str]
) -> None:
    """Draws steps until there are no more, and counts the pictures."""
    for mesh in steps:
        if mesh.step % given.every == 0:
            if not given.redraw and files.has(mesh.step, steps.version):
                counts["kept"] += 1
            else:
                path = files.write(mesh.step, steps.version, steps.series, painter.pixels(mesh))
                counts["drawn"] += 1
                if not given.quiet:
                    say(str(path), sys.stdout)
        if given.last is not None and mesh.step >= given.last:
            break


def _join(pictures: list[Path], movie: MovieFile, screen: Screen, *, has_limits: bool) -> None:
    """Writes the movie of all pictures, also those of earlier viewers."""
    if not pictures:
        screen.say(f"no movie: there are no pictures for {movie.path}")
        return
    movie.write(pictures)
    if not has_limits:
        screen.say("each picture has a color scale of its own: --range LOW,HIGH gives the movie one")
    screen.say(f"{movie.path}: {counted(len(pictures), 'picture')}")


def _time(word: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)?", word)
    if not found:
        raise argparse.ArgumentTypeError(f"{word!r}: expected a time, as 500ms or 10s")
    return float(found[1]) * {"ms": 0.001, "min": 60, "m": 60, "h": 3600}.get(found[2] or "s", 1)


def _positive(word: str) -> float:
    value = float(word)
    if not value >= 0 or not np.isfinite(value):
        raise argparse.ArgumentTypeError(f"{word!r}: expected a number that is not negative")
    return value


def _rate(word: str) -> float:
    value = _positive(word)
    if not 0.01 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{word!r}: expected 0.01 to 100 pictures a second")
    return value


def _size(word: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,5})x(\d{1,5})", word)
    if not found or not 0 < int(found[1]) <= 16384 or not 0 < int(found[2]) <= 16384:
        raise argparse.ArgumentTypeError(f"{word!r}: expected a size in pixels, as 800x600")
    return int(found[1]), int(found[2])


def _range(word: str) -> tuple[float, float]:
    low, comma, high = word.partition(",")
    try:
        limits = (float(low), float(high))
    except ValueError:
        comma = ""
    if not comma or not limits[0] < limits[1]:
        raise argparse.ArgumentTypeError(f"{word!r}: expected two numbers in order, as 0,1.5")
    return limits


if __name__ == "__main__":
    sys.exit(status_of(main))
