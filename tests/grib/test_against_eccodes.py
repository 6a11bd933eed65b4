"""Our reader of GRIB headers against ecCodes: every message of the files at hand, of ecCodes' samples, and of what
grib_messages.py makes, must give the same mars keys and the same description.

Where we differ on purpose or know that we do is in DIFFERENCES, each with its reason; the same list is in
docs/formats/grib.md, and a difference that no longer shows fails the test.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

eccodes = pytest.importorskip("eccodes")

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import grib_messages as messages  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data" / "grib"
FILES = sorted(p for p in DATA.glob("*.grib*")) if DATA.is_dir() else []
DESCRIPTIVE = [
    "edition",
    "centre",
    "shortName",
    "paramId",
    "units",
    "typeOfLevel",
    "stepType",
    "gridType",
    "packingType",
    "Ni",
    "Nj",
    "numberOfDataPoints",
    "md5GridSection",
]


@dataclass(frozen=True)
class Seen:
    """A key whose value ecCodes gives as `theirs` and we as `ours`; None where there is none."""

    edition: int
    key: str
    theirs: str | None
    ours: str | None


def minutes_of_edition_1(seen: Seen) -> bool:
    return seen.edition == 1 and seen.key == "step" and seen.theirs is None


def long_step(seen: Seen) -> bool:
    if seen.key != "step" or seen.theirs is None or seen.ours is None or "e+" not in seen.theirs:
        return False
    theirs, ours = (float(step.rstrip("smh")) for step in (seen.theirs, seen.ours))
    return abs(theirs / ours - 1) < 1e-5


def zero_days(seen: Seen) -> bool:
    return seen.key == "step" and seen.theirs in ("0D", "0M", "0Y") and seen.ours == "0"


# name -> (why, whether it is this one)
DIFFERENCES: dict[str, tuple[str, Callable[[Seen], bool]]] = {
    "step of edition 1 in minutes or seconds": (
        "ecCodes gives none where it is no whole number of hours; we give minutes or seconds, as it does in edition 2",
        minutes_of_edition_1,
    ),
    "long steps": ("ecCodes prints a step of more than six digits with an exponent; we print all digits", long_step),
    "step zero in days": (
        "ecCodes prints 0D for a time range of no length that is coded in days; we print 0",
        zero_days,
    ),
}


def ours(path):
    """One dictionary a message, from the example program of the crate."""
    built = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), os.environ.get("JUNCTURA_PROFILE", "ci"))
    program = os.environ.get("JUNCTURA_GRIB_KEYS", built / "examples/grib_keys")
    run = subprocess.run([program, str(path)], cwd=ROOT, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def get(handle, key):
    try:
        return eccodes.codes_get_string(handle, key)
    except eccodes.CodesInternalError:
        return None


def theirs(handle):
    """ecCodes' mars keys and description; a key whose value it cannot give counts as absent."""
    names, iterator = [], eccodes.codes_keys_iterator_new(handle, "mars")
    while eccodes.codes_keys_iterator_next(iterator):
        names.append(eccodes.codes_keys_iterator_get_name(iterator))
    eccodes.codes_keys_iterator_delete(iterator)
    mars = {name: get(handle, name) for name in names if not name.startswith("_")}
    return {k: v for k, v in mars.items() if v is not None}, {name: get(handle, name) for name in DESCRIPTIVE}


def differences(handle, mine):
    """(key, ecCodes' value, ours) where they differ."""
    mars, described = theirs(handle)
    own = {k: str(v) for k, v in mine["mars"].items() if not k.startswith("_")}
    out = [
        (key, mars.get(key), own.get(key)) for key in sorted(mars.keys() | own.keys()) if mars.get(key) != own.get(key)
    ]
    for key, value in described.items():
        got = mine["descriptive"].get(key)
        if got is not None and value is not None and str(got) != value:
            out.append((key, value, str(got)))
    return out


def explained(seen):
    return next((name for name, (_, is_it) in DIFFERENCES.items() if is_it(seen)), None)


def compare(named_handles, read):
    """All differences without an explanation, and how often each explanation was used."""
    unexplained, used = [], collections.Counter()
    for (what, handle), mine in zip(named_handles, read, strict=True):
        for key, a, b in differences(handle, mine):
            name = explained(Seen(eccodes.codes_get(handle, "edition"), key, a, b))
            used[name] += 1
            if name is None:
                unexplained.append(f"{what}: {key}: ecCodes {a!r}, ours {b!r}")
        eccodes.codes_release(handle)
    return unexplained, used


@pytest.mark.parametrize("path", [p for p in FILES if "corrupted" not in p.name], ids=lambda p: p.name)
def test_files(path):
    handles = []
    with path.open("rb") as file:
        while (handle := eccodes.codes_grib_new_from_file(file)) is not None:
            handles.append((f"message {len(handles) + 1}", handle))
    unexplained, _ = compare(handles, ours(path))
    assert not unexplained, "\n".join(unexplained[:40])


def test_counts():
    if not FILES:
        pytest.skip("no files at hand")
    counts = {p.name: len(ours(p)) for p in FILES}
    assert counts["nam.t00z.awp21100.tm00.grib2"] == 154
    assert counts["era5-levels-members.grib"] == 160


def test_corrupted_file():
    path = DATA / "era5-levels-corrupted.grib"
    if not path.exists():
        pytest.skip("no files at hand")
    first, second = ours(path)
    assert first["message"] == 1 and first["start"] == 0
    assert "message 1 at byte 0" in first["error"]
    assert second["message"] == 2 and second["start"] == 22068
    assert second["mars"]["class"] == "od"


@pytest.mark.timeout(900)
def test_made_messages(tmp_path):
    """ecCodes' samples and variations on them."""
    made = messages.all_messages()
    assert len(made.messages) > 4000
    path = tmp_path / "made.grib"
    path.write_bytes(b"".join(message for _, message in made.messages))
    handles = ((what, eccodes.codes_new_from_message(message)) for what, message in made.messages)
    unexplained, used = compare(handles, ours(path))
    print(f"{len(made.messages)} messages, {made.refused} refused by ecCodes; explained: {dict(used)}")
    assert not unexplained, f"{len(unexplained)} differences\n" + "\n".join(unexplained[:60])
    unused = [name for name in DIFFERENCES if name not in used]
    assert not unused, f"listed differences that no longer show: {unused}"


def test_several_fields_in_one_message(tmp_path):
    """One message, as ecCodes counts it without its support of several fields; keys of the first one."""
    path = tmp_path / "several.grib2"
    several = eccodes.codes_grib_multi_new()
    for level in (850, 500):
        handle = eccodes.codes_grib_new_from_samples("regular_ll_pl_grib2")
        eccodes.codes_set(handle, "level", level)
        eccodes.codes_grib_multi_append(handle, 4, several)
        eccodes.codes_release(handle)
    with path.open("wb") as file:
        eccodes.codes_grib_multi_write(several, file)
    eccodes.codes_grib_multi_support_off()  # making one has switched it on
    with path.open("rb") as file:
        assert eccodes.codes_count_in_file(file) == 1
        handle = eccodes.codes_grib_new_from_file(file)
    (message,) = ours(path)
    assert message["descriptive"]["fields"] == 2
    assert message["mars"]["levelist"] == 850
    assert differences(handle, message) == []
