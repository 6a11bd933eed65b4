"""Every document that a command prints with `--json` matches its schema in docs/formats/json, in both directions."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from e2e_grib import Field
from e2e_shell import ROOT, Shell
from jsonschema import Draft202012Validator

import junctura
import junctura.mesh

SCHEMAS = {path.name.removesuffix(".schema.json"): path for path in (ROOT / "docs/formats/json").glob("*.schema.json")}
PYTHON = ["--python", sys.executable]


def closed(schema: Any) -> Any:
    """A schema that refuses members that it does not name; the published ones allow those of later versions."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    inside = {name: closed(part) for name, part in schema.items()}
    return {"additionalProperties": False, **inside} if isinstance(inside.get("properties"), dict) else inside


def documents(text: str) -> list[Any]:
    """The documents of an output: a line each, or one of several lines."""
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


def checked(name: str, text: str) -> list[Any]:
    """The documents of an output, which are what the schema says."""
    schema = json.loads(SCHEMAS[name].read_text())
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(closed(schema))
    found = documents(text)
    assert found, name
    for document in found:
        errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]
        assert not errors, f"{name}: {document}: {errors}"
    return found


def says(shell: Shell, name: str, *arguments: object, status: int = 0, stdin: bytes = b"") -> list[Any]:
    """Runs a command with `--json`; its documents are what the schema of this name says."""
    words = [str(argument) for argument in arguments]
    return checked(name, shell.run(*words, "--json", status=status, stdin=stdin).stdout.decode())


def test_every_command_has_a_schema(bare: Shell, tmp_path: Path) -> None:
    bare.run("man", "--out", tmp_path)
    pages = {page.stem.removeprefix("junctura-") for page in tmp_path.iterdir() if r"\-\-json" in page.read_text()}
    # One schema describes all commands of a group of which each needs it: `pool group show` and `pool group`.
    used = {name: [page for page in pages if page == name or page.startswith(f"{name}-")] for name in SCHEMAS}
    assert {page for name in used for page in used[name]} == pages
    assert [name for name, found in used.items() if not found] == []
    tested = set(re.findall(r'(?:says\(\w+, |checked\()"([\w-]+)"', Path(__file__).read_text()))
    assert tested == set(SCHEMAS)


def test_schemas_allow_members_of_later_versions() -> None:
    schema = json.loads(SCHEMAS["wait-for"].read_text())
    later = {"objects": 1, "count": 1, "reached": True, "seconds": 0.5, "later": "member"}
    assert Draft202012Validator(schema).is_valid(later)
    assert not Draft202012Validator(closed(schema)).is_valid(later)


def test_every_schema_is_described() -> None:
    page = (ROOT / "docs/formats/json.md").read_text()
    assert sorted(re.findall(r"\]\(json/([\w-]+)\.schema\.json\)", page)) == sorted(SCHEMAS)


def test_objects(shell: Shell, file: Path, fields: dict[Field, bytes], tmp_path: Path) -> None:
    said = says(shell, "put", "put", file)
    assert said[-1]["objects"] == len(fields)
    shell.run("pool", "bundle", "open", "a")
    says(shell, "put", "put", "-", "--schema", "free", "--set", "name=staged", "--bundle", "a", "--open", stdin=b"1")
    says(shell, "put", "put", "-", "--schema", "free", "--set", "name=no", "--if-wanted", stdin=b"1")
    assert len(says(shell, "ls", "ls")) == len(fields)
    says(shell, "ls", "ls", "--incomplete")
    says(shell, "ls", "ls", "--tree")
    says(shell, "ls", "ls", "--tree", "--long")
    says(shell, "ls", "ls", "--count")
    says(shell, "get", "get", "--all", "param=t", "-o", tmp_path / "each", "--template", "{hash}")
    says(shell, "get", "get", "--all", "param=t", "-o", tmp_path / "all")
    says(shell, "wait-for", "wait-for", "param=t", "--count", "2")
    says(shell, "wait-for", "wait-for", "param=t", "--count", "200", "--timeout", "1ms", status=4)


def test_reasons(shell: Shell, file: Path) -> None:
    """Why something waits, stays, is gone or matches nothing, and what fills memory."""
    shell.run("put", file)
    shell.run("put", "-", "--schema", "free", "--set", "name=kept", stdin=b"1")
    shell.run("pool", "require", "name=kept", "--name", "keeper")
    key = says(shell, "ls", "ls", "name=kept")[0]["key"]
    assert says(shell, "explain", "explain", "param=t,step=9999")[0]["without"]
    says(shell, "explain", "explain", "name=kept")
    says(shell, "explain", "explain", "--key", key)
    says(shell, "explain", "explain", "--memory")
    with junctura.Pool(f"unix:{shell.folder}/junctura/test.sock") as pool, pool.begin_demand("param=t,step=9999"):
        pool.sync()
        assert says(shell, "explain", "explain", "--waiting")[0]["waits"]
    shell.run("pool", "withdraw", key, "--force")
    assert says(shell, "explain", "explain", "--key", key)[0]["objects"][0]["state"] == "gone"


@pytest.mark.skipif("JUNCTURA_TEST_DETOUR" in os.environ, reason="a board is memory of the server's machine")
def test_a_look_at_the_board(shell: Shell) -> None:
    shell.run("pool", "require", "name=kept", "--name", "keeper")
    shell.run("put", "-", "--schema", "free", "--set", "name=kept", stdin=b"1")
    with junctura.Pool(f"unix:{shell.folder}/junctura/test.sock") as pool, pool.begin_demand("name=never"):
        pool.note("waits")
        pool.sync()
        document = says(shell, "top", "top", "--once", "--delay", "0.1")[0]
        tables = ("components", "requirements", "clients", "datasets", "waits")
        assert all(document[table] for table in tables)
        assert "clients" not in says(shell, "top", "top", "--once", "--delay", "0.1", "--screen", "waits")[0]


def test_health(bare: Shell) -> None:
    (absent,) = says(bare, "pool-health", "pool", "health", status=3)
    assert (absent["healthy"], absent["state"], absent["code"]) == (False, None, "NotFound")
    bare.serve()
    (served,) = says(bare, "pool-health", "pool", "health")
    assert served == {"pool": bare.pool, "healthy": True, "state": "serving", "code": None, "cause": None}


def test_an_array_in_pieces(bare: Shell) -> None:
    bare.serve("--schema", "free")
    with junctura.Pool(f"unix:{bare.folder}/junctura/test.sock") as pool:
        pool.offer_piece(np.zeros((2, 3)), "shape=4x3 grid=2x1", 0, name="t")
        (found,) = says(bare, "explain", "explain", "name=t")
        assert found["arrays"][0]["missing"] == [{"rank": 1, "boxes": ["[2:4, 0:3]"]}]
        pool.offer_piece(np.zeros((2, 3)), "shape=4x3 grid=2x1", 1, name="t")
        pool.offer(b"12345", name="u")
    assert [(one["bytes"], one["pieces"]) for one in says(bare, "ls", "ls")] == [(96, 2), (5, None)]
    assert "96 B" in bare.text("ls", "name=t")


def test_a_mesh(shell: Shell, tmp_path: Path) -> None:
    mesh = tmp_path / "rod.exo"
    points = {"nodes": junctura.mesh.MeshPoints((np.arange(2.0),))}
    meshes = junctura.mesh.create(mesh)
    meshes.write(junctura.mesh.MeshStep(points, {"rod": junctura.mesh.MeshBlock("nodes", "line", np.arange(2))}))
    meshes.close()
    assert says(shell, "mesh-info", "mesh", "info", mesh, *PYTHON)


def test_copies(shell: Shell, file: Path) -> None:
    other = Shell("unix:other")
    try:
        shell.run("put", file)
        to = f"unix:{other.folder}/junctura/other.sock"
        other.serve()
        first = says(shell, "cp", "cp", "unix:test", to, "param=t")
        again = says(shell, "cp", "cp", "unix:test", to, "param=t")
        assert first[-1]["objects"] == again[-1]["identical"] > 0
    finally:
        other.close()


def test_events(shell: Shell, tmp_path: Path) -> None:
    watch = shell.watch("--count", "12")
    shell.run("pool", "require", "name=kept", "--name", "keeper")
    shell.run("put", "-", "--schema", "free", "--set", "name=kept", stdin=b"1")
    shell.run(
        "put", "-", "--schema", "free", "--set", "name=kept", "--set", "space=b", "--bundle", "a", "--open", stdin=b"1"
    )
    shell.run("pool", "bundle", "abort", "a")
    shell.run("pool", "withdraw-all", "*", "--force")
    shell.run("pool", "retract", "keeper")
    code, text, _ = watch.end()
    assert code == 0
    kinds = {event["event"] for event in checked("watch", text)}
    assert {"offered", "required", "joined"} <= kinds
    store = tmp_path / "store"
    shell.run("store", "create", "--store", store)
    shell.run("put", "-", "--schema", "free", "--set", "name=one", stdin=b"1")
    following = shell.watch("--store", str(store), "--count", "1")
    says(shell, "store-archiver", "store", "archiver", "*", "--store", store, "--until-live")
    code, text, _ = following.end()
    assert code == 0
    assert checked("watch", text)[0]["event"] == "archived"


def test_a_pool(shell: Shell) -> None:
    says(shell, "pool-stat", "pool", "stat")
    says(shell, "pool-require", "pool", "require", "name=a", "--name", "keeper")
    shell.run("pool", "require", "name=b", "--name", "workers", "--group")
    member = shell.start("get", "--follow", "name=b", "--group", "workers", "--count", "2", "-o", f"{shell.folder}/b/")
    for space in ("a", "b"):
        shell.run("put", "-", "--schema", "free", "--set", "name=a", "--set", f"space={space}", stdin=b"1")
    shell.run("put", "-", "--schema", "free", "--set", "name=b", "--retention", "released_by:later", stdin=b"1")
    stat = says(shell, "pool-stat", "pool", "stat")[0]
    assert [one["name"] for one in stat["named_requirements"]] == ["keeper", "workers"]
    assert stat["awaited"][0]["name"] == "later"
    says(shell, "pool-group", "pool", "group", "list")
    says(shell, "pool-group", "pool", "group", "show", "workers")
    shell.run("put", "-", "--schema", "free", "--set", "name=b", "--set", "space=b", stdin=b"1")
    assert member.end()[0] == 0
    assert says(shell, "pool-wanted", "pool", "wanted", "--schema", "free", "name=a", "space=c")[0]["wanted"] == 1
    says(shell, "pool-retract", "pool", "retract", "keeper")
    says(shell, "pool-group", "pool", "group", "remove", "workers")
    says(shell, "pool-withdraw", "pool", "withdraw", "--schema", "free", "name=a", "space=a")
    says(shell, "pool-withdraw", "pool", "withdraw", "--schema", "free", "name=a", "space=a", "--forget")
    says(shell, "pool-withdraw-all", "pool", "withdraw-all", "name=a")
    says(shell, "pool-withdraw-all", "pool", "withdraw-all", "name=a", "--forget")


def test_a_pool_with_a_broken_requirement_and_a_file_tier(bare: Shell, tmp_path: Path) -> None:
    bare.serve("--schema", "free", "--budget", "4MiB", "--spill", str(tmp_path), "--until-gone", "model")
    bare.run("pool", "require", "*", "--name", "slow", "--on-full", "break", "--quota", "1KiB")
    # When the object has expired, only the requirement retains it.
    watch = bare.watch("--kind", "broken", "--count", "1")
    bare.run("put", "-", "--set", "name=large", "--retention", "1ms", stdin=bytes(1 << 20))
    code, text, _ = watch.end()
    assert code == 0
    assert [event["event"] for event in checked("watch", text)] == ["broken"]
    stat = says(bare, "pool-stat", "pool", "stat")[0]
    assert stat["spill"] is not None
    assert [one["name"] for one in stat["broken_requirements"]] == ["slow"]
    assert stat["until_gone"][0]["state"] == "awaited"


def test_bundles(shell: Shell) -> None:
    says(shell, "pool-bundle", "pool", "bundle", "open", "a", "--members", "1", "--about", "name=a")
    says(shell, "pool-bundle", "pool", "bundle", "open", "b")
    shell.run("put", "-", "--schema", "free", "--set", "name=b", "--bundle", "b", "--open", stdin=b"1")
    says(shell, "pool-bundle", "pool", "bundle", "list")
    says(shell, "pool-bundle", "pool", "bundle", "seal", "b")
    says(shell, "pool-bundle", "pool", "bundle", "show", "b")
    says(shell, "pool-bundle", "pool", "bundle", "abort", "a")


def test_a_store(bare: Shell, file: Path, tmp_path: Path) -> None:
    store, cold = tmp_path / "store", tmp_path / "cold"
    where = ["--store", str(store)]
    bare.run("store", "create", *where)
    says(bare, "store-archive", "store", "archive", file, *where)
    bare.run("store", "archive", file, *where)
    says(bare, "ls", "ls", *where, "param=t")
    says(bare, "ls", "ls", *where, "--tree")
    says(bare, "store-stat", "store", "stat", *where)
    says(bare, "store-axes", "store", "axes", *where)
    says(bare, "store-inspect", "store", "inspect", *where, "param=t")
    says(bare, "wait-for", "wait-for", *where, "param=t")
    says(bare, "store-retrieve", "store", "retrieve", *where, "param=t", "-o", tmp_path / "all")
    says(bare, "store-check", "store", "check", *where)
    says(bare, "store-checkpoint", "store", "checkpoint", *where)
    bare.run("store", "tier", *where, "cold", cold)
    says(bare, "store-tier", "store", "tier", *where)
    says(bare, "store-move", "store", "move", *where, "--to", "cold", "param=t", "--dry-run")
    says(bare, "store-move", "store", "move", *where, "--to", "cold", "param=t")
    says(bare, "store-stat", "store", "stat", *where)
    says(bare, "store-purge", "store", "purge", *where, "--dry-run")
    says(bare, "store-purge", "store", "purge", *where)
    says(bare, "store-compact", "store", "compact", *where, "--gather", "--dry-run")
    says(bare, "store-compact", "store", "compact", *where, "--gather")
    says(bare, "store-compact", "store", "compact", *where, "--dry-run")
    says(bare, "store-wipe", "store", "wipe", *where, "param=t", "--dry-run")
    says(bare, "store-wipe", "store", "wipe", *where, "param=t", "--yes")


def test_damage_in_a_store(bare: Shell, tmp_path: Path) -> None:
    where = ["--store", str(tmp_path / "store")]
    bare.run("store", "create", *where)
    # Small payloads are in the log, whose damage is an error of the whole store.
    bare.run("store", "archive", "-", *where, "--schema", "free", "--set", "name=large", stdin=bytes(1 << 20))
    place = bare.documents("store", "inspect", *where, "--json")[0]
    data = Path(place["uri"].removeprefix("file://"))
    text = bytearray(data.read_bytes())
    text[place["offset"] + place["bytes"] - 6] ^= 255
    data.chmod(0o644)
    data.write_bytes(text)
    assert says(bare, "store-check", "store", "check", *where, status=1)[0]["code"] == "Corrupt"


def test_differences_of_stores(bare: Shell, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for store, value in ((first, b"1"), (second, b"2")):
        bare.run("store", "create", "--store", store)
        archive = ["store", "archive", "-", "--store", str(store), "--schema", "free"]
        bare.run(*archive, "--set", f"name={store.name}", stdin=b"own")
        bare.run(*archive, "--set", "name=bytes", stdin=value)
        bare.run(*archive, "--set", "name=attributes", "--set", f"author={value.decode()}", stdin=b"same")
    said = says(bare, "store-compare", "store", "compare", "--store", first, "--with", second, status=1)
    kinds = {one.get("difference") for one in said}
    assert kinds == {"only_first", "only_second", "bytes", "attributes", None}


def test_an_import(bare: Shell, tmp_path: Path) -> None:
    rules = "step: Step; [ class, stream=enfo/efov [ type [ step, number?, param ]]]"
    key = [{"class": "rd", "stream": "efov"}, {"type": "pf"}, {"param": "130", "number": "", "step": "6"}]
    (tmp_path / "data").write_bytes(b"one")
    place = {"scheme": "", "file": str(tmp_path / "data"), "offset": 0, "length": 3}
    listing = [{"schema": {"file": "/fdb/schema", "text": rules}}, {"field": {"key": key, **place}}, "end"]
    (tmp_path / "lines").write_text("".join(json.dumps(line) + "\n" for line in listing))
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\ncat '{tmp_path}/lines'\n")
    program.chmod(0o755)
    command = ["store", "import", "fdb", tmp_path, "--python", program, "--store", tmp_path / "store", "--create"]
    assert says(bare, "store-import-fdb", *command)[-1]["objects"] == 1


def test_schemas_and_layouts(bare: Shell) -> None:
    says(bare, "schema-list", "schema", "list")
    says(bare, "schema-check", "schema", "check", "mars")
    says(bare, "schema-check", "schema", "check", "free", "--key", "name=a")
    says(bare, "schema-check", "schema", "check", "mars", "--selector", "param=t", "--explain")
    says(bare, "layout-show", "layout", "show", "shape=8x8 grid=2x2")
    says(bare, "layout-plan", "layout", "plan", "--from", "shape=8 grid=2", "--to", "shape=8", "--rank", "0")


def test_a_machine_and_its_tokens(bare: Shell, tmp_path: Path) -> None:
    checked("doctor", bare.run("doctor", "--json", status=0).stdout.decode())
    secrets = tmp_path / "secrets"
    secrets.mkdir(mode=0o700)
    bare.run("token", "make", secrets, "--for", "viewer")
    says(bare, "token-list", "token", "list", secrets)


def test_loads(bare: Shell) -> None:
    says(bare, "load-handover", "load", "handover", "--time", "10ms")
    says(bare, "load-pool", "load", "pool", "--duration", "50ms", "--warmup", "10ms")
    says(bare, "load-store", "load", "store", "--scale", "0.001", "--size", "1KiB")


@pytest.mark.parametrize("kind", ["grib2", "map"])
def test_products(shell: Shell, tmp_path: Path, kind: str) -> None:
    recipe = tmp_path / "recipe.yaml"
    about = {"grib2": "format: grib2, name: one.grib2", "map": "format: png, name: one.png"}[kind]
    recipe.write_text(f"product: one\nfrom: {{param: t, levelist: 500, step: 6, number: 1}}\nto: {{{about}}}\n")
    says(shell, "run", "run", recipe, "--check", *PYTHON)
    run = ["run", recipe, "--now", "--pool", "unix:test", "--out", tmp_path / "products", *PYTHON]
    said = says(shell, "run", *run, status=1)[0]
    assert [one["product"] for one in said["failed"]] == ["one"]


def test_a_workflow(bare: Shell, tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text("workflow: flow\ntasks:\n  good: {run: ['true']}\n  bad: {run: ['false']}\n")
    says(bare, "run", "run", file, "--check", *PYTHON)
    said = says(bare, "run", "run", file, "--run-dir", tmp_path / "run", *PYTHON, status=1)[0]
    assert (said["done"], list(said["failures"])) == (1, ["bad"])
