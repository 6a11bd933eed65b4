"""The small forecast model: its transform, what it conserves, and what others get of it."""

import importlib
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import eccodes
import numpy as np
import pytest

import junctura
from junctura.errors import InvalidArgument
from junctura.products._regrid.grids import gaussian_latitudes

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/11_swell"
sys.path.insert(0, str(EXAMPLE))
harmonics = importlib.import_module("harmonics")
shallow_water = importlib.import_module("shallow_water")
jet = importlib.import_module("jet")
messages = importlib.import_module("messages")

RADIUS_M = shallow_water.RADIUS_M
PARAMS = ["vo", "d", "z", "u", "v", "gh"]


def transform(truncation):
    return harmonics.Harmonics(truncation, RADIUS_M)


def some_coefficients(of, seed, count=1):
    """As large at all scales; the mean of a curl or divergence is 0, and m = 0 is real."""
    chance = np.random.default_rng(seed)
    shape = (count, *of.total.shape)
    coefficients = (chance.normal(size=shape) + 1j * chance.normal(size=shape)) * of.kept
    coefficients[:, 0].imag = 0
    coefficients[:, 0, 0] = 0
    return coefficients


def forecast(truncation, hours, start=None, **options):
    of = transform(truncation)
    model = shallow_water.Model(of, jet.jet(of, jet.Bump()) if start is None else start(of), **options)
    first = model.budget()
    for _ in range(round(hours * 3600 / model.step_s)):
        model.step()
    return model, first


def run(*arguments, code=0):
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "swell.py"), *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done


def decoded(data):
    """The mars keys and the values of a message, and where they lie."""
    handle = eccodes.codes_new_from_message(data)
    try:
        keys = {}
        iterator = eccodes.codes_keys_iterator_new(handle, "mars")
        while eccodes.codes_keys_iterator_next(iterator):
            name = eccodes.codes_keys_iterator_get_name(iterator)
            keys[name] = eccodes.codes_get(handle, name)
        eccodes.codes_keys_iterator_delete(iterator)
        keys["param"] = eccodes.codes_get(handle, "shortName")
        where = {name: eccodes.codes_get(handle, name) for name in ("gridType", "packingType", "units")}
        return keys, eccodes.codes_get_values(handle), where
    finally:
        eccodes.codes_release(handle)


def in_file(path):
    with path.open("rb") as file:
        while (handle := eccodes.codes_grib_new_from_file(file)) is not None:
            yield eccodes.codes_get_message(handle)
            eccodes.codes_release(handle)


class TestHarmonics:
    @pytest.mark.parametrize("truncation", [1, 2, 7, 8, 21, 42, 106, 213])
    def test_there_and_back_is_round_off(self, truncation):
        of = transform(truncation)
        there = some_coefficients(of, truncation, 3)
        back = of.analyse(of.synthesise(there)) * of.kept
        np.testing.assert_allclose(back, there, atol=2e-12 * np.sqrt(truncation))
        vorticity, divergence = of.vorticity_and_divergence(*of.wind(there[0], there[1]))
        np.testing.assert_allclose(vorticity, there[0], atol=1e-11)
        np.testing.assert_allclose(divergence, there[1], atol=1e-11)

    @pytest.mark.parametrize(("truncation", "name"), [(21, 16), (42, 32), (63, 48), (85, 64), (106, 80), (170, 128)])
    def test_grid_is_the_gaussian_one_without_aliasing(self, truncation, name):
        of = transform(truncation)
        assert of.n == name and of.shape == (2 * name, 4 * name) and of.shape[1] > 3 * truncation
        np.testing.assert_allclose(np.degrees(np.arcsin(of.sine)), gaussian_latitudes(name), atol=1e-12)
        assert of.mean(np.ones(of.shape)) == pytest.approx(1, abs=1e-14)

    def test_functions_have_a_mean_square_of_1_and_are_orthogonal(self):
        of = transform(31)
        functions = harmonics.legendre(of.sine, 31)
        for m in (0, 1, 17, 31):
            some = functions[:, m, : 32 - m]
            np.testing.assert_allclose((some * of.weights[:, None]).T @ some, np.eye(32 - m), atol=1e-12)
        # The first few, written out; no Condon-Shortley sign.
        s, c = of.sine, np.sqrt(1 - of.sine**2)
        np.testing.assert_allclose(functions[:, 0, 2], np.sqrt(5) * (3 * s**2 - 1) / 2, atol=1e-13)
        np.testing.assert_allclose(functions[:, 1, 0], np.sqrt(3 / 2) * c, atol=1e-13)
        np.testing.assert_allclose(functions[:, 2, 1], np.sqrt(105 / 8) * s * c**2, atol=1e-13)

    def test_agrees_with_pyshtools(self):
        """`MakeGridPoint` and `MakeGridGLQ` of pyshtools, with its 4 pi normalisation.

        Its functions are real, of mean square 1 each with cosine and sine, so that C = sqrt(2) Re f and
        S = -sqrt(2) Im f for m > 0.
        """
        expand = pytest.importorskip("pyshtools").expand
        of = transform(63)
        ours = some_coefficients(of, 4)[0]
        degree = 2 * of.n - 1
        theirs = np.zeros((2, degree + 1, degree + 1))
        for m in range(64):
            scale = 1 if m == 0 else np.sqrt(2)
            theirs[0, m:64, m] = scale * ours[m, : 64 - m].real
            theirs[1, m:64, m] = -scale * ours[m, : 64 - m].imag
        nodes, _ = expand.SHGLQ(degree)
        np.testing.assert_allclose(nodes, of.sine, atol=1e-13)
        glq = expand.MakeGridGLQ(theirs, nodes, norm=1, csphase=1)
        # The same rows; its columns are one fewer, so the waves are carried over.
        waves = np.fft.rfft(glq[:, : 2 * degree + 1], norm="forward")[:, :64]
        values = np.fft.irfft(waves, of.shape[1], norm="forward")
        np.testing.assert_allclose(of.synthesise(ours), values, atol=1e-10)
        np.testing.assert_allclose(of.analyse(values) * of.kept, ours, atol=1e-11)
        for row, column in [(0, 0), (5, 17), (47, 100), (95, 191)]:
            latitude, longitude = np.degrees(np.arcsin(of.sine[row])), np.degrees(of.longitudes[column])
            there = expand.MakeGridPoint(theirs[:, :64, :64], latitude, longitude, norm=1, csphase=1)
            assert of.synthesise(ours)[row, column] == pytest.approx(float(np.squeeze(there)), abs=1e-10)

    def test_winds_are_the_derivatives(self):
        """Of the stream function a^2 s c^2 cos(2 longitude) / 1 day, differentiated by hand."""
        of = transform(21)
        s, c = of.sine[:, None], np.sqrt(1 - of.sine**2)[:, None]
        rate, east = 1 / 86400, of.longitudes[None, :]
        stream = RADIUS_M**2 * rate * s * c**2 * np.cos(2 * east)
        vorticity = of.laplacian * of.kept * of.analyse(stream)
        u, v = of.wind(vorticity, np.zeros_like(vorticity))
        np.testing.assert_allclose(u, -RADIUS_M * rate * (c**3 - 2 * s**2 * c) * np.cos(2 * east), atol=1e-10)
        np.testing.assert_allclose(v, -2 * RADIUS_M * rate * s * c * np.sin(2 * east), atol=1e-10)
        # It is an eigenfunction: n = 3.
        np.testing.assert_allclose(of.synthesise(vorticity), -12 * stream / RADIUS_M**2, atol=1e-16)

    def test_curl_has_no_divergence_and_gradient_no_curl(self):
        of = transform(42)
        one, nothing = some_coefficients(of, 5)[0], np.zeros(of.total.shape, complex)
        assert abs(of.vorticity_and_divergence(*of.wind(one, nothing))[1]).max() < 1e-11
        assert abs(of.vorticity_and_divergence(*of.wind(nothing, one))[0]).max() < 1e-11

    def test_order_of_grib(self):
        of = transform(2)
        values = np.arange(12.0)
        coefficients = of.from_grib(values)
        assert coefficients[0, :3].tolist() == [0 + 1j, 2 + 3j, 4 + 5j]
        assert coefficients[1, :2].tolist() == [6 + 7j, 8 + 9j] and coefficients[2, 0] == 10 + 11j
        assert of.to_grib(coefficients).tolist() == values.tolist()

    @pytest.mark.parametrize("size", [0, 10, 14])
    def test_other_numbers_of_values_are_refused(self, size):
        with pytest.raises(InvalidArgument, match="not those of T2"):
            transform(2).from_grib(np.zeros(size))

    @pytest.mark.parametrize("truncation", [-1, 0, 1001])
    def test_impossible_truncations_are_refused(self, truncation):
        with pytest.raises(InvalidArgument, match=f"truncation {truncation}"):
            transform(truncation)

    def test_other_truncations_keep_what_both_have(self):
        small, large = transform(10), transform(21)
        field = some_coefficients(large, 6, 2)
        cut = large.at_truncation(field, small)
        assert (cut * ~small.kept == 0).all() and (cut[:, 3, :8] == field[:, 3, :8]).all()
        assert (small.at_truncation(cut, large)[:, 3, :8] == field[:, 3, :8]).all()


class TestModel:
    def test_steady_flow_stays_steady(self):
        model, first = forecast(42, 5 * 24, jet.steady)
        depth, before = model.gridded().depth, jet.steady(model.harmonics).geopotential
        before = model.harmonics.synthesise(before) / shallow_water.GRAVITY_M_S2
        assert abs(depth - before).max() < 1e-7 * before.max()
        assert abs(model.gridded().v).max() < 1e-6
        assert model.budget().mass == first.mass

    def test_undisturbed_jet_stays_zonal(self):
        model, _ = forecast(85, 24, jet.jet)
        u, v, _ = model.gridded()
        start = model.harmonics.wind(*jet.jet(model.harmonics).spectra[:2])[0]
        # The sum of what is not zonal grows by the instability, from round-off.
        assert abs(model.now.spectra[0, 1:]).max() < 1e-6 * abs(model.now.spectra[0, 0]).max()
        assert abs(u - start).max() < 0.2 and abs(v).max() < 0.2

    def test_jet_is_in_balance(self):
        """The paper's numbers: 80 m/s at 45 degrees north, 10 km deep in the mean; and the balance equation itself."""
        of = transform(170)
        state = jet.jet(of)
        u, v = of.wind(state.vorticity, state.divergence)
        latitudes = np.arcsin(of.sine)
        row = abs(u[:, 0]).argmax()
        assert u.max() == pytest.approx(80, abs=0.3) and np.degrees(latitudes[row]) == pytest.approx(45, abs=0.5)
        assert abs(v).max() < 1e-9 and abs(u[latitudes < 0]).max() < 1e-3
        assert state.geopotential[0, 0].real / shallow_water.GRAVITY_M_S2 == pytest.approx(10_000, rel=1e-12)
        nothing = np.zeros_like(state.geopotential)
        gradient = of.wind(nothing, of.laplacian * state.geopotential)[1]
        pull = u * (2 * shallow_water.ROTATION_PER_S * of.sine[:, None] + u * np.tan(latitudes)[:, None] / RADIUS_M)
        np.testing.assert_allclose(gradient, -pull, atol=2e-5 * abs(pull).max())

    def test_mass_is_exact_and_the_rest_lost_slowly(self):
        model, first = forecast(63, 6 * 24)
        last = model.budget()
        assert last.mass == first.mass
        depth = model.harmonics.mean(model.gridded().depth)
        assert depth == pytest.approx(first.mass, rel=1e-13)
        assert -1e-4 < last.energy / first.energy - 1 < 0
        assert -0.03 < last.enstrophy / first.enstrophy - 1 < 0
        # The jet has rolled up.
        assert abs(model.gridded().v).max() > 40

    def test_finer_forecasts_are_better(self):
        """Vorticity at the scales that T42 has, after four days, against T85."""
        of, found = transform(42), {}
        for truncation in (42, 63, 85):
            model, _ = forecast(truncation, 4 * 24)
            found[truncation] = model.harmonics.at_truncation(model.now.vorticity, of)
        coarse, fine = (np.linalg.norm(found[truncation] - found[85]) for truncation in (42, 63))
        assert fine < 0.5 * coarse and coarse < np.linalg.norm(found[85])

    def test_time_stepping_is_of_second_order(self):
        states = [forecast(42, 6, step_s=step)[0].now.vorticity for step in (240, 120, 60)]
        changes = [np.linalg.norm(one - other) for one, other in itertools.pairwise(states)]
        assert 2.5 < changes[0] / changes[1] < 5
        assert changes[1] < 1e-3 * np.linalg.norm(states[-1])

    @pytest.mark.parametrize(
        ("truncation", "step"), [(21, 1800), (42, 1200), (63, 900), (85, 600), (106, 450), (170, 300), (213, 240)]
    )
    def test_default_steps(self, truncation, step):
        assert shallow_water.default_step_s(truncation) == step

    def test_too_long_steps_are_told(self):
        with pytest.raises(InvalidArgument, match="unstable at hour"), np.errstate(all="ignore"):
            forecast(42, 10 * 24, step_s=7200)[0].budget()

    @pytest.mark.parametrize(("truncation", "options"), [(9, {}), (42, {"step_s": 0}), (42, {"diffusion_h": 0})])
    def test_impossible_settings_are_refused(self, truncation, options):
        of = transform(truncation)
        with pytest.raises(InvalidArgument):
            shallow_water.Model(of, jet.jet(of), **options)

    def test_members_differ_a_little(self):
        assert jet.bump_of(0) == jet.Bump() and jet.bump_of(3) == jet.bump_of(3)
        bumps = {jet.bump_of(member) for member in range(50)}
        assert len(bumps) == 50
        assert all(40 < bump.height_m < 400 and abs(bump.latitude - np.pi / 4) < 0.2 for bump in bumps)
        with pytest.raises(InvalidArgument, match="member -1"):
            jet.bump_of(-1)


class TestMessages:
    @pytest.mark.parametrize(("truncation", "member"), [(15, 0), (42, 3)])
    def test_values_are_the_state_within_packing(self, truncation, member):
        model, _ = forecast(truncation, 6)
        made = list(messages.Encoder(model.harmonics, member, 20261120, "swel").messages(model, model.gridded()))
        assert [message.attributes["param"] for message in made] == PARAMS
        spectra = [model.harmonics.to_grib(spectrum) for spectrum in model.now.spectra]
        for message, values in zip(made, [*spectra, *(field.ravel() for field in model.gridded())], strict=True):
            keys, read, where = decoded(message.data)
            # ecCodes adds that the domain is the globe, which the schema says by saying nothing.
            assert keys.pop("domain") == "g"
            assert keys == message.attributes
            spectral = message.attributes["param"] in messages.SPECTRAL
            assert where["gridType"] == ("sh" if spectral else "regular_gg")
            if spectral:
                assert where["packingType"] == "spectral_complex"
                there, packed = (model.harmonics.synthesise(model.harmonics.from_grib(some)) for some in (values, read))
                assert abs(packed - there).max() < 1e-4 * np.ptp(there)
            else:
                assert abs(read - values).max() <= np.ptp(values) / 2**16

    def test_units(self):
        model, _ = forecast(15, 0)
        made = messages.Encoder(model.harmonics, 1, 20261120, "swel").messages(model, model.gridded())
        units = [decoded(message.data)[2]["units"] for message in made]
        assert units == ["s**-1", "s**-1", "m**2 s**-2", "m s**-1", "m s**-1", "gpm"]


class TestProgram:
    def test_fields_arrive_under_their_keys(self):
        with junctura.Pool(schema="mars") as pool:
            report = json.loads(
                run(
                    "--pool", pool.url, "--member", 4, "--truncation", 21, "--days", 0.5, "--every", "6h", "--json"
                ).stdout
            )
            assert report["fields"] == 18 and report["hours"] == 12 and report["mass_change"] == 0
            selector = "class=rd,expver=swel,stream=enfo,type=pf,date=20261120,time=0,levtype=pl,levelist=500,number=4"
            found = pool.list(selector)
            keys = {(str(entry.attributes["step"]), entry.attributes["param"]) for entry in found}
            assert len(found) == 18 and keys == {(step, param) for step in ("0", "6", "12") for param in PARAMS}
            wind = pool.demand(f"{selector},step=12,param=u")
            assert decoded(bytes(wind))[1].size == 32 * 64

    def test_a_restarted_forecast_is_the_unbroken_one(self, tmp_path):
        common = ["--truncation", 21, "--member", 2, "--every", "6h", "--checkpoint-every", "12h"]
        whole, parts = tmp_path / "whole.grib", tmp_path / "parts.grib"
        run(*common, "--days", 2, "--out", whole, "--checkpoint", tmp_path / "one")
        run(*common, "--days", 1, "--out", parts, "--checkpoint", tmp_path / "two")
        # Another member's checkpoints in the same store are not taken.
        run("--truncation", 21, "--member", 1, "--days", 1.5, "--every", "12h", "--checkpoint", tmp_path / "two")
        again = run(*common, "--days", 2, "--out", parts, "--checkpoint", tmp_path / "two", "--restart", "--json")
        assert json.loads(again.stdout)["steps"] == 48
        assert whole.read_bytes() == parts.read_bytes()
        ends = [junctura.Store(tmp_path / name).retrieve("number=2,step=48")[0] for name in ("one", "two")]
        assert ends[0].read() == ends[1].read() and len(ends[0].read()) == 2 * 3 * 22 * 23 * 16

    def test_members_differ_and_repeat(self, tmp_path):
        made = {}
        for name, member in (("a", 0), ("b", 1), ("c", 1)):
            run("--truncation", 21, "--days", 0.25, "--every", "6h", "--member", member, "--out", tmp_path / name)
            made[name] = [decoded(message)[1] for message in in_file(tmp_path / name)]
        assert all((one == other).all() for one, other in zip(made["b"], made["c"], strict=True))
        assert abs(made["a"][5] - made["b"][5]).max() > 5

    def test_says_how_it_goes(self):
        done = run("--truncation", 21, "--days", 1, "--every", "12h", "--start", "steady")
        assert done.stderr.count("m/s") == 3 and "hour 24 of 24" in done.stderr
        assert done.stdout.startswith("T21, F16, 24 hours in steps of 1800 s: 48 steps")
        assert "potential enstrophy" in done.stdout

    @pytest.mark.parametrize(
        ("arguments", "cause"),
        [
            (["--truncation", "9"], "10 to 341"),
            (["--truncation", "T63"], "10 to 341"),
            (["--member", "-1"], "expected one argument|0 \\(the control\\)"),
            (["--member", "255"], "0 \\(the control\\)"),
            (["--every", "0h"], "no time"),
            (["--every", "90m"], "no time"),
            (["--every", "2d", "--days", "1"], "longer than the forecast"),
            (["--days", "0"], "whole hours"),
            (["--days", "0.3"], "whole hours"),
            (["--step", "0"], "go into an hour"),
            (["--step", "700"], "go into an hour"),
            (["--diffusion", "0"], "more than 0"),
            (["--date", "20261131"], "no day"),
            (["--expver", "longer"], "four"),
            (["--restart"], "needs --checkpoint"),
            (["--step", "3600", "--truncation", "106", "--days", "3"], "unstable at hour"),
        ],
    )
    def test_bad_arguments_are_named(self, arguments, cause):
        done = run(*arguments, code=2)
        assert re.search(cause, done.stderr), done.stderr

    def test_nothing_to_go_on_from(self, tmp_path):
        common = ["--truncation", 21, "--days", 0.5, "--checkpoint-every", "6h", "--checkpoint", tmp_path / "store"]
        assert "none to go on from" in run(*common, "--restart", code=2).stderr
        run(*common)
        other = run(*common, "--diffusion", 2, "--restart", code=2).stderr
        assert "diffusion 1 h, not with" in other

    def test_nothing_is_left_to_do(self, tmp_path):
        common = ["--truncation", 21, "--every", "6h", "--checkpoint-every", "6h", "--checkpoint", tmp_path / "store"]
        run(*common, "--days", 0.5)
        assert json.loads(run(*common, "--days", 0.5, "--restart", "--json").stdout)["steps"] == 0
        assert "behind hour 6" in run(*common, "--days", 0.25, "--restart", code=2).stderr

    def test_no_folder(self, tmp_path):
        assert "No such file" in run("--out", tmp_path / "not/there", "--truncation", 21, code=1).stderr

    def test_no_pool(self):
        assert "nobody-here" in run("--pool", "unix:nobody-here", "--truncation", 21, code=1).stderr


def test_fine_grid_has_the_exact_values():
    figures = importlib.import_module("figures")
    of = transform(21)
    latitudes, east = np.arcsin(of.sine)[:, None], of.longitudes[None, :]
    field = of.analyse(np.sin(latitudes) + np.cos(latitudes) ** 3 * np.cos(3 * east)) * of.kept
    fine = figures.on_fine_grid(of, field)
    latitudes = np.radians(figures.LATITUDES)[:, None]
    east = np.arange(fine.shape[1])[None, :] * (2 * np.pi / fine.shape[1])
    np.testing.assert_allclose(fine, np.sin(latitudes) + np.cos(latitudes) ** 3 * np.cos(3 * east), atol=1e-12)


def test_figure(tmp_path):
    command = [sys.executable, str(EXAMPLE / "figures.py"), "--truncation", "21", "--out", str(tmp_path / "new")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "new/jet.png").stat().st_size > 100_000
