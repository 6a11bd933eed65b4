"""The small forecast as ranks of MPI: what it is alone, but for rounding, in pieces; and ranks that fail."""

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import eccodes
import numpy as np
import pytest

import junctura
from junctura.errors import Conflict, InvalidArgument

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/11_swell"
sys.path.insert(0, str(EXAMPLE))
bands = importlib.import_module("bands")
harmonics = importlib.import_module("harmonics")
shallow_water = importlib.import_module("shallow_water")
jet = importlib.import_module("jet")
messages = importlib.import_module("messages")

# Open MPI refuses root and more ranks than processors unless it is told to.
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMP_NUM_THREADS": "1",
}
ABOUT = "class=rd,expver=swel,stream=enfo,type=cf,date=20261120,time=0,levtype=pl,levelist=500"


class Threads:
    """Communicators of threads, one for each rank: as much of mpi4py's as is asked of them."""

    def __init__(self, size):
        self.size, self.slots, self.barrier = size, [None] * size, threading.Barrier(size)

    def each(self, work):
        """What each rank makes of its communicator."""
        with ThreadPoolExecutor(self.size) as pool:
            return list(pool.map(lambda rank: work(OneThread(self, rank)), range(self.size)))


class OneThread:
    def __init__(self, all_of_them, rank):
        self.all, self.rank = all_of_them, rank

    def Get_rank(self):  # noqa: N802 - a name of mpi4py
        return self.rank

    def Get_size(self):  # noqa: N802
        return self.all.size

    def allgather(self, value):
        self.all.slots[self.rank] = value
        self.all.barrier.wait()
        gathered = list(self.all.slots)
        self.all.barrier.wait()
        return gathered

    def Allreduce(self, parts, whole):  # noqa: N802
        whole[:] = sum(self.allgather(parts))


def start(*arguments, ranks, env=None):
    beside = Path(sys.executable).with_name("mpirun")
    program = [sys.executable, str(EXAMPLE / "swell.py"), "--ranks", *map(str, arguments)]
    command = [str(beside) if beside.exists() else "mpirun", "-n", str(ranks), *program]
    given = {**os.environ, **MPI, **(env or {})}
    return subprocess.Popen(command, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(*arguments, ranks, code=0, env=None):
    """What it printed; with no ranks, alone."""
    if ranks:
        program = start(*arguments, ranks=ranks, env=env)
        out, err = program.communicate()
        assert program.returncode == code, err
        return out, err
    command = [sys.executable, str(EXAMPLE / "swell.py"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})})
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def forecast(truncation, hours):
    of = harmonics.Harmonics(truncation, shallow_water.RADIUS_M)
    model = shallow_water.Model(of, jet.jet(of, jet.bump_of(0)))
    for _ in range(hours * 3600 // model.step_s):
        model.step()
    return model


def checkpoint(path, step):
    """Both time levels, [level, field, m, n - m, part]."""
    with junctura.Store(path) as store:
        return store.retrieve(f"number=0,step={step}")[0].array()


def assert_same_but_for_rounding(spectra, others):
    """By the largest coefficient of each field: divergence is small where vorticity is not, and has its round-off."""
    assert spectra.shape == others.shape
    for field in (0, 2):
        assert abs(spectra[:, field] - others[:, field]).max() < 1e-12 * abs(others[:, field]).max()
    assert abs(spectra - others)[:, 1].max() < 1e-10 * abs(others[:, 1]).max()


class TestBands:
    @pytest.mark.parametrize(("n", "size"), [(1, 1), (16, 1), (16, 3), (16, 16), (5, 4)])
    def test_all_rows_are_somebodys(self, n, size):
        ranks = Threads(size).each(bands.MpiRanks)
        layout = ranks[0].layout(n)
        assert layout.ranks == size and {str(one.layout(n)) for one in ranks} == {str(layout)}
        rows = [np.concatenate([np.arange(2 * n)[some] for some in one.rows(n)]) for one in ranks]
        assert sorted(np.concatenate(rows)) == list(range(2 * n))
        for one, mine in zip(ranks, rows, strict=True):
            # The same in the south as in the north, and as the layout says it.
            assert (mine[::-1] == 2 * n - 1 - mine).all() and len(mine) in (2 * (n // size), 2 * (n // size) + 2)
            assert layout.extents(one.rank) == [(len(mine) // 2, 4 * n)] * 2

    def test_more_ranks_than_rows_are_refused(self):
        with pytest.raises(InvalidArgument, match=r"17 ranks.*F16"):
            bands.MpiRanks(OneThread(Threads(17), 0)).rows(16)

    def test_alone_one_has_all(self):
        alone = bands.Ranks()
        assert alone.is_first and alone.rows(8) == [slice(0, 8), slice(8, 16)]
        parts = np.arange(3.0)
        assert alone.total(parts) is parts and alone.smallest(2.5) == 2.5
        alone.check_same(parts)

    @pytest.mark.parametrize("size", [2, 5, 16])
    def test_a_split_transform_is_the_whole_one(self, size):
        whole = harmonics.Harmonics(21, shallow_water.RADIUS_M)
        state = jet.jet(whole, jet.bump_of(1)).spectra

        def work(comm):
            of = harmonics.Harmonics(21, shallow_water.RADIUS_M, bands.MpiRanks(comm))
            values = of.synthesise(state)
            began = [jet.jet(of, jet.bump_of(1)).spectra, jet.steady(of).spectra]
            return of.rows, values, of.analyse(values) * of.kept, of.mean(values[2]), began

        values = whole.synthesise(state)
        made = Threads(size).each(work)
        for rows, mine, back, mean, began in made:
            np.testing.assert_allclose(mine, values[:, rows], rtol=1e-12, atol=1e-18)
            for one, other in zip((back, *began), (state, state, jet.steady(whole).spectra), strict=True):
                assert_same_but_for_rounding(one[None, [0, 2, 2]], other[None, [0, 2, 2]])
            assert mean == pytest.approx(whole.mean(values[2]), rel=1e-13)
            # All have the same bits.
            assert back.tobytes() == made[0][2].tobytes() and mean == made[0][3]

    def test_ranks_that_differ_in_a_bit_are_told(self):
        def work(comm):
            ranks, state = bands.MpiRanks(comm), np.ones(5)
            ranks.check_same(state)
            state[3] = np.nextafter(1, 2) if comm.rank == 1 else 1
            with pytest.raises(Conflict, match="differ in some bits"):
                ranks.check_same(state)
            return ranks.smallest(3 - comm.rank)

        assert Threads(3).each(work) == [1, 1, 1]

    def test_too_long_steps_are_told_by_all(self):
        def work(comm):
            of = harmonics.Harmonics(21, shallow_water.RADIUS_M, bands.MpiRanks(comm))
            state = jet.jet(of).spectra
            # A hole in the north that only one of them has.
            hole = jet.Bump(height_m=-2e5, latitude=1.2)
            field = hole.on(np.arcsin(of.sine[of.rows]), of.longitudes)
            state[2] += of.analyse(field * shallow_water.GRAVITY_M_S2) * of.kept
            with pytest.raises(InvalidArgument, match="unstable at hour 0"):
                shallow_water.Model(of, shallow_water.State(state)).gridded()

        Threads(4).each(work)


class TestProgram:
    @pytest.mark.parametrize("ranks", [2, 3])
    def test_ranks_make_what_one_makes(self, ranks, tmp_path):
        model = forecast(42, 12)
        with junctura.Pool(schema="mars") as pool:
            common = ["--truncation", 42, "--days", 0.5, "--every", "6h", "--checkpoint-every", "12h", "--json"]
            out, err = run(*common, "--pool", pool.url, "--checkpoint", tmp_path / "store", ranks=ranks)
            # One of them speaks.
            assert err.count("m/s") == 3 and "hour 12 of 12" in err
            report = json.loads(out)
            assert report["ranks"] == ranks and report["fields"] == 18 and report["mass_change"] == 0
            keys = {(str(one.attributes["step"]), one.attributes["param"]) for one in pool.list(ABOUT)}
            assert keys == {(step, param) for step in ("0", "6", "12") for param in ("vo", "d", "z", "u", "v", "gh")}
            fields = [pool.demand_array(f"{ABOUT},step=12,param={param}", timeout=0) for param in ("u", "v", "gh")]
            assert bytes(pool.demand(f"{ABOUT},step=12,param=vo"))[:4] == b"GRIB"
        for field, expected in zip(fields, model.gridded(), strict=True):
            assert field.shape == model.harmonics.shape
            np.testing.assert_allclose(field, expected, rtol=0, atol=1e-10 * abs(expected).max())
        levels = np.stack([model.before.spectra, model.now.spectra])
        there = checkpoint(tmp_path / "store", 12).view(complex)[..., 0]
        assert_same_but_for_rounding(there, levels)

    def test_another_number_of_ranks_goes_on(self, tmp_path):
        model = forecast(21, 24)
        with junctura.Pool(schema="mars") as pool:
            store = ["--truncation", 21, "--checkpoint", tmp_path / "store"]
            common = [*store, "--checkpoint-every", "12h", "--every", "6h", "--pool", pool.url, "--json"]
            run(*common, "--days", 0.75, ranks=3)
            version = pool.list(f"{ABOUT},step=18,param=gh")[0].version
            # Step 18 goes out again, and the pool keeps the one that it has.
            out, _ = run(*common, "--days", 1, "--restart", ranks=2)
            assert json.loads(out)["steps"] == 24
            assert pool.list(f"{ABOUT},step=18,param=gh")[0].version == version
            assert len(pool.list(ABOUT)) == 5 * 6
            depth = pool.demand_array(f"{ABOUT},step=24,param=gh", timeout=0)
        np.testing.assert_allclose(depth, model.gridded().depth, rtol=1e-11)
        # And one that is alone goes on from what ranks have done.
        run(*store, "--checkpoint-every", "6h", "--days", 1.25, "--restart", ranks=0)
        for _ in range(6 * 3600 // model.step_s):
            model.step()
        there = checkpoint(tmp_path / "store", 30).view(complex)[..., 0]
        assert_same_but_for_rounding(there, np.stack([model.before.spectra, model.now.spectra]))

    def test_a_plan_is_their_io_server(self, tmp_path):
        plan = tmp_path / "ranks.yaml"
        plan.write_text((EXAMPLE / "ranks.yaml").read_text())
        with junctura.Pool(schema="mars") as pool:
            command = [sys.executable, "-m", "junctura.products", plan, "--pool", pool.url, "--out", tmp_path / "out"]
            server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            run("--days", 0.125, "--pool", pool.url, ranks=2)
            told, _ = server.communicate()
            assert server.returncode == 0, told
        with junctura.Store(tmp_path / "store") as store:
            kept = {telling(read): read for read in (decoded(one.read()) for one in store.retrieve(ABOUT))}
        expected = {telling(read): read for hour in (0, 3) for read in made_alone(forecast(63, hour))}
        assert set(kept) == set(expected) and len(kept) == 12
        for name, (keys, values) in kept.items():
            wanted, exact = expected[name]
            assert keys == wanted
            # Both are packed.
            assert abs(values - exact).max() <= 2 * np.ptp(exact) / 2**16
        assert sorted(path.name for path in (tmp_path / "out").glob("*.nc")) == ["depth_000.nc", "depth_003.nc"]

    def test_a_rank_that_fails_ends_all(self):
        with junctura.Pool(schema="mars") as pool:
            one, other = (["--truncation", 21, "--days", 1, "--pool", url] for url in (pool.url, "unix:nobody-here"))
            second = [":", "-n", 1, sys.executable, EXAMPLE / "swell.py", "--ranks", *other]
            _, err = run(*one, *second, ranks=1, code=1)
            assert "nobody-here" in err and "hour 24" not in err

    def test_a_rank_that_is_killed_ends_all(self):
        with junctura.Pool(schema="mars") as pool, pool.subscribe("", kinds=["joined", "left"]) as events:
            program = start("--truncation", 42, "--days", 3000, "--every", "1d", "--pool", pool.url, ranks=3)
            # All have handed over their pieces of the first day, and are at the next.
            pool.demand_array(f"{ABOUT},step=24,param=gh", timeout=60)
            clients = [one for one in pool.stat()["clients"] if one["name"] == "swell-0"]
            assert len(clients) == 3
            there = {one["client"] for one in clients}
            os.kill(clients[1]["pid"], signal.SIGKILL)
            while there:
                event = events.next(timeout=60)
                if event.kind == "left":
                    there.discard(event.client.client)
            _, err = program.communicate()
            assert program.returncode != 0 and "hour 0 of 72000" in err

    def test_too_many_ranks_are_refused(self):
        _, err = run("--truncation", 10, "--days", 1, ranks=9, code=2)
        assert "9 ranks: the grid F8 has no more than 8 bands" in err

    def test_files_need_whole_fields(self, tmp_path):
        command = ["--ranks", "--out", tmp_path / "no.grib"]
        _, err = run(*command, ranks=0, code=2)
        assert re.search(r"--out: no rank has whole fields.*ranks\.yaml", err, re.DOTALL)

    def test_without_mpi_it_runs_alone(self, tmp_path):
        (tmp_path / "mpi4py.py").write_text("raise ImportError('none here')\n")
        env = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
        out, _ = run("--truncation", 21, "--days", 0.25, ranks=0, env=env)
        assert "6 hours" in out
        _, err = run("--truncation", 21, "--ranks", ranks=0, code=2, env=env)
        assert "--ranks: needs mpi4py" in err


def telling(read):
    keys, _ = read
    return keys["param"], keys["step"]


def decoded(data):
    """The mars keys and values of a message, and where they lie."""
    handle = eccodes.codes_new_from_message(data)
    try:
        names = ("class", "expver", "stream", "type", "dataDate", "dataTime", "level", "step", "shortName", "gridType")
        keys = {name: eccodes.codes_get(handle, name) for name in (*names, "units", "numberOfValues")}
        return {**keys, "param": keys["shortName"]}, eccodes.codes_get_values(handle)
    finally:
        eccodes.codes_release(handle)


def made_alone(model):
    encoder = messages.Encoder(model.harmonics, 0, 20261120, "swel")
    return [decoded(message.data) for message in encoder.messages(model, model.gridded())]
