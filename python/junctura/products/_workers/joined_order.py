"""The order in which a worker does joined tasks, and when it needs a field for the last time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from junctura.products._broker.task_graph import ProductGraph
from junctura.products._tasks.tasks import DecodeInput, JoinedTasks, MakeProduct, PairWinds


class DueTasks(NamedTuple):
    """The work that becomes possible with an input of joined tasks.

    Attributes
    ----------
    pairs, products
        Those that need no later input.
    over
        The nodes whose fields nothing else needs.

    """

    decode: DecodeInput
    pairs: Sequence[PairWinds]
    products: Sequence[MakeProduct]
    over: Sequence[int]


class JoinedOrder:
    """The order of joined tasks: inputs as they are given, and behind each one what needs no later one."""

    def __init__(self, graph: ProductGraph, task: JoinedTasks) -> None:
        self._graph, self._task = graph, task
        self._place = {node: at for at, one in enumerate(task.decodes) for node in one.nodes}

    def __iter__(self) -> Iterator[DueTasks]:
        pairs, products = defaultdict(list), defaultdict(list)
        for pair in self._task.pairs:
            pairs[self._due([pair.pair])].append(pair)
        for product in self._task.products:
            products[self._due(self._graph.products[product.product].nodes)].append(product)
        over = self._over(pairs, products)
        for at, decode in enumerate(self._task.decodes):
            yield DueTasks(decode, pairs[at], products[at], over[at])

    def _due(self, nodes: Iterable[int]) -> int:
        """Returns the place of the last input that nodes need."""
        return max(self._place.get(root, 0) for root in self._graph.roots(nodes))

    def _over(
        self, pairs: Mapping[int, Sequence[PairWinds]], products: Mapping[int, Sequence[MakeProduct]]
    ) -> dict[int, list[int]]:
        """Returns by place the nodes that are needed there for the last time."""
        last: dict[int, int] = {}
        for at, decode in enumerate(self._task.decodes):
            left = [*decode.nodes, *decode.keep]
            left += [node for pair in pairs[at] for node in (pair.pair, *pair.keep)]
            left += [node for product in products[at] for node in self._graph.products[product.product].nodes]
            while left:
                node = left.pop()
                if last.get(node) != at:
                    last[node] = at
                    left += self._graph.nodes[node].parents
        over: dict[int, list[int]] = defaultdict(list)
        for node, at in last.items():
            over[at].append(node)
        return over
