"""The task joiner: inputs that wait together are decoded in one task, with the products that need nothing else.

Fields that only this task needs are not kept for other workers. Which inputs belong together, the products decide:

```text
  inputs that wait   t 1   u 1   v 1   t 2   u 2   q 1
  product            [ wind 1   ]                         u and v are joined
  product            [ mean                ]              t 1 and t 2 are joined; with most = 4, all five are not
```
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from junctura.products._broker.life_cycles import ProductState
from junctura.products._broker.task_graph import ProductGraph
from junctura.products._tasks.tasks import DecodeInput, JoinedTasks, MakeProduct, PairWinds, Source
from junctura.products._workers.make_product import is_quick


def companions(graph: ProductGraph, waiting: Mapping[int, DecodeInput], first: int, most: int) -> list[int]:
    """Returns the numbers of waiting tasks to join: the first, and those whose inputs the same products need.

    Parameters
    ----------
    graph
        The graph of all products.
    waiting
        The tasks that no worker has yet, by their numbers.
    first
        The number of the first one.
    most
        Maximum number of tasks. A product that needs more joins none.

    """
    by_node = {node: number for number, task in waiting.items() for node in task.nodes}
    chosen, found, seen = {first}, [first], set[int]()
    # It grows meanwhile.
    for number in found:
        for product in graph.waiting_below(waiting[number].nodes):
            if product in seen or not is_quick(graph.products[product].wanted):
                continue
            seen.add(product)
            needed = {by_node.get(node) for node in graph.missing_inputs(product)}
            fresh = sorted(one for one in needed - chosen if one is not None)
            if None not in needed and len(chosen) + len(fresh) <= most:
                chosen.update(fresh)
                found += fresh
    return found


def joined(
    graph: ProductGraph,
    decodes: Sequence[DecodeInput],
    sources_of: Callable[[int, Collection[str]], tuple[Source, ...]],
) -> JoinedTasks:
    """Joins these tasks with all pairs and quick products that need no other input; the graph records that they begin.

    Parameters
    ----------
    graph
        The graph of all products.
    decodes
        The tasks.
    sources_of
        Returns the objects that a product is made of; those with one of the keys are not decoded yet.

    """
    made = {node.number for one in decodes for node in graph.below(one.nodes)}
    pairs: list[int] = []
    for node in sorted(made):
        pairs += [pair for pair in graph.waiting_pairs(node, made) if pair not in pairs]
    for pair in pairs:
        made.update(node.number for node in graph.below([pair]))
        graph.begin_pair(pair)
    # A product may have failed since its last input arrived.
    products = [product for one in decodes for product in one.products if graph.is_open(product)]
    fresh = {product for node in made for product in graph.nodes[node].products} - {*products}
    for product in sorted(fresh):
        about = graph.products[product]
        if about.state is ProductState.WAITING and about.waiting <= made and is_quick(about.wanted):
            graph.begin(product)
            products.append(product)

    inside = Counter(node for product in products for node in set(graph.products[product].nodes))
    inside.update(parent for pair in pairs for parent in graph.nodes[pair].parents)

    def keep(nodes: Collection[int]) -> tuple[int, ...]:
        return tuple(sorted(node.number for node in graph.below(nodes) if node.uses > inside[node.number]))

    keys = {one.key for one in decodes}
    return JoinedTasks(
        tuple(replace(one, keep=keep(one.nodes), products=(), sources={}) for one in decodes),
        tuple(PairWinds(pair, keep([pair])) for pair in pairs),
        tuple(MakeProduct(product, sources_of(product, keys)) for product in products),
    )
