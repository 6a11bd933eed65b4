"""Collections of Dask's from a selector: in threads, and in processes that reach a pool by ``tcp:`` alone."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from python_stores import FIELD, cube, grib

import junctura
from junctura.dask import Fetched, from_selector
from junctura.dask._found import _named

distributed = pytest.importorskip("distributed")
xarray = pytest.importorskip("xarray")
pytest.importorskip("eccodes")
pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Three processes that go by the network, also on this machine."""
    before = os.environ.get("JUNCTURA_TRANSPORTS")
    os.environ["JUNCTURA_TRANSPORTS"] = "tcp"
    options = {"n_workers": 3, "threads_per_worker": 2, "processes": True, "dashboard_address": ":0", "memory_limit": 0}
    try:
        with (
            distributed.LocalCluster(**options) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client
    finally:
        if before is None:
            del os.environ["JUNCTURA_TRANSPORTS"]
        else:
            os.environ["JUNCTURA_TRANSPORTS"] = before


@pytest.fixture
def served() -> Iterator[str]:
    """A pool at a port, of fields of MARS."""
    command = [
        sys.executable,
        "-m",
        "junctura",
        "pool",
        "serve",
        "--pool",
        "tcp://127.0.0.1:0",
        "--announce",
        "--schema",
        "mars",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> junctura.Store:
    folder = tmp_path_factory.mktemp("fields")
    (folder / "cube.grib").write_bytes(b"".join(cube()))
    return junctura.Store.from_grib(folder / "store", folder / "cube.grib")


def offer_all(pool: junctura.Pool, store: junctura.Store) -> None:
    for obj in store.list():
        pool.offer(obj.read(), obj.attributes)


def mean(field: Fetched) -> float:
    return float(field.to_xarray().mean())


def who(field: Fetched) -> tuple[str, int]:
    return field.key, os.getpid()


def step_means(fields: list[Fetched]) -> dict[tuple[str, str], float]:
    return {(field.key, field["step"]): mean(field) for field in fields}


def test_a_bag_is_fetched_where_it_is_computed(client: Any, served: str, store: junctura.Store) -> None:
    with junctura.Pool(served, name="model") as pool:
        offer_all(pool, store)
        joined = pool.subscribe(kinds=["joined"])
        bag = from_selector("param=t,step=0/6", pool=served, partition_size=2)
        assert bag.npartitions == 6
        expected = {obj.key: float(obj.to_xarray().mean()) for obj in store.list("param=t")}
        for _ in range(2):
            found = client.compute(bag.map(mean)).result()
            assert sorted(found) == sorted(expected.values())
        ran = dict(client.compute(bag.map(who)).result())
        assert ran.keys() == expected.keys()
        workers = set(client.run(os.getpid).values())
        assert set(ran.values()) <= workers
        # Each process connected once, and kept that; this one has opened the pool by its URL.
        pool.sync()
        came = [event.client.pid for event in iter(lambda: next_of(joined), None)]
        assert len(came) == len(set(came)) and set(came) <= workers | {os.getpid()}


def next_of(events: junctura.Subscription) -> Any:
    try:
        return events.next(timeout=0)
    except junctura.Timeout:
        return None


def test_what_travels_is_the_same_there(client: Any, served: str, store: junctura.Store) -> None:
    with junctura.Pool(served) as pool:
        offer_all(pool, store)
        pool.offer(np.arange(6.0).reshape(2, 3), {**FIELD, "units": "K"})
        (array,) = client.compute(from_selector("param=2t", pool=pool)).result()
        assert array.array().tolist() == [[0, 1, 2], [3, 4, 5]] and array["units"] == "K"
        assert array.nbytes == 48 and array.get("nothing", 1) == 1
        assert array.version == str(pool.list("param=2t")[0].version)
        fields = client.compute(from_selector("param=u,step=0", pool=pool)).result()
        assert [field.key for field in fields] == [entry.key for entry in pool.list("param=u,step=0")]
        for field in fields:
            assert field.to_xarray().identical(pool.demand(field.key, timeout=0).to_xarray())


def test_chunks_are_given_and_taken_where_they_are_computed(client: Any, served: str) -> None:
    dask = pytest.importorskip("dask.array")
    field = np.arange(90 * 70, dtype="f8").reshape(90, 70)
    with junctura.Pool(served, schema="mars") as pool, client.as_current():
        joined = pool.subscribe(kinds=["joined"])
        pool.offer_chunks(dask.from_array(field, chunks=(20, 30)) * 2, {**FIELD, "units": "K"})
        assert len(pool.list("exists(piece_of)")) == 15
        np.testing.assert_array_equal(pool.demand_array("param=2t"), field * 2)
        lazy = pool.demand_chunks("param=2t", chunks=(25, 70))
        np.testing.assert_array_equal((lazy + 1).compute(), field * 2 + 1)
        # No process that computes connects for each chunk.
        pool.sync()
        came = [event.client.pid for event in iter(lambda: next_of(joined), None)]
        workers = set(client.run(os.getpid).values())
        assert came and len(came) == len(set(came)) and set(came) <= workers


def test_delayed_objects(client: Any, served: str, store: junctura.Store) -> None:
    with junctura.Pool(served) as pool:
        offer_all(pool, store)
        lazy: Any = from_selector("levelist=850,param=t", pool=pool, as_="delayed")
        assert len(lazy) == 4
        assert all(one.key.startswith("fetch-") for one in lazy)
        steps = client.gather(client.compute([one["step"] for one in lazy]))
        assert steps == [entry["step"] for entry in pool.list("levelist=850,param=t")]


@pytest.mark.parametrize("by", ["processes", "threads"])
@pytest.mark.parametrize("behind", ["pool", "store", "pool with a store"])
def test_arrays_are_what_the_store_opens(client: Any, served: str, store: junctura.Store, behind: str, by: str) -> None:
    whole = xarray.open_dataset(store.path, engine="junctura").load()
    with junctura.Pool(served) as pool:
        if behind == "pool":
            offer_all(pool, store)
        given: dict[str, Any] = {"store": store} if "store" in behind else {}
        if "pool" in behind:
            given["pool"] = pool
        data = from_selector("param=t/u", **given, as_="xarray")
        array = from_selector("param=u", **given, as_="array", dtype="f8")
        assert data.t.chunks == ((1, 1), (1, 1), (1, 1, 1), (31,), (16,))
        assert array.shape == whole.u.shape and array.dtype == np.float64
        if by == "processes":
            made, mean_of_u = client.compute(data).result(), client.compute(array.mean()).result()
        else:
            made, mean_of_u = data.compute(scheduler="threads"), array.mean().compute(scheduler="threads")
    xarray.testing.assert_identical(made, whole)
    assert mean_of_u == pytest.approx(float(whole.u.astype("f8").mean()), abs=1e-3)


def test_only_what_is_computed_is_fetched(served: str, store: junctura.Store) -> None:
    with junctura.Pool(served, name="model") as pool, junctura.Pool(served, name="reader") as reader:
        offer_all(pool, store)
        data = from_selector("param=t", pool=reader, as_="xarray")

        def delivered() -> int:
            (said,) = [one for one in pool.stat()["clients"] if one["name"] == "reader"]
            return int(said["delivered"])

        before = delivered()
        assert before == 1, "the grid of the first one stands for all that have its fingerprint"
        data.t.isel(time=0, step=1).sel(level=500).compute(scheduler="threads")
        assert delivered() == before + 1


def test_what_is_missing_is_named(served: str, tmp_path: Path) -> None:
    store = junctura.Store.create(tmp_path / "store", schema="mars")
    with junctura.Pool(served) as pool, store:
        for step, level in ((0, 500), (6, 500), (6, 850)):
            about = {**FIELD, "levtype": "pl", "param": "t", "step": step, "levelist": level}
            pool.offer(grib(step=step, level=level), about)
            store.archive(grib(step=step, level=level), about)
        store.flush()
        given: Any
        as_: Any
        for given in ({"pool": pool}, {"store": store}):
            for as_ in ("bag", "delayed", "array", "xarray"):
                with pytest.raises(junctura.NotFound, match=r"missing: \{.*step=0.*\}") as raised:
                    from_selector("param=t,step=0/6,levelist=500/850", **given, as_=as_)
                assert "levelist=850" in raised.value.cause and raised.value.cause.count("step=") == 1
            assert len(from_selector("step=0/6,levelist=500/850", **given, as_="delayed", partial=True)) == 3
            data = from_selector("step=0/6,levelist=500/850", **given, as_="xarray", partial=True)
            there = np.isfinite(data.t).all(["latitude", "longitude"]).compute()
            assert there.values.tolist() == [[True, False], [True, True]]
            with pytest.raises(junctura.NotFound, match=r"missing: \{step=0,levelist=850\}"):
                from_selector("levelist>=500", **given, as_="array")
            with pytest.raises(junctura.NotFound):
                from_selector("param=v", **given)
    with pytest.raises(junctura.InvalidSelector):
        from_selector("param=(", store=store)


@pytest.mark.parametrize(
    ("explained", "named"),
    [
        ("*", {}),
        ("step=0/6,param=t", {"step": ["0", "6"], "param": ["t"]}),
        ('name="a,b/c"/"d\\"(",step>=5', {"name": ['"a,b/c"', '"d\\"("']}),
        ("class=od,step=0 or step=6", {"class": ["od"]}),
        ("(class=od,step=0) or number=1,time=0000", {"time": ["0000"]}),
        ("number=0/to/5000 (5001 values),quality=-1.0/to/1.0 (everything between)", {}),
        ('not param=t,param~"[ab]=c"', {}),
    ],
)
def test_which_values_a_selector_names(explained: str, named: dict[str, list[str]]) -> None:
    assert _named(explained) == named


def test_an_object_that_has_gone_is_named_by_its_task(client: Any, served: str) -> None:
    with junctura.Pool(served) as pool:
        pool.offer(grib(), FIELD)
        (lazy,) = from_selector("param=2t", pool=pool, as_="delayed")
        key = pool.list()[0].key
        pool.withdraw(key)
        with pytest.raises(junctura.Gone) as raised:
            client.compute(lazy).result()
        assert raised.value.subject == key


def test_of_a_key_a_store_gives_what_was_listed(tmp_path: Path) -> None:
    store = junctura.Store.create(tmp_path / "store", schema="free")
    with store:
        store.archive(b"first", name='a "b", c')
    bag = from_selector(store=store.path)
    with store:
        store.archive(b"second", name='a "b", c')
    assert bag.map(bytes).compute(scheduler="threads") == [b"first"]
    assert from_selector(store=store).map(bytes).compute(scheduler="threads") == [b"second"]


def test_a_pool_that_was_closed_is_opened_again(served: str) -> None:
    with junctura.Pool(served) as pool:
        pool.offer(b"here", schema="free", name="a")
        bag = from_selector('name="a"', pool=pool, schema="free")
    assert bag.map(bytes).compute(scheduler="threads") == [b"here"]


def test_threads_share_the_pool_of_their_maker(pool: junctura.Pool) -> None:
    for step in range(8):
        pool.offer(np.full(4, step), name=f"t{step}", space="fields")
    clients = len(pool.stat()["clients"])
    bag = from_selector("space=fields", pool=pool, npartitions=8)
    sums = bag.map(lambda field: int(field.array().sum())).compute(scheduler="threads")
    assert sums == [4 * step for step in range(8)]
    assert len(pool.stat()["clients"]) == clients
    array = from_selector("space=fields", pool=pool, as_="array")
    assert array.chunks == ((1,) * 8, (4,))
    assert list(from_selector("space=fields", pool=pool, as_="xarray").data_vars) == [f"t{step}" for step in range(8)]
    assert array.sum(axis=1).compute(scheduler="threads").tolist() == sums
    fetched = bag.compute(scheduler="threads")[3]
    assert not fetched.array().flags.writeable
    again = pickle.loads(pickle.dumps(fetched))
    assert again.array().tolist() == [3] * 4 and not again.array().flags.writeable
    assert repr(again) == repr(fetched) and again.attributes == fetched.attributes


def test_mistakes_are_told(pool: junctura.Pool, tmp_path: Path) -> None:
    with pytest.raises(junctura.InvalidArgument, match="where are the objects"):
        from_selector("name=a")
    wrong: Any = "table"
    with pytest.raises(junctura.InvalidArgument, match="'table' is not one of bag, delayed, array, xarray"):
        from_selector("name=a", pool=pool, as_=wrong)
    with pytest.raises(junctura.InvalidArgument, match="as_='bag' has no such thing"):
        from_selector("name=a", pool=pool, dtype="f8")  # type: ignore[call-overload]
    with pytest.raises(junctura.Unavailable, match="nowhere"):
        from_selector("name=a", pool=f"unix:{tmp_path}/nowhere")
    with junctura.Pool(schema="mars") as fields:
        for words in ({"param": "2t"}, {"param": "t", "levelist": 500}, {"param": "t", "levelist": 850}):
            fields.offer(np.ones(3), {**FIELD, **words})
        with pytest.raises(junctura.InvalidArgument, match="2t, t have different dimensions: name one of them"):
            from_selector(pool=fields, as_="array")
    pool.offer(b"not an array", name="a")
    pool.offer(np.ones(3), name="b")
    with pytest.raises(junctura.InvalidArgument, match=r"different grids|has 3 values|has 12 values"):
        from_selector("name=a/b", pool=pool, as_="array").compute(scheduler="threads")


def test_without_dask_it_says_what_is_needed(tmp_path: Path) -> None:
    text = """
import sys
sys.modules["dask"] = None
import junctura
try:
    junctura.dask.from_selector("name=a", store=".")
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, cwd=tmp_path)
    remedy = "pip install dask, or the whole extra: pip install 'junctura[dask]'"
    assert done.stdout == f"dask is not installed here: {remedy}\n"


def test_the_attribute_that_separates_variables_is_an_option(tmp_path: Path) -> None:
    types = {"step": "integer", "quantity": "string", "dtype": "string", "shape": "list of integer"}
    attributes = ", ".join(f"{name}: {{type: {one}}}" for name, one in types.items())
    schema = f"name: cfd\nkey: {{element: [step, quantity]}}\nattributes: {{{attributes}}}\n"
    with junctura.Pool(schema=schema) as pool, junctura.Store.create(tmp_path / "store", schema=schema) as store:
        for step in (1, 2):
            for quantity, value in (("p", 10.0), ("u", 20.0)):
                pool.offer(np.full(3, value + step), step=step, quantity=quantity)
                store.archive(np.full(3, value + step), step=step, quantity=quantity)
        store.flush()
        for place in ({"pool": pool}, {"store": store}):
            data = from_selector(**place, as_="xarray", variable="quantity").compute(scheduler="synchronous")
            assert {name: one.values.tolist() for name, one in data.data_vars.items()} == {
                "p": [[11.0] * 3, [12.0] * 3],
                "u": [[21.0] * 3, [22.0] * 3],
            }
            stacked = from_selector(**place, as_="array", variable="quantity")
            assert stacked.shape == (2, 2, 3)
            with pytest.raises(junctura.InvalidArgument, match=r"variable: .* mean quantity\?"):
                from_selector(**place, as_="xarray", variable="quanity")
        with pytest.raises(junctura.InvalidArgument, match="variable: as_='bag' has no such thing"):
            from_selector(pool=pool, variable="quantity")  # type: ignore[call-overload]
