"""The file of a workflow: what it means, and that every mistake is told with its line before anything runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import junctura
from junctura import _limits
from junctura._document.located_yaml import Document, documents
from junctura.workflow._executors.jobs import Resources
from junctura.workflow._spec import schema
from junctura.workflow._spec.reading import is_workflow, load, workflow_in, workflow_of
from junctura.workflow._spec.tasks import PoolWanted, Start, Task, Workflow

FIXED = settings(derandomize=True, database=None, deadline=None, max_examples=200)
PUBLISHED = Path(schema.__file__).parent.with_name("workflow.schema.json")
GIB = 1 << 30

EVERYTHING = """\
workflow: ensemble
pool: {schema: mars, memory: 2GiB, spill: spilled}
limit: 1h
parallel: 4
executor: local
tasks:
  member:
    run: [python, swell.py, --member, "{member}", --pool, "{pool}", --half, 0.5, --quiet, true, ""]
    matrix: {member: 0/to/2, model: [a, b]}
    exclude: [{member: 2, model: b}]
    attempts: 2
    limit: 10min
    folder: members/{model}{member:02}
    environment: {OMP_NUM_THREADS: 1, WHERE: "{run}/{task}", EMPTY: ""}
    resources: {cores: 2, memory: 500MiB}
    start: {after: fetch}
  products:
    service: junctura run "{here}/recipes" --pool {pool}
    users: [member, picture]
  picture:
    run: [./draw, "{object}", "{step:03}"]
    start: {each: "param=gh,step=24", count: 3, after: [products]}
    may_fail: true
  end:
    run: [sh, -c, "true"]
    start: {on: "step=24", bundle: forecast/step=24, joined: [model, "member-*"]}
  elsewhere:
    run: [no-such-program-here]
    executor: slurm
    resources: {nodes: 4, ranks: 512, cores: 1000, memory: 900GiB}
  fetch: {run: sh}
"""


@pytest.fixture(autouse=True)
def _machine_of_8_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 16 GiB."""
    monkeypatch.setattr(_limits, "cores", lambda: 8)
    monkeypatch.setattr(_limits, "memory_bytes", lambda: 16 * GIB)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the programs of EVERYTHING."""
    (tmp_path / "swell.py").touch()
    (tmp_path / "draw").touch(mode=0o755)
    (tmp_path / "plain").touch(mode=0o644)
    return tmp_path


def workflow(text: str, folder: Path = Path("/nowhere")) -> Workflow:
    (document,) = documents(text.encode(), str(folder / "w.yaml"))
    return workflow_of(document)


def only(said: str, above: str = "pool: {schema: mars}") -> Task:
    """The one task of a small workflow."""
    (found,) = workflow(f"workflow: w\n{above}\ntasks:\n  a: {said}\n").tasks
    return found


def test_everything_that_a_file_may_say(folder: Path) -> None:
    (folder / "w.yaml").write_text(EVERYTHING)
    found = load(folder / "w.yaml")
    assert (found.name, found.path) == ("ensemble", (folder / "w.yaml").resolve())
    assert (found.limit_s, found.parallel) == (3600, 4)
    assert found.pool == PoolWanted(None, "mars", 2 * GIB, Path("spilled"))
    assert [one.name for one in found.tasks] == [
        "products",
        "picture",
        "end",
        "elsewhere",
        "fetch",
        "member-0-a",
        "member-0-b",
        "member-1-a",
        "member-1-b",
        "member-2-a",
    ]
    tasks = {one.name: one for one in found.tasks}
    here = str(folder.resolve())
    script = (sys.executable, f"{here}/swell.py")
    assert tasks["member-1-b"] == Task(
        name="member-1-b",
        of="member",
        command=(*script, "--member", "1", "--pool", "{pool}", "--half", "0.5", "--quiet", "true", ""),
        folder=Path("members/b01"),
        environment={"OMP_NUM_THREADS": "1", "WHERE": "{run}/{task}", "EMPTY": ""},
        values={"member": 1, "model": "b"},
        start=Start(after=("fetch",)),
        attempts=2,
        limit_s=600,
        resources=Resources(2, 500 << 20),
        line=7,
    )
    products = tasks["products"]
    ours = (sys.executable, "-m", "junctura")
    assert products.command == (*ours, "run", f"{here}/recipes", "--pool", "{pool}")
    assert (products.service, products.users, products.folder) == (True, ("member", "picture"), Path())
    picture = tasks["picture"]
    assert picture.command == (f"{here}/draw", "{object}", "{step:03}")
    assert picture.start == Start(after=("products",), each="param=gh,step=24", count=3)
    assert picture.may_fail and not products.may_fail
    conditions = Start(on="step=24", bundle="forecast/step=24", joined=("model", "member-*"))
    assert tasks["end"].start == conditions
    assert tasks["elsewhere"].resources == Resources(1000, 900 * GIB, 4, 512)
    assert (tasks["elsewhere"].executor, tasks["fetch"].executor) == ("slurm", "local")


def test_what_may_be_left_out() -> None:
    found = workflow("workflow: w\ntasks: {a: {run: sh}}")
    assert found.tasks == (Task("a", "a", ("sh",), Path(), line=2),)
    assert (found.pool, found.limit_s, found.parallel) == (None, None, None)
    assert workflow("workflow: w\npool: unix:model\ntasks: {a: {run: sh}}").pool == PoolWanted(url="unix:model")


def test_what_a_matrix_fills_in_reaches_all_texts() -> None:
    found = workflow(
        "workflow: w\npool: {}\ntasks:\n"
        "  first: {run: sh, matrix: {n: [1, 2]}}\n"
        "  then:\n"
        '    run: [sh, "{n}", "{{n}}"]\n'
        "    matrix: {n: [1, 2]}\n"
        "    folder: '{n}/{n:02}'\n"
        "    environment: {N: 'n{n}'}\n"
        "    start: {after: ['first-{n}'], on: 'step={n}', bundle: 'b/{n}', joined: ['m{n}']}\n"
        "  serves: {service: sh, matrix: {n: [1, 2]}, users: 'then-{n}'}\n"
    )
    (then,) = (one for one in found.tasks if one.name == "then-2")
    assert (then.command, then.folder, then.environment) == (("sh", "2", "{{n}}"), Path("2/02"), {"N": "n2"})
    assert then.start == Start(after=("first-2",), on="step=2", bundle="b/2", joined=("m2",))
    assert [one.users for one in found.tasks if one.service] == [("then-1",), ("then-2",)]


def test_values_with_braces_stay_what_they_are() -> None:
    task = only("{run: [sh, '{v}'], matrix: {v: '{pool}'}}")
    assert task.command == ("sh", "{{pool}}")


def test_a_command_in_one_text_is_split_at_spaces() -> None:
    assert only("""{run: 'sh -c "echo a  b" {task}'}""").command == ("sh", "-c", "echo a  b", "{task}")


def test_words_of_objects_are_those_of_the_schema_where_it_is_known() -> None:
    assert only("{run: [sh, '{param}'], start: {each: step=24}}").command == ("sh", "{param}")
    # Objects of another schema may be meant, or the schema is not known.
    assert only("{run: [sh, '{colour}'], start: {each: colour=red}}").command == ("sh", "{colour}")
    assert only("{run: [sh, '{colour}'], start: {each: step=24}}", "pool: unix:x").command == ("sh", "{colour}")
    assert only("{run: [sh, '{colour}'], start: {each: step=24}}", "pool: {schema: free}").command == ("sh", "{colour}")


def test_a_pool_has_the_schema_of_a_file(folder: Path) -> None:
    (folder / "mine.yaml").write_text(junctura.Schema.builtin("rowcol").to_yaml())
    text = "workflow: w\npool: {schema: mine.yaml}\ntasks: {a: {run: sh, start: {on: 'row=3'}}}"
    pool = workflow(text, folder).pool
    assert pool is not None and pool.schema == str(folder / "mine.yaml")


def test_a_selector_is_read_by_any_schema_that_the_pool_has() -> None:
    for selector in ("param=t", "product=t850", "row=3"):
        assert only(f"{{run: sh, start: {{on: '{selector}'}}}}").start.on == selector
    # What a served pool knows is not known here.
    assert only("{run: sh, start: {on: 'height=1/to/5'}}", "pool: unix:x").start.on == "height=1/to/5"


def test_what_a_file_is() -> None:
    kinds = {
        "workflow: w\ntasks: {}": True,
        "product: p": False,
        "sources: []": False,
        "[tasks]": False,
        "tasks": False,
    }
    assert {text: is_workflow(documents(text.encode(), "f")[0]) for text in kinds} == kinds


def test_files_without_a_workflow_are_for_others(tmp_path: Path) -> None:
    file, other = tmp_path / "a.yaml", tmp_path / "b.yaml"
    file.write_text("product: p")
    other.write_text("workflow: w\ntasks: {a: {run: sh}}")
    assert workflow_in([file]) is None
    found = workflow_in([other])
    assert found is not None and found.name == "w"
    with pytest.raises(junctura.errors.InvalidArgument, match="a workflow runs alone"):
        workflow_in([file, other])
    with pytest.raises(junctura.errors.InvalidArgument, match="no workflow: it has no `tasks`"):
        load(file)
    with pytest.raises(junctura.errors.NotFound):
        load(tmp_path / "none.yaml")


WRONG = [
    ("{run: [sh, '{pol}']}", 'run: "{pol}" is no word that is known here; did you mean "pool"?'),
    ("{run: [sh, '{object}']}", 'run: "{object}" is known in tasks that start for each object, and this one does not'),
    (
        "{run: [sh, '{stp}'], start: {each: param=t}}",
        'run: "{stp}" is no word that is known here; did you mean "step"?',
    ),
    (
        "{run: [sh, {pool}]}",
        "run: expected a text or a number or true or false, not a mapping; words in braces stand in",
    ),
    ("{run: [sh, '{']}", 'run: "{": in braces stands a word'),
    ("{run: [sh], folder: '{n'}", 'folder: "{n": in braces stands a word'),
    ("{run: [sh], environment: {A: '{n}'}}", 'environment.A: "{n}" is no word that is known here'),
    ("{run: sh, environment: {a-b: 1}}", 'environment.a-b: "a-b" is not the name of a variable'),
    ("{run: [sh, '{n:03}'], matrix: {n: [1, x]}}", 'run: "{n:03}" is for whole numbers, and n is "x"'),
    ("{run: [no-such-program-here]}", "run: there is no program no-such-program-here on $PATH"),
    ("{run: [./none]}", "run: there is no program none"),
    ("{run: ['{n}'], matrix: {n: [sh, none-such]}}", "run: there is no program none-such on $PATH"),
    ("{run: [python, none.py]}", "run: there is no none.py"),
    ('{run: [sh, "a\\0b"]}', "run: 'a\\x00b' has a character that no program can be given"),
    ("{run: ['']}", "run: there is no program"),
    ("{run: []}", "run: a list of 0, expected 1 to 10000"),
    ("{run: 'sh \"'}", "run: cannot be split at spaces: No closing quotation"),
    ("{run: 'sh | wc'}", 'run: no shell reads "|": write [sh, -c, "..."]'),
    ("{run: sh, service: sh}", "run or service: both are there, and one is possible"),
    ("{start: {on: a=b}}", "run or service: one of them is missing"),
    ("{run: sh, user: b}", 'user: "user" is no key here; did you mean "users"?'),
    ("{run: sh, users: b}", "users: only a service has users"),
    ("{run: sh, exclude: [{n: 1}]}", "exclude: there is no matrix"),
    ("{run: sh, matrix: {n: 0/to/x}}", 'matrix.n: "0/to/x": a range is a/to/b or a/to/b/by/c, of numbers'),
    ("{run: sh, matrix: {n: [x y, x_y]}}", 'it would be called "a-x_y", and so is a task of "a"'),
    (f"{{run: sh, matrix: {{n: {'x' * 200}}}}}", 'matrix: the name "a-xxx'),
    ("{service: sh, start: {each: a=b}}", "start.each: a service starts once"),
    ("{run: sh, start: {count: 3}}", "start.count: there is no each"),
    ("{run: sh, start: {on: a=b, none: fail}}", "start.none: there is no each"),
    ("{run: sh, start: {each: a=b, count: 3, none: fail}}", "start.none: with a count, the task fails if objects"),
    ("{run: sh, start: {each: a=b, none: fial}}", 'start.none: "fial" is no value of none; did you mean "fail"?'),
    ("{run: sh, start: {on: a=b, each: c=d}}", "start.on: it starts for each object, and waits for no other"),
    ("{run: sh, start: {after: b}}", 'start.after: there is no task "b"'),
    ("{run: sh, start: {after: a}}", "start.after: a waits for itself"),
    ("{service: sh}", "there are services only: nothing would end them"),
    ("{run: sh, start: {on: 'param=t/to'}}", "start.on: selector: expected `/`, found the end"),
    ("{run: sh, start: {each: 'step=0/to/x'}}", 'start.each: selector: step: "x" is no step'),
    ("{run: sh, start: {on: 'step={task}'}}", 'start.on: "{task}" is known when the task starts, and not here'),
    ("{run: sh, start: {bundle: 'a b'}}", 'start.bundle: "a b" is no name of a bundle'),
    ("{run: sh, start: {bundle: 'a//b'}}", 'start.bundle: "a//b" is no name of a bundle'),
    ("{run: sh, resources: {cores: 9}}", "resources.cores: 9 are more than the 8 that this machine has"),
    ("{run: sh, resources: {memory: 17GiB}}", "resources.memory: 17 GiB are more than the 16 GiB of this machine"),
    ("{run: sh, resources: {memory: lots}}", 'resources.memory: expected a size as 500MiB, not "lots"'),
    ("{run: sh, resources: {nodes: 2}}", "resources.nodes: a local task has this one"),
    ("{run: sh, limit: 10 apples}", 'limit: expected a time as 10min, not "10 apples"'),
    ("{run: sh, limit: 0}", "limit: 0 is not between 0 and ten years"),
    ("{run: sh, attempts: 0}", "attempts: expected a whole number from 1 to 1000, not 0"),
    ("{run: sh, executor: slrum}", 'executor: "slrum" is no executor; did you mean "slurm"?'),
]


@pytest.mark.parametrize(("said", "cause"), WRONG)
def test_what_is_wrong_is_told_with_file_line_and_key(said: str, cause: str) -> None:
    with pytest.raises(junctura.errors.InvalidArgument) as caught:
        only(said)
    assert caught.value.subject == "/nowhere/w.yaml:4"
    assert caught.value.cause.startswith("tasks.a")
    assert cause in caught.value.cause


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tasks: {a: {run: sh}}", ':1: "workflow" is missing'),
        ("workflow: w\ntasks: {}", ":2: tasks: a mapping of 0, expected 1 to 100000"),
        ("workflow: w\ntasks:\n  a: {run: sh}\n  a: {run: sh}", ':4: "a" stands there twice, first on line 3'),
        ("workflow: w\ntasks: {a/b: {run: sh}}", ':2: tasks.a/b: "a/b" is not a name of letters, digits, . _ and -'),
        ("workflow: w\ntask: {}\ntasks: {a: {run: sh}}", ':2: task: "task" is no key here; did you mean "tasks"?'),
        (
            "workflow: w\ntasks: {a: {run: [sh, '{pool}']}}",
            'tasks.a.run: "{pool}" is not known: the workflow has no pool',
        ),
        ("workflow: w\ntasks: {a: {run: sh, start: {each: a=b}}}", "tasks.a.start.each: the workflow has no pool"),
        ("workflow: w\ntasks: {a: {run: sh, start: {joined: b}}}", "tasks.a.start.joined: the workflow has no pool"),
        ("workflow: w\npool: model\ntasks: {a: {run: sh}}", ":2: pool: expected the URL of a pool"),
        ("workflow: w\npool: {schema: mar}\ntasks: {a: {run: sh}}", ':2: pool.schema: there is no schema "mar"'),
        (
            "workflow: w\npool: {memory: 17GiB}\ntasks: {a: {run: sh}}",
            ":2: pool.memory: 17 GiB are more than the 16 GiB",
        ),
        ("workflow: w\npool: {service: b}\ntasks: {a: {run: sh}}", ':2: pool.service: there is no task "b"'),
        (
            "workflow: w\npool: {service: a, memory: 1GiB}\ntasks: {a: {service: sh}}",
            ':2: pool.memory: "a" serves it, and says that',
        ),
        (
            "workflow: w\npool: unix:x\ntasks: {a: {run: sh, start: {on: 'a==b'}}}",
            ":3: tasks.a.start.on: selector: expected",
        ),
        (
            "workflow: w\nparallel: 1\ntasks: {a: {run: sh, resources: {cores: 2}}}",
            "2 are more than the 1 that `parallel`",
        ),
        (
            "workflow: w\ntasks:\n  a: {run: sh, matrix: {n: 1/to/60000}}\n  b: {run: sh, matrix: {n: 1/to/60000}}",
            ":4: tasks.b: with these there are more than 100000 tasks",
        ),
        (
            "workflow: w\ntasks:\n  b: {run: sh}\n  a:\n    run: sh\n    start:\n      after:\n      - b\n      - c",
            ':9: tasks.a.start.after: there is no task "c"',
        ),
        ("workflow: w\ntasks:\n  a:\n    run:\n      - sh\n      - '{x}'", ':6: tasks.a.run: "{x}" is no word'),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(junctura.errors.InvalidArgument) as caught:
        workflow(text)
    assert told in str(caught.value)


def with_server(server: str, others: str = "a: {run: sh}") -> Workflow:
    return workflow(f"workflow: w\npool: {{service: server}}\ntasks:\n  server: {server}\n  {others}\n")


def test_a_task_may_serve_the_pool() -> None:
    found = with_server("{service: sh, start: {after: first}}", "first: {run: sh}\n  a: {run: [sh, '{pool}']}")
    assert found.pool == PoolWanted(service="server")


@pytest.mark.parametrize(
    ("server", "others", "told"),
    [
        ("{run: sh}", "a: {run: sh}", ':2: pool.service: "server" is no service, which runs until the others are done'),
        ("{service: sh, matrix: {n: [1, 2]}}", "a: {run: sh}", 'pool.service: there are several of "server"'),
        ("{service: sh, users: a}", "a: {run: sh}", "tasks.server.users: it serves the pool, and so runs for all"),
        ("{service: sh, attempts: 2}", "a: {run: sh}", "tasks.server.attempts: it serves the pool, which would be"),
        ("{service: sh, may_fail: true}", "a: {run: sh}", "tasks.server.may_fail: it serves the pool, without which"),
        ("{service: [sh, '{pool}']}", "a: {run: sh}", "tasks.server: it needs the pool, which is there once"),
        ("{service: sh, start: {joined: a}}", "a: {run: sh}", "tasks.server: it needs the pool, which is there once"),
        (
            "{service: sh, start: {after: m}}",
            "m: {run: sh, matrix: {n: 1}, folder: '{pool}'}\n  a: {run: sh}",
            "tasks.m:",
        ),
        (
            "{service: sh, start: {after: a}}",
            "a: {run: sh, start: {on: a=b}}\n  b: {run: sh}",
            "tasks.a: it needs the pool",
        ),
        ("{service: sh}", "s: {service: sh}", "there are services only: nothing would end them"),
    ],
)
def test_who_cannot_serve_the_pool_is_told(server: str, others: str, told: str) -> None:
    with pytest.raises(junctura.errors.InvalidArgument) as caught:
        with_server(server, others)
    assert told in str(caught.value)


def test_a_program_must_be_one(folder: Path) -> None:
    for program, cause in (("./plain", "plain is no program: chmod"), ("plain", 'write "./plain" for the one beside')):
        with pytest.raises(junctura.errors.InvalidArgument, match=cause):
            workflow(f"workflow: w\ntasks: {{a: {{run: [{program}]}}}}", folder)


def test_programs_that_are_not_known_yet_or_not_local_are_not_looked_for() -> None:
    for said in ("['{run}/made']", "[python, '{run}/made.py']", "[python, -m, anything]", "['{here}/../bin/sh']"):
        if "here" in said:
            assert only(f"{{run: {said}, executor: slurm}}").command == ("/nowhere/../bin/sh",)
        else:
            assert only(f"{{run: {said}}}").command[-1] in ("{run}/made", "{run}/made.py", "anything")


def test_the_published_schema_is_that_of_the_reader() -> None:
    assert PUBLISHED.read_text() == schema.text(), "python -m junctura.workflow._spec.schema > .../workflow.schema.json"
    jsonschema.Draft202012Validator.check_schema(json.loads(PUBLISHED.read_text()))
    (document,) = documents(EVERYTHING.encode(), "f")
    jsonschema.validate(document.value, json.loads(PUBLISHED.read_text()))


words = st.sampled_from(["a", "b", "sh", "{n}", "{pool}", "{", "0/to/3", "a=b", "1h", "2GiB", "unix:x", ""])
plain = words | st.integers(-2, 200_000) | st.booleans() | st.none() | st.floats(allow_nan=False)
keys = st.sampled_from(["a", "b", "n", *schema.WORKFLOW.keys, *schema.TASK.keys, *schema.START.keys])
anything = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=12
)


def nearly(spec: Any) -> st.SearchStrategy[Any]:
    """Mappings whose keys are right, and whose values may be."""
    return st.dictionaries(st.sampled_from(sorted(spec.keys)), anything, max_size=4)


tasks = st.fixed_dictionaries(
    {"run": st.just("sh") | words},
    optional={
        "start": nearly(schema.START),
        "matrix": st.dictionaries(st.sampled_from(["n", "m"]), anything, max_size=2),
        "users": words,
        "folder": anything,
        "limit": plain,
        "resources": nearly(schema.RESOURCES),
    },
)
files = st.fixed_dictionaries(
    {"workflow": st.just("w"), "tasks": st.dictionaries(st.sampled_from(["a", "b", "a-1"]), tasks, max_size=3)},
    optional={"pool": anything, "limit": plain, "parallel": plain},
)


@FIXED
@given(files | anything)
def test_any_document_is_a_workflow_or_an_error_with_a_line(value: Any) -> None:
    try:
        found = workflow_of(Document(value, "f", {(): 1}))
    except junctura.errors.InvalidArgument as error:
        subject = error.subject
    else:
        subject = "f:1"
        jsonschema.validate(value, json.loads(PUBLISHED.read_text()))
        names = [task.name for task in found.tasks]
        assert len(set(names)) == len(names) > 0
    assert subject == "f:1"
