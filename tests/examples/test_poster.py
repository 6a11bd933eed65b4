"""The demo's poster, of made-up fields: its words, their size, the margins, and the colors of each row.

What is drawn is recorded: letters with their size, and pictures with their place.
"""

import argparse
import importlib
import itertools
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from junctura.products import Recipe, load_all
from junctura.products._map.picture import picture
from junctura.products._map.styling.ranges import _field, _grid_of
from junctura.products._outputs import Output

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/12_products"
sys.path.insert(0, str(EXAMPLE))
demo = importlib.import_module("demo")
poster = importlib.import_module("poster")

MEMBERS, LAST, EVERY = 6, 120, 12
KINDS = {"height": 3, "height_spread": 3, "wind": 3, "storm": 3}
# The width at which it is looked at, and the least height of letters, and of raised ones.
SEEN, LEGIBLE, RAISED = 1200, 11.0, 7.0
# Values that a row's maps reach: beyond one end of some ranges, so that bars would differ if each had its own.
VALUES = {"vorticity": 1.5e-4, "height": 9500.0, "height_spread": 90.0, "wind": 60.0, "storm": 80.0}
UNITS = {"vorticity": "s**-1", "height": "gpm", "height_spread": "gpm", "wind": "m s**-1", "storm": "%"}

Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Words:
    """Letters on a picture."""

    text: str
    size: float
    colour: tuple[int, ...]
    box: Box


@dataclass(frozen=True)
class Placed:
    """A picture on the poster."""

    name: str
    own_width: int
    box: Box


class Record:
    """All that is drawn while it is there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.words: list[Words] = []
        self.placed: list[Placed] = []
        text, paste, opened = ImageDraw.ImageDraw.text, Image.Image.paste, Image.open
        resized = Image.Image.resize

        def record_text(draw, at, words, fill=None, font=None, anchor=None, **more):
            box = draw.textbbox(at, words, font=font, anchor=anchor)
            self.words.append(Words(words, font.size, fill, box))
            text(draw, at, words, fill, font=font, anchor=anchor, **more)

        def record_paste(page, one, place=None, mask=None):
            if page.width == poster.WIDTH and isinstance(one, Image.Image):
                name, own_width = getattr(one, "made_of", ("", 0))
                self.placed.append(Placed(name, own_width, (*place, place[0] + one.width, place[1] + one.height)))
            paste(page, one, place, mask)

        def open_named(file, *more):
            one = opened(file, *more)
            one.made_of = (Path(str(file)).stem, one.width)
            return one

        def resize_named(one, *more, **options):
            made = resized(one, *more, **options)
            made.made_of = getattr(one, "made_of", ("", 0))
            return made

        monkeypatch.setattr(ImageDraw.ImageDraw, "text", record_text)
        monkeypatch.setattr(Image.Image, "paste", record_paste)
        monkeypatch.setattr(Image.Image, "resize", resize_named)
        monkeypatch.setattr(Image, "open", open_named)


@dataclass(frozen=True)
class Drawn:
    """The poster, and what is on it and on its maps."""

    picture: Image.Image
    words: list[Words]
    placed: list[Placed]
    # By the names of maps.
    of_maps: dict[str, list[Words]]
    title: str


def hours_of(name: str) -> int:
    return int(name.rpartition("_")[2])


def noise(shape: tuple[int, ...], seed: int) -> np.ndarray:
    rows, columns = (np.linspace(0, 2 * np.pi, count) for count in shape)
    waves = np.random.default_rng(seed).integers(1, 9, (12, 3))
    total = sum(np.sin(a * rows[:, None] + c) * np.cos(b * columns + c) for a, b, c in waves)
    return np.asarray(total) / 4


def values_of(kind: str, shape: tuple[int, ...], hour: int, member: int) -> np.ndarray:
    """Of which later hours and members reach further."""
    grown = VALUES[kind] * (0.4 + hour / LAST) * (1 + 0.1 * member)
    made = noise(shape, hour + 1000 * member)
    if kind == "height":
        return VALUES[kind] + 5 * hour * made
    if kind == "storm":
        return np.asarray(100 * np.abs(made).clip(0, hour / LAST))
    return grown * made if kind == "vorticity" else grown * np.abs(made).clip(0, 1)


def maps(folder: Path, record: Record) -> dict[str, list[Words]]:
    """Those of the demo's recipes, at the hours that the poster shows; others are copies."""
    found: dict[str, list[Words]] = {}
    shown = poster.some(range(0, LAST + 1, EVERY), (0, *poster.LATE))
    for recipe in load_all([EXAMPLE / "recipes/maps.yaml"]):
        for wanted in recipe.wanted():
            file = folder / wanted.name()
            file.parent.mkdir(parents=True, exist_ok=True)
            hour, member = int(wanted.attributes["step"]), int(wanted.attributes.get("number", 1))
            is_seen = hour in shown and (member == 1 or hour == LAST)
            if not is_seen and (copied := next(iter(file.parent.glob(f"{file.stem.rpartition('_')[0]}_*.png")), None)):
                shutil.copy(copied, file)
                continue
            record.words.clear()
            draw(recipe, file, hour, member, wanted.options())
            found[file.stem] = list(record.words)
    return found


def draw(recipe: Recipe, file: Path, hour: int, member: int, options: dict) -> None:
    on = _grid_of(recipe)
    assert on is not None
    kind = re.sub(r"(_\d+)+$|_bar$", "", file.stem)
    field = _field(recipe, on)
    values = values_of(kind, on.shape, hour, member)
    attributes = {**field.attributes, "step": hour, "number": member}
    made = replace(field, values=values, attributes=attributes, units=UNITS[kind])
    picture(made, Output("png", **options)).save(file)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drawn]:
    out = tmp_path_factory.mktemp("poster")
    with pytest.MonkeyPatch.context() as monkeypatch:
        record = Record(monkeypatch)
        of_maps = maps(out / "products", record)
        record.words.clear()
        record.placed.clear()
        given = argparse.Namespace(out=out, members=MEMBERS, days=LAST / 24, truncation=63)
        path = demo.hang(given, {"fields": 1476, "products": 600})
        with Image.open(path) as made:
            made.load()
        yield Drawn(made, list(record.words), list(record.placed), of_maps, "A jet becomes unstable: 6 forecasts")


def rows(drawn: Drawn) -> list[list[Placed]]:
    """The pictures in rows, without the color bar of the first one."""
    pictures = [one for one in drawn.placed if one.name != "vorticity_bar"]
    return [list(row) for _, row in itertools.groupby(pictures, key=lambda one: one.box[1])]


def test_its_words_say_what_is_shown(drawn: Drawn) -> None:
    said = " ".join(words.text for words in drawn.words)
    assert drawn.words[0].text.startswith(drawn.title), "the title is the first"
    assert drawn.words[0].size == max(words.size for words in drawn.words) >= 1.8 * poster.WORDS
    caption = demo.CAPTION.format(truncation=63).replace("\u00a0", " ")
    for part in (caption, "T63", "idealized", "coastlines are there for orientation only", "1476 fields, 600 products"):
        assert part in said
    headings = ["Relative vorticity, member 1", f"The same of all members, hour {LAST}"]
    assert [words.text for words in drawn.words if words.size == poster.HEADING] == headings


def test_one_member_is_shown_over_time_and_all_are_small_beside_each_other(drawn: Drawn) -> None:
    over_time, members, *others = rows(drawn)
    assert [one.name for one in over_time] == [f"vorticity_1_{hour:03}" for hour in (0, 72, 96, 120)]
    assert [one.name for one in members] == [f"vorticity_{number}_120" for number in range(1, MEMBERS + 1)]
    sizes = [
        {(right - left, bottom - top) for left, top, right, bottom in map(box, row)} for row in (over_time, members)
    ]
    assert all(len(of_row) == 1 for of_row in sizes), "in a row all have one size"
    (large,), (small,) = sizes
    assert large[0] > 1.4 * small[0]
    kinds = [{one.name.rpartition("_")[0] for one in row} for row in others]
    assert kinds == [{kind} for kind in KINDS]
    assert [[hours_of(one.name) for one in row] for row in others] == [[72, 96, 120]] * len(KINDS)
    labels = [words.text for words in drawn.words if words.text.startswith(("hour ", "member "))]
    assert labels == [f"hour {hour}" for hour in (0, 72, 96, 120)] + [f"member {n}" for n in range(1, MEMBERS + 1)]


def box(one: Placed) -> Box:
    return one.box


@pytest.mark.parametrize("kind", KINDS)
def test_maps_of_a_row_have_one_range_of_colors(drawn: Drawn, kind: str) -> None:
    bars = [
        [words for words in drawn.of_maps[f"{kind}_{hour:03}"] if re.fullmatch(r"[-\d.,]+", words.text)]
        for hour in (72, 96, 120)
    ]
    numbers = [[(words.text, words.box) for words in bar] for bar in bars]
    assert len(numbers[0]) >= 4 and numbers[0] == numbers[1] == numbers[2]


def test_all_globes_have_the_range_of_the_one_bar() -> None:
    options = {recipe.product: dict(recipe.output.options) for recipe in load_all([EXAMPLE / "recipes/maps.yaml"])}
    globe, bar = options["vorticity-globe"], options["vorticity-bar"]
    colours = ("range", "levels", "colours", "scale", "units", "middle", "theme")
    assert globe["range"] and all(globe.get(key) == bar.get(key) for key in colours)


def test_all_letters_are_legible_at_half_the_size(drawn: Drawn) -> None:
    sizes = {words.text: words.size * SEEN / poster.WIDTH for words in drawn.words}
    for one in drawn.placed:
        scale = (one.box[2] - one.box[0]) / one.own_width * SEEN / poster.WIDTH
        sizes |= {f"{one.name}: {words.text}": words.size * scale for words in drawn.of_maps[one.name]}
    small = {text: size for text, size in sizes.items() if size < LEGIBLE}
    # Exponents, as of units, are raised.
    assert all(re.search(r": -?\d{1,2}$", text) and size >= RAISED for text, size in small.items()), small
    assert len(sizes) > 100


def test_words_stand_out_from_the_ground_and_not_on_each_other(drawn: Drawn) -> None:
    for words in drawn.words:
        assert contrast(words.colour, poster.GROUND) >= 4.5, words
    boxes = [words.box for words in drawn.words] + [one.box for one in drawn.placed if "vorticity" in one.name]
    for one, other in itertools.combinations(boxes, 2):
        assert not (one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]), (one, other)


def contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    """Of two colors, as the Web Content Accessibility Guidelines define it."""

    def luminance(colour: tuple[int, ...]) -> float:
        parts = [part / 255 for part in colour]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    brighter, darker = sorted(map(luminance, (one, other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def test_margins_are_aligned(drawn: Drawn) -> None:
    left, right = poster.MARGIN, poster.WIDTH - poster.MARGIN
    pixels = np.asarray(drawn.picture.convert("RGB")).astype(int)
    ink = np.abs(pixels - np.array(poster.GROUND)).max(axis=2) > 24
    columns = np.flatnonzero(ink.any(axis=0))
    # Numbers are centered on the ends of axes and bars.
    assert left - columns[0] <= poster.INSET and columns[-1] - right <= poster.INSET, "nothing else is in the margins"
    for words in drawn.words:
        assert words.box[0] >= left and words.box[2] <= right + poster.INSET, words
    for words in drawn.words[:2]:
        assert words.box[0] - left <= 6, words
    for row in rows(drawn):
        top, bottom = round(row[0].box[1]), round(row[0].box[3])
        reached = np.flatnonzero(ink[top:bottom].any(axis=0))
        assert -12 <= reached[0] - left <= 12, row[0]
        assert -12 <= reached[-1] - right <= poster.INSET, row[-1]
    gaps = [round(two.box[0] - one.box[2]) for row in rows(drawn)[:2] for one, two in itertools.pairwise(row)]
    assert set(gaps) == {poster.GAP}
