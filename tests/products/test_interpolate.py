"""Fields on other grids: bit for bit those of MIR, and what becomes of missing values, areas, points and the cache."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grib_messages
import numpy as np
import pytest

from junctura.errors import InvalidArgument, Io, Unsupported
from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import decode
from junctura.products._regrid import weight_matrices
from junctura.products._regrid.grids import Grid, grid
from junctura.products._regrid.interpolate import prepare, quantity_of, to_grid
from junctura.products._regrid.weight_matrices import folder, weights

pytest.importorskip("scipy")
if importlib.util.find_spec("mir") is None:
    pytest.skip("MIR is not installed", allow_module_level=True)

_MIR_NAMES = {
    "linear": "linear",
    "bilinear": "bilinear",
    "nearest": "nearest-neighbour",
    "conservative": "grid-box-average",
}
_METHODS = list(_MIR_NAMES)


def _on(name: str) -> Grid:
    named = grid(name)
    assert isinstance(named, Grid)
    return named


def _values(shape: tuple[int, ...], missing: float = 0, seed: int = 2) -> Any:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape)
    values[rng.random(shape) < missing] = np.nan
    return values


def _same(ours: Any, theirs: Any) -> bool:
    return np.array_equal(ours.ravel(), np.where(theirs == 9999, np.nan, theirs), equal_nan=True)


_EUROPE = {"grid": "3/3", "area": "72/-24/36/45"}
_TARGETS = {
    "3/3": {"grid": "3/3"},
    "3/3@72/-24/36/45": _EUROPE,
    **{name: {"grid": name} for name in ("F20", "N32", "O16")},
}


@pytest.mark.parametrize("name", _TARGETS)
def test_results_have_the_bits_of_mir(by_mir: Callable[..., list[Any]], name: str) -> None:
    jobs, ours = [], []
    fields = {
        "t": grib_messages.gaussian(16, _values((32, 64)), shortName="t"),
        "vo": grib_messages.gaussian(16, _values((32, 64)), shortName="vo"),
        "u": grib_messages.reduced(_values((6114,)), shortName="u"),
        "mwd": grib_messages.latlon(19, 36, (90, 0, -90, 350), 180 + 50 * _values((19, 36)), shortName="mwd"),
    }
    pairs = [(param, method) for param in ("t", "vo") for method in _METHODS]
    pairs += [("u", "linear"), ("u", "conservative"), ("mwd", "linear")]
    for param, method in pairs:
        field = decode(fields[param])
        assert field.param == param
        if method == "conservative" and "@" in name:
            # MIR cuts boxes at the edges of the area.
            continue
        jobs.append(([fields[param]], {**_TARGETS[name], "interpolation": _MIR_NAMES[method]}))
        ours.append((param, method, to_grid(field, _on(name), method)))  # type: ignore[arg-type]
    for (param, method, made), theirs in zip(ours, by_mir(*jobs), strict=True):
        if param == "mwd":
            around = np.mod(made.values.ravel() - theirs + 180, 360) - 180
            assert np.allclose(around, 0, atol=1e-9), method
        else:
            assert _same(made.values, theirs), (param, method)


@pytest.mark.parametrize("missing", [0.05, 0.5, 1.0])
def test_missing_values_are_treated_as_mir_does(by_mir: Callable[..., list[Any]], missing: float) -> None:
    message = grib_messages.gaussian(16, _values((32, 64), missing), shortName="t")
    field = decode(message)
    jobs = [([message], {"grid": "3/3", "interpolation": _MIR_NAMES[method]}) for method in _METHODS]
    for method, theirs in zip(_METHODS, by_mir(*jobs), strict=True):
        made = to_grid(field, _on("3/3"), method).values  # type: ignore[arg-type]
        assert np.isnan(made).any() and _same(made, theirs), method


def test_points_are_those_of_mir(by_mir: Callable[..., list[Any]]) -> None:
    places = [(50.1, 8.7), (-48.2, 16.4), (90.0, 20.0), (-89.5, 300.0), (0.0, 0.0)]
    message = grib_messages.gaussian(48, _values((96, 192)), shortName="t")
    at = {"latitudes": [place[0] for place in places], "longitudes": [place[1] for place in places]}
    on = _on(f"points@{','.join(f'{lat}/{lon}' for lat, lon in places)}")
    methods = ["linear", "bilinear", "nearest"]
    made = by_mir(*[([message], {**at, "interpolation": _MIR_NAMES[method]}) for method in methods])
    for method, theirs in zip(methods, made, strict=True):
        assert _same(to_grid(decode(message), on, method).values, theirs), method  # type: ignore[arg-type]


def test_a_place_may_be_named_twice() -> None:
    field = Field(_values((96, 192)), _on("F48"), {"param": "t"})
    twice = to_grid(field, _on("points@50.1/8.7,10/20,50.1/8.7,50.1/-351.3")).values
    assert twice[0] == twice[2] == twice[3] != twice[1]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("F16", "3/3"),
        ("N32", "F20"),
        ("O16", "N32"),
        ("4/4", "O20"),
        ("O16", "4/4@72/-24/36/44"),
        ("R4:20,24,28,32,32,28,24,20", "R2:8,12,12,8"),
        ("1/1", "0.3333333333/0.3333333333@50/5/40/10.5"),
    ],
)
def test_what_is_the_same_everywhere_stays_so(source: str, target: str) -> None:
    field = Field(np.full(_on(source).shape, 273.15), _on(source), {"param": "t"}, "K")
    made = to_grid(field, _on(target))
    assert made.on == _on(target) and made.units == "K" and made.attributes == {"param": "t"}
    assert np.allclose(made.values, 273.15, rtol=1e-14, atol=0)


def test_a_slope_stays_a_slope() -> None:
    source, target = _on("4/4"), _on("2/2")
    field = Field(np.repeat(source.latitudes[:, None], source.shape[1], axis=1), source)
    made = to_grid(field, target, "bilinear").values
    # Sides of MIR's quadrilaterals are straight lines.
    assert np.allclose(made, target.latitudes[:, None], rtol=0, atol=0.05)
    assert np.allclose(made[::2, ::2], target.latitudes[::2, None], rtol=0, atol=1e-9)


def test_conservative_means_keep_the_mean() -> None:
    source, target = _on("2/2"), _on("5/5")
    field = Field(_values(source.shape) + 5, source)
    made = to_grid(field, target, "conservative").values

    def mean(on: Grid, values: Any) -> float:
        half = (on.latitudes[0] - on.latitudes[1]) / 2
        edges = np.sin(np.radians(np.clip([on.latitudes + half, on.latitudes - half], -90, 90)))
        return float(np.average(values.mean(axis=1), weights=edges[0] - edges[1]))

    assert mean(target, made) == pytest.approx(mean(source, field.values), rel=1e-12)


def test_an_area_has_the_bits_of_the_whole() -> None:
    field = Field(_values((32, 64)), _on("F16"), {"param": "t"})
    whole, area = _on("3/3"), _on("3/3@71/-25/33/45")
    made = to_grid(field, area).values
    assert np.array_equal(made, to_grid(field, whole).values[np.ix_(*whole.rows_and_columns(area))])


def test_the_same_grid_is_no_work_and_an_area_of_it_is_cut() -> None:
    whole, area = _on("2/2"), _on("2/2@72/-24/34/44")
    field = Field(_values(whole.shape), whole)
    assert to_grid(field, whole) is field
    cut = to_grid(field, area)
    assert np.array_equal(cut.values, field.values[np.ix_(*whole.rows_and_columns(area))]) and cut.on == area


def test_outside_of_the_area_of_a_field_it_is_missing() -> None:
    whole, area = _on("3/3"), _on("3/3@72/-24/33/45")
    everywhere = Field(_values(whole.shape), whole)
    field = to_grid(everywhere, area)
    back = to_grid(field, whole).values
    rows, columns = whole.rows_and_columns(area)
    assert np.array_equal(back[np.ix_(rows, columns)], field.values)
    assert np.isnan(back).sum() == whole.size - area.size
    within, target = _on("F16@60/-10/40/30"), _on("F16")
    assert np.array_equal(to_grid(field, within).values, to_grid(everywhere, within).values)
    assert np.isnan(to_grid(field, target).values[0]).all()


def test_spectral_fields_are_summed() -> None:
    spectral = grid("T21")
    values = np.zeros(spectral.size)
    values[0] = 5
    made = to_grid(Field(values, spectral), _on("3/3"))
    assert np.allclose(made.values, 5, rtol=1e-14, atol=0)


def test_vectors_have_weights_of_their_own_at_the_poles_only() -> None:
    source, target = _on("F16"), _on("3/3")
    scalar, vector = (weights(source, target, "linear", quantity) for quantity in ("scalar", "vector"))
    csr_array = importlib.import_module("scipy.sparse").csr_array
    one, other = (csr_array((of.data, of.indices, of.indptr), shape=of.shape) for of in (scalar, vector))
    differ = np.unique((one != other).nonzero()[0] // target.shape[1])
    assert differ.tolist() == [0, target.shape[0] - 1]


@pytest.mark.parametrize("name", ["points@1/2", "points@1/2,3/4"])
def test_between_points_there_is_nothing(name: str) -> None:
    on = _on(name)
    with pytest.raises(Unsupported, match="points"):
        to_grid(Field(np.zeros(on.shape), on), _on("2/2"))


def test_what_cannot_be_is_refused() -> None:
    field = Field(np.zeros((96, 192)), _on("F48"))
    with pytest.raises(InvalidArgument, match="'cubic' is not one of linear"):
        to_grid(field, _on("2/2"), "cubic")  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="conservative weights F48 -> points@1/2"):
        to_grid(field, _on("points@1/2"), "conservative")
    with pytest.raises(InvalidArgument, match="spherical harmonics"):
        prepare("F48", "T63")
    with pytest.raises(InvalidArgument):
        prepare("F48", "nonsense")


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, on disk and in memory."""
    monkeypatch.setenv("JUNCTURA_CACHE", str(tmp_path))
    monkeypatch.setattr(weight_matrices, "_kept", type(weight_matrices._kept)(1 << 20))
    return tmp_path / "weights"


def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_matrices, "_kept", type(weight_matrices._kept)(1 << 20))


def test_weights_are_made_once(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for area in ("", "@72/-25/34/45"):
        prepare("F8", f"10/10{area}")
    prepare("F8@40/0/0/40", "10/10")
    prepare("T21", "10/10")
    prepare("10/10", "10/10@40/0/0/40")
    assert len(list(empty.iterdir())) == 1
    _forgotten(monkeypatch)
    monkeypatch.setattr(weight_matrices, "_run", lambda *_: pytest.fail("made again"))
    field = Field(_values((16, 32)), _on("F8"), {"param": "t"})
    assert not np.isnan(to_grid(field, _on("10/10")).values).any()


def test_winds_are_prepared_by_their_param(empty: Path) -> None:
    prepare("F8", "10/10", quantity=quantity_of("u"))
    prepare("F8", "10/10", quantity=quantity_of("165.128"))
    assert len(list(empty.iterdir())) == 1
    prepare("F8", "10/10", quantity=quantity_of("t"))
    prepare("F8", "10/10", "conservative", quantity=quantity_of("u"))
    prepare("F8", "10/10", "conservative", quantity=quantity_of("t"))
    assert len(list(empty.iterdir())) == 3


def _cut(whole: bytes) -> bytes:
    return whole[: len(whole) // 2]


def _flipped(whole: bytes) -> bytes:
    return whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:]


@pytest.mark.parametrize("damage", [_cut, _flipped, lambda _: b"", lambda _: b"nonsense" * 100])
def test_a_damaged_file_is_made_again(
    empty: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[bytes], bytes]
) -> None:
    field = Field(_values((16, 32)), _on("F8"), {"param": "t"})
    before = to_grid(field, _on("10/10")).values
    (file,) = empty.iterdir()
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    _forgotten(monkeypatch)
    assert np.array_equal(to_grid(field, _on("10/10")).values, before)
    with np.load(file) as parts:
        assert set(parts) == {"starts", "columns", "weights", "shape"}


def test_weights_of_another_pair_are_not_taken(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare("F8", "10/10")
    (first,) = empty.iterdir()
    prepare("F8", "30/30")
    (second,) = set(empty.iterdir()) - {first}
    second.write_bytes(first.read_bytes())
    _forgotten(monkeypatch)
    assert weights(_on("F8"), _on("30/30")).shape == (84, 512)


def _matrix(**changed: Any) -> dict[str, Any]:
    good = {"starts": [0, 1, 3], "columns": [0, 1, 2], "weights": [1.0, 0.25, 0.75]}
    return {name: np.array(values) for name, values in {**good, **changed}.items()}


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"starts": [0, 3]}, "do not fit"),
        ({"starts": [1, 1, 3]}, "do not fit"),
        ({"columns": [0, 1]}, "do not fit"),
        ({"starts": [0, 0, 3]}, "get nothing"),
        ({"starts": [0, 4, 3]}, "get nothing"),
        ({"columns": [0, 1, 3]}, "not there"),
        ({"columns": [0, -1, 2]}, "not there"),
        ({"weights": [1.0, 0.25, 0.5]}, "sum up"),
        ({"weights": [1.0, np.nan, 0.5]}, "sum up"),
    ],
)
def test_no_matrix_is_believed(changed: dict[str, Any], cause: str) -> None:
    weight_matrices._look_at(**_argument(_matrix()), shape=(2, 3))
    with pytest.raises(ValueError, match=cause):
        weight_matrices._look_at(**_argument(_matrix(**changed)), shape=(2, 3))


def _argument(parts: dict[str, Any]) -> dict[str, Any]:
    return {"starts": parts["starts"], "columns": parts["columns"], "values": parts["weights"]}


def test_who_makes_a_matrix_is_alone(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = weight_matrices._run

    def locked(task: Any, made: Path) -> None:
        (lock,) = empty.glob(".*.lock")
        with lock.open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        run(task, made)

    monkeypatch.setattr(weight_matrices, "_run", locked)
    prepare("F8", "10/10")
    assert [one.suffix for one in empty.iterdir()] == [".npz"]


def test_who_has_waited_takes_what_was_made_meanwhile(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare("F8", "10/10")
    (file,) = empty.iterdir()
    file.rename(empty / "aside")
    alone = weight_matrices._alone

    @contextlib.contextmanager
    def waited(lock: Path) -> Iterator[None]:
        (empty / "aside").rename(file)
        with alone(lock):
            yield

    _forgotten(monkeypatch)
    monkeypatch.setattr(weight_matrices, "_alone", waited)
    monkeypatch.setattr(weight_matrices, "_run", lambda *_: pytest.fail("made again"))
    prepare("F8", "10/10")
    assert list(empty.iterdir()) == [file]


def test_a_lock_whose_file_has_gone_is_none(tmp_path: Path) -> None:
    """Whoever waits for the lock of a file that is removed must not be alone with nothing, beside a third one."""
    lock = tmp_path / "lock"
    with lock.open("w") as gone:
        lock.unlink()
        assert not weight_matrices._is_named(gone.fileno(), lock)
        with lock.open("w") as now:
            assert not weight_matrices._is_named(gone.fileno(), lock) and weight_matrices._is_named(now.fileno(), lock)
    with weight_matrices._alone(lock):
        assert lock.exists()
    assert not lock.exists()


def test_old_leftovers_go(empty: Path) -> None:
    for name, age in (("old", 2), ("young", 0)):
        (empty / f".made-{name}").mkdir(parents=True)
        (empty / f".made-{name}/weights.npz").touch()
        at = time.time() - age * 86_400
        os.utime(empty / f".made-{name}", (at, at))
    prepare("F8", "10/10")
    assert sorted(one.suffix for one in empty.iterdir()) == ["", ".npz"] and (empty / ".made-young").is_dir()


def test_a_child_that_does_not_end_is_ended(empty: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mir_program.py").write_text("import signal; signal.pause()")
    monkeypatch.setattr(weight_matrices, "__file__", str(tmp_path / "weight_matrices.py"))
    monkeypatch.setattr(weight_matrices, "_MIR_SECONDS_MAX", 0.5)
    with pytest.raises(Unsupported, match=r"linear weights F8 -> 10/10: MIR has not ended after 0.5 s"):
        prepare("F8", "10/10")
    assert list(empty.iterdir()) == []


# In a process of its own, as MIR requires.
MATRICES = """
import sys
from pathlib import Path

import numpy as np
from junctura.products._regrid.mir_program import read_matrix

assert "scipy" not in sys.modules
path = Path(sys.argv[1])
from mir.weight_matrix import WeightMatrix
from scipy.sparse import csr_array, random_array

some = csr_array(random_array((70, 90), density=0.1, rng=np.random.default_rng(1)))
for matrix in (some, csr_array(([0.25, 0.75], [1, 3], [0, 2, 2, 2]), shape=(3, 4)), csr_array((2, 5))):
    WeightMatrix.from_csr(matrix).to_mat(path)
    read, theirs = read_matrix(path), WeightMatrix.from_mat(path).to_csr()
    for name, array in (("starts", theirs.indptr), ("columns", theirs.indices), ("weights", theirs.data)):
        assert np.array_equal(read[name], array), name
    assert tuple(read["shape"]) == matrix.shape
"""


def test_a_matrix_is_read_as_mir_reads_it(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", MATRICES, tmp_path / "weights.mat"], check=True)


# Its import takes longer than to make most matrices.
WITHOUT_SCIPY = """
import sys

from junctura.products._regrid.interpolate import prepare

prepare("F8", "10/10")
assert "scipy" not in sys.modules
"""


def test_weights_of_mir_are_made_without_scipy(tmp_path: Path) -> None:
    environment = {**os.environ, "JUNCTURA_CACHE": str(tmp_path)}
    subprocess.run([sys.executable, "-c", WITHOUT_SCIPY], check=True, env=environment)
    assert list(tmp_path.rglob("*.npz"))


def test_what_mir_cannot_do_is_said_and_leaves_nothing(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(weight_matrices._METHODS, "linear", "nonsense")
    with pytest.raises(Unsupported, match=r"linear weights F8 -> 10/10: MIR ended with .*nonsense"):
        prepare("F8", "10/10")
    assert list(empty.iterdir()) == []


def test_a_child_that_dies_is_said(empty: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import os; os.abort()")
    monkeypatch.setattr(weight_matrices, "__file__", str(tmp_path / "weight_matrices.py"))
    program.rename(tmp_path / "mir_program.py")
    with pytest.raises(Unsupported, match="MIR ended with -6"):
        prepare("F8", "10/10")
    assert list(empty.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("JUNCTURA_CACHE", str(tmp_path / "file"))
    with pytest.raises(Io, match="JUNCTURA_CACHE"):
        prepare("F8", "15/15")


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUNCTURA_CACHE", "/one")
    monkeypatch.setenv("XDG_CACHE_HOME", "/other")
    assert folder() == Path("/one/weights")
    monkeypatch.delenv("JUNCTURA_CACHE")
    assert folder() == Path("/other/junctura/weights")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert folder() == Path.home() / ".cache/junctura/weights"


def test_mir_is_not_loaded_here_and_prints_nothing(empty: Path) -> None:
    assert empty.parent == Path(os.environ["JUNCTURA_CACHE"])
    program = (
        "import sys; from junctura.products._regrid.interpolate import prepare; prepare('F8', '10/10');"
        "assert not {'mir', 'eckit', 'mirlib'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
