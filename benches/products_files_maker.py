"""Products as they are made without a junction: ``products_files_maker.py files|archive FOLDER OUT FILE…``.

The conventional chain, done well: one process waits for fields (`products_files_ways`), and a task that has all of its
own goes to a pool of processes. It reads and decodes what it needs by itself, brings it to grids, and makes the
product by the functions by which Junctura's workers do. Nothing that is decoded leaves its task. A task is one product
file, or with ``--together`` all files that have the same last step: fields that these share are then decoded once in
the task. How much was read and decoded is printed as JSON.

The processes are forked when everything is imported, so that they have nothing to load.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from products_files_ways import Archive, Files, Name, Source

from junctura.products import load_all
from junctura.products._broker.task_graph import ProductGraph
from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import decode, decodes
from junctura.products._workers.make_product import FieldTransforms, make

Numbers = tuple[int, ...]


@dataclass
class Task:
    """Products, by their numbers in the graph, and the fields that are not there yet."""

    products: Numbers
    missing: set[Name]


class Maker:
    """Makes products within one process."""

    def __init__(self, graph: ProductGraph, source: Source, out: Path) -> None:
        self.graph, self.source, self.out = graph, source, out
        self.transforms = FieldTransforms()

    def make(self, products: Numbers, mark: int) -> Counter[str]:
        """All products of a task; counts what was read for it."""
        counted, before = Counter[str](), decodes()
        names = {name: node for product in products for node, name in inputs_of(self.graph, product)}
        fields: dict[int, Sequence[Field]] = {}
        for name, data in self.source.read(list(names), mark):
            fields[names[name]] = [decode(data, name.attributes())]
            counted["bytes_read"] += len(data)
        for product in products:
            self._make(product, fields)
        counted["decodes"] = decodes() - before
        return counted

    def _make(self, number: int, fields: dict[int, Sequence[Field]]) -> None:
        product = self.graph.products[number]
        given = [field for node in product.nodes for field in self._fields(node, fields)]
        sources = [(str(key), "1") for key in product.wanted.inputs]
        make(product.wanted, given, self.transforms, self.out, sources)

    def _fields(self, number: int, fields: dict[int, Sequence[Field]]) -> Sequence[Field]:
        """Of a node of the graph: decoded, or made of those of its parents."""
        if number not in fields:
            node = self.graph.nodes[number]
            assert node.operation is not None
            given = [field for parent in node.parents for field in self._fields(parent, fields)]
            fields[number] = node.operation(given, self.transforms)
        return fields[number]


def inputs_of(graph: ProductGraph, product: int) -> list[tuple[int, Name]]:
    """The nodes of a product's fields, and which these are."""
    keys = graph.products[product].wanted.inputs
    names = (Name(key["param"], key["number"], key["step"]) for key in keys)
    return list(zip(graph.inputs_of(product), names, strict=True))


def tasks_of(graph: ProductGraph, *, together: bool) -> list[Task]:
    groups: dict[int, Task] = {}
    for product in range(len(graph.products)):
        needed = {name for _, name in inputs_of(graph, product)}
        group = max(name.step for name in needed) if together else product
        task = groups.setdefault(group, Task((), set()))
        task.products += (product,)
        task.missing |= needed
    return list(groups.values())


# Of a process of the pool.
maker: Maker


def begin(graph: ProductGraph, source: Source, out: Path) -> None:
    global maker
    maker = Maker(graph, source, out)


def make_there(products: Numbers, mark: int) -> Counter[str]:
    return maker.make(products, mark)


def run(tasks: Collection[Task], source: Source, pool: ProcessPoolExecutor) -> Counter[str]:
    """Gives each task to the pool once its fields are there."""
    waiting: dict[Name, list[Task]] = defaultdict(list)
    for task in tasks:
        for name in task.missing:
            waiting[name].append(task)
    given: list[Future[Counter[str]]] = []
    while len(given) < len(tasks):
        for name in source.wait():
            for task in waiting.pop(name, []):
                task.missing.discard(name)
                if not task.missing:
                    given.append(pool.submit(make_there, task.products, source.mark()))
    return sum((one.result() for one in given), Counter[str]())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("way", choices=("files", "archive"))
    add("place", type=Path)
    add("out", type=Path)
    add("recipes", nargs="+", type=Path)
    add("--workers", type=int, required=True)
    add("--every", type=float, default=1.0, metavar="SECONDS", help="how often to look for files (1)")
    add("--together", action="store_true", help="all that a step completes is one task")
    given = parser.parse_args()
    graph = ProductGraph(load_all(given.recipes))
    tasks = tasks_of(graph, together=given.together)
    wanted = {name for task in tasks for name in task.missing}
    source: Source = Files(given.place, wanted, given.every) if given.way == "files" else Archive(given.place, wanted)
    begun = (graph, source, given.out)
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(given.workers, mp_context=fork, initializer=begin, initargs=begun) as pool:
        print(json.dumps(run(tasks, source, pool)))


if __name__ == "__main__":
    main()
