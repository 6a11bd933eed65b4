"""Makes the products of recipes, of fields as they arrive: ``python -m junctura.products``.

``junctura run`` does the same.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from junctura._pool_options import DEFAULT_POOL, add_pool_options
from junctura._progress import counted, say, status_of, status_of_error, worded
from junctura.errors import Error, InvalidArgument
from junctura.products import Broker, Failed, Made, Plan, Ran, Recipe, Report, load_all, run
from junctura.products._broker.task_graph import ProductGraph
from junctura.products._input.field_source import is_served
from junctura.products._input.patience import END_S
from junctura.products._map.styling.ranges import doubts, has_range, range_of, unfit_units
from junctura.products._outputs._parameters import is_known, meant
from junctura.products._plan import plan_of
from junctura.products._recipe.definitions import UNKNOWN
from junctura.products._view import ProductsView
from junctura.products._workers.crew import ForkServerProcess, load

# Maximum number of failures shown; --json has all.
_SHOWN = 20
_WORKERS_SHOWN = 8
# Maximum length of a cause, in characters.
_CAUSE_MAX = 400


def main(arguments: Sequence[str] | None = None, *, forks: bool = False) -> int:
    """Runs the command; returns the exit status.

    Parameters
    ----------
    arguments
        Arguments of the command line; by default those of this process.
    forks
        Whether workers may be forked from this process in its current state: it has no resources that they must not
        inherit.

    """
    given = _parser().parse_args(arguments)
    if forks:
        # What is read until workers are forked stays until the end of this process.
        gc.disable()
    wrong: list[Error] = []
    try:
        plan = _plan_of(given, wrong.append)
        recipes = [] if plan or wrong else load_all(given.files, wrong.append)
    except (Error, ImportError) as error:
        say(f"junctura: {worded(error)}", sys.stderr)
        return 2
    for one in wrong:
        say(f"junctura: {worded(one)}", sys.stderr)
    if wrong and not (given.keep_going and recipes):
        return 2
    try:
        if not plan and given.check:
            _check(recipes, given)
            return 1 if wrong else 0
        with _interruptible():
            if plan:
                gc.enable()
                return _run_plan(plan, given)
            graph = _graph_of(recipes, forks=forks)
            fork_server = _fork_server(recipes, graph) if forks and not given.dask else None
            try:
                return _run(graph, wrong, given, fork_server)
            finally:
                if fork_server is not None:
                    fork_server.end()
    except Error as error:
        say(f"junctura: {worded(error)}", sys.stderr)
        return status_of_error(error)
    except KeyboardInterrupt:
        say("junctura: ended; what is finished stays, and the next run makes the rest", sys.stderr)
        return 130


def _graph_of(recipes: Sequence[Recipe], *, forks: bool) -> ProductGraph:
    graph = ProductGraph(recipes)
    if forks:
        gc.freeze()
        gc.enable()
    return graph


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("junctura run", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help="recipes for products, or a plan; in YAML")
    add_pool_options(parser, "junctura run")
    text = "a store behind the pool: its fields are used, too; where no pool is served, it alone"
    add("--behind", metavar="URL", help=text)
    add("--out", type=Path, default=Path("products"), metavar="FOLDER", help="the folder of the products (products)")
    add("--workers", type=_workers, metavar="N", help="processes (auto: by cores and memory)")
    text = (
        "the scheduler of a Dask cluster (tcp://HOST:PORT, or its scheduler file) whose workers make the "
        "products; they must reach the pool and the store, and share the folder of --out with this machine"
    )
    add("--dask", metavar="ADDRESS", help=text)
    text = "end when all clients of this name have disconnected; * matches anything; can be repeated"
    add("--until-gone", action="append", default=[], metavar="NAME", help=text)
    add("--now", action="store_true", help="make the products that the fields present allow, and end")
    text = "end this long after the last progress if no client is left that could offer missing fields (10s)"
    add("--patience", type=_time, default=END_S, metavar="TIME", help=text)
    text = "a pool to which an object is offered for each complete product (schema free)"
    add("--announce", metavar="URL", help=text)
    text = "report invalid recipes and leave them out, and make all others (exit status 1)"
    add("--keep-going", action="store_true", help=text)
    add("--check", action="store_true", help="validate the recipes, and print their inputs and files")
    add("--json", action="store_true", help="print the report, for programs")
    add("-q", "--quiet", action="store_true", help="no progress")
    return parser


def _workers(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal() or not 0 < int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r}: expected auto, or 1 to 1024")
    return int(text)


def _time(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)?", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a time, as 30s or 10min")
    return float(found[1]) * {"ms": 0.001, "min": 60, "m": 60, "h": 3600, "d": 86400}.get(found[2] or "s", 1)


def _pool_of(given: argparse.Namespace) -> str | None:
    """Returns the pool of the fields; None: a store has them, no pool was named, and none is served at the default
    URL.
    """
    if given.pool is None and given.behind and not given.until_gone and not is_served(DEFAULT_POOL):
        return None
    return str(given.pool or DEFAULT_POOL)


def _is_started(given: argparse.Namespace) -> bool:
    """Whether to start a server if none runs: for the default URL, as all commands that wait."""
    return given.pool is None and not given.behind and not given.now


def _plan_of(given: argparse.Namespace, told: Callable[[Error], None]) -> Plan | None:
    """Reports a plan among recipes as an error of the command line, or of its file if only the others are used."""
    return None if given.keep_going and len(given.files) > 1 else plan_of(given.files, told)


def _check(recipes: Sequence[Recipe], given: argparse.Namespace) -> None:
    listed: list[dict[str, Any]] = []
    for recipe in recipes:
        wanted = list(recipe.wanted())
        names = [one.name(**UNKNOWN) for one in wanted]
        inputs = {key for one in wanted for key in one.inputs}
        listed.append({"product": recipe.product, "from": recipe.sources(), "inputs": len(inputs), "files": names})
    if given.json:
        print(json.dumps(listed, indent=1))
        return
    for recipe, one in zip(recipes, listed, strict=True):
        files, of = counted(len(one["files"]), "file"), counted(one["inputs"], "field")
        print(f"{one['product']}: {files} of {of}, {one['files'][0]} the first")
        for source in one["from"]:
            print(f"  from {source}")
        for hint in _hints(recipe):
            print(f"  {hint}")


def _hints(recipe: Recipe) -> Iterator[str]:
    """Yields what is probably wrong in a valid recipe."""
    for param in _unknown(recipe):
        yield f"ecCodes knows no parameter {param}{meant(param)}"
    yield from doubts(recipe)
    yield from unfit_units(recipe)
    if not has_range(recipe):
        yield "each map has a range of colors of its own: write range or levels for one range of all"


def _unknown(recipe: Recipe) -> list[str]:
    """Returns parameters that ecCodes does not have."""
    made = recipe.params if recipe.output.format == "grib2" else ()
    params = dict.fromkeys([*map(str, dict(recipe.words)["param"]), *made])
    return [param for param in params if not is_known(param)]


def _check_plan(plan: Plan, given: argparse.Namespace) -> int:
    wrong = plan.strict_errors()
    for error in wrong:
        say(f"junctura: {worded(error)}", sys.stderr)
    if wrong:
        return 2
    checked = {"plan": plan.where, "sources": [asdict(source) for source in plan.sources]}
    in_words = f"{plan.where}: a plan, of {counted(len(plan.sources), 'source')}"
    print(json.dumps(checked, indent=1) if given.json else in_words)
    for recipe in () if given.json else plan.recipes():
        for hint in _hints(recipe):
            print(f"  {recipe.product}: {hint}")
    return 0


def _fork_server(recipes: Sequence[Recipe], graph: ProductGraph) -> ForkServerProcess | None:
    """Returns a fork server forked from this process, which imports modules for workers while the broker connects."""

    def prepare() -> None:
        # Only the child imports it.
        from junctura.products._workers.warming import warm

        warm(recipes, graph)

    forked = ForkServerProcess.forked(prepare)
    if forked is not None:
        load(forked, recipes)
    return forked


def _run(
    graph: ProductGraph, wrong: Sequence[Error], given: argparse.Namespace, fork_server: ForkServerProcess | None
) -> int:
    options: dict[str, Any] = {"workers": given.workers, "store": given.behind, "until_gone": given.until_gone}
    options |= {"name": given.name, "announce": given.announce, "dask": given.dask}
    options |= {"now": given.now, "patience": given.patience, "start": _is_started(given)}
    is_interrupted = False
    for recipe in graph.recipes:
        for doubt in doubts(recipe):
            say(f"junctura: {recipe.where}: {doubt}", sys.stderr)
    with ProductsView(given.quiet) as view:
        broker = Broker(
            graph.recipes,
            _pool_of(given),
            given.out,
            **options,
            observer=lambda event: view.show(event, broker.expected),
            waits=view.waits,
            graph=graph,
            ready=lambda: view.ready(f"{counted(broker.expected, 'product')} to be made"),
        )
        if fork_server is not None:
            broker.adopt(fork_server)
        try:
            broker.run()
        except KeyboardInterrupt:
            is_interrupted = True
    report = broker.report
    left_out = [worded(error) for error in wrong]
    if given.json:
        said = json.dumps({**document(report), "wrong": left_out}, indent=1)
    else:
        said = "\n".join([_in_words(report, given.out, is_interrupted), *_wrong_in_words(left_out)])
    # The exit status is the result of the run, even if the output cannot be written.
    say(said, sys.stdout)
    if is_interrupted:
        raise KeyboardInterrupt
    return 1 if report.failed or wrong else 0


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Within the block, the first Ctrl-C raises an exception, and the second one ends the process at once."""

    def interrupt(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _run_plan(plan: Plan, given: argparse.Namespace) -> int:
    if given.announce:
        raise InvalidArgument("--announce", "products of recipes are announced, and this is a plan")
    if given.dask:
        raise InvalidArgument("--dask", "products of recipes are made by a cluster, and this is a plan")
    if given.keep_going:
        raise InvalidArgument("--keep-going", "recipes that are wrong are left out, and this is a plan")
    if given.check:
        return _check_plan(plan, given)
    options: dict[str, Any] = {"workers": given.workers, "store": given.behind, "until_gone": given.until_gone}
    options |= {"name": given.name, "now": given.now, "patience": given.patience, "start": _is_started(given)}
    with ProductsView(given.quiet) as view:
        told = _nothing if given.quiet else view.say
        ran = run(
            plan, _pool_of(given), given.out, **options, told=told, waits=view.waits, ready=lambda: view.ready("a plan")
        )
    said = json.dumps(plan_document(ran), indent=1) if given.json else _plan_in_words(ran, are_told=not given.quiet)
    say(said, sys.stdout)
    return 1 if ran.failed else 0


def _nothing(_text: str) -> None:
    """Reports the errors of a quiet plan at its end."""


def plan_document(ran: Ran) -> dict[str, Any]:
    """Returns the result of a plan as JSON."""
    names = ("name", "taken", "given", "failed", "seconds")
    actions = [{name: getattr(counted, name) for name in names} for counted in ran.actions]
    counts = {"fields": ran.fields, "failed": ran.failed, "unfinished": ran.unfinished}
    return {**counts, "actions": actions, "wrong": ran.told}


def _plan_in_words(ran: Ran, *, are_told: bool) -> str:
    lines = [f"{counted(ran.fields, 'field')} came", f"{'action':<12}{'in':>8}{'out':>8}{'wrong':>8}{'ms each':>10}"]
    for one in ran.actions:
        each = 1000 * one.seconds / max(1, one.taken)
        lines.append(f"{one.name:<12}{one.taken:>8}{one.given:>8}{one.failed:>8}{each:>10.2f}")
    failed = [f"{ran.failed - ran.unfinished} went no further"] if ran.failed > ran.unfinished else []
    failed += [f"{ran.unfinished} arrays stayed unfinished"] if ran.unfinished else []
    if failed:
        lines.append(f"{', '.join(failed)}{'' if are_told else ':'}")
        lines += [] if are_told else _first(ran.told)
    return "\n".join(lines)


def _first(told: Sequence[str]) -> list[str]:
    left = len(told) - _SHOWN
    more = [f"  and {left} more, which --json names"] if left > 0 else []
    return [f"  {one}" for one in told[:_SHOWN]] + more


def document(report: Report) -> dict[str, Any]:
    """Returns a report as JSON."""
    counts = ("inputs", "input_bytes", "decodes", "decodes_per_input_max", "kept", "deaths", "unannounced", "seconds")
    names = (*counts, "ended", "nearest")
    return {
        "products": len(report.made),
        "failed": [{"product": one.product, "attributes": one.attributes, "cause": one.cause} for one in report.failed],
        **{name: getattr(report, name) for name in names},
        "product_latency_ms": report.latency_ms,
        "ranges": {product: ends for product, found in report.extremes.items() if (ends := range_of(found))},
        "workers": [{"pid": pid, "peak_bytes": peak} for pid, peak in report.workers.items()],
    }


def _in_words(report: Report, out: Path, is_interrupted: bool = False) -> str:
    made, inputs = counted(len(report.made), "product"), counted(report.inputs, "field")
    lines = [f"{made} in {out}, of {inputs}, in {report.seconds:.1f} s"]
    if report.made:
        latency = report.latency_ms
        lines.append(f"from the last field to the file: p50 {latency['p50']:.0f} ms, p95 {latency['p95']:.0f} ms")
    if report.workers:
        lines.append(_memory_in_words(sorted(report.workers.values(), reverse=True)))
    for product, found in report.extremes.items():
        if ends := range_of(found):
            said = f"{product}: each map has a range of colors of its own"
            lines.append(f"{said}; for one range of all write range: [{ends[0]:g}, {ends[1]:g}]")
    if report.kept:
        lines.append(f"{report.kept} were there already")
    if report.deaths:
        lines.append(f"{report.deaths} workers died; others did their tasks")
    if report.unannounced:
        lines.append(f"{report.unannounced} could not be announced: {report.unannounced_cause}")
    if report.failed:
        why = f", since {report.ended}" if report.ended else ""
        lines.append(f"{len(report.failed)} {'are not' if is_interrupted else 'cannot be'} made{why}:")
        lines += _first([f"{_named(one)}: {_cut(one.short or one.cause)}" for one in report.failed])
        lines += [f"nearest: {text}" for text in report.nearest]
    return "\n".join(lines)


def _memory_in_words(peaks: Sequence[int]) -> str:
    """Returns the peak memory of each worker, the largest first."""
    each = ", ".join(f"{peak / 1e6:.0f}" for peak in peaks[:_WORKERS_SHOWN])
    more = ", ..." if len(peaks) > _WORKERS_SHOWN else ""
    return f"peak memory of {counted(len(peaks), 'worker')}: {each}{more} MB"


def _wrong_in_words(left_out: Sequence[str]) -> list[str]:
    return ["recipes that are wrong were left out:", *_first(left_out)] if left_out else []


def _cut(cause: str) -> str:
    """Abbreviates a list of very many fields."""
    if len(cause) <= _CAUSE_MAX:
        return cause
    begin = cause[:_CAUSE_MAX].rpartition(", ")[0] or cause[:_CAUSE_MAX]
    return f"{begin}, ... (--json has all of it)"


def _named(event: Made | Failed) -> str:
    words = ",".join(f"{name}={value}" for name, value in event.attributes.items() if name in ("step", "number"))
    return f"{event.product} {words}".rstrip()


if __name__ == "__main__":
    sys.exit(status_of(lambda: main(forks=True)))
