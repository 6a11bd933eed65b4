"""The work that products share: every input is decoded once, every transform is done once.

```text
  input ──grid──> array ──┬──────────────> product            an input is an object that a recipe asks for
                          ├──units──> array ──> product       an array is what operations make of one input,
  input ──grid──> array ──┴──────────────> product                or of a pair of them (winds)
                                                              a product gathers arrays, and does what is left to do
```
Broker and workers build the same graph from the same recipes, so its nodes and products have the same numbers. The
graph is independent of processes and pools: the engine reports arrivals, results and failures to it, and it returns the
tasks that are ready. It alone changes the states of pairs and products (`life_cycles`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from junctura._document.located_yaml import Wrong
from junctura.products._broker.life_cycles import (
    OPEN,
    PAIR,
    PRODUCT,
    PairEvent,
    PairState,
    ProductEvent,
    ProductState,
)
from junctura.products._operations import Operation, Winds
from junctura.products._recipe.definitions import Recipe, Wanted
from junctura.products._recipe.mars_words import Key, Value, canonical, number_of


@dataclass
class GraphNode:
    """Fields that several products may need: a decoded input, or the result of an operation on its parents."""

    number: int
    key: Key | None
    operation: Operation | None = None
    parents: tuple[int, ...] = ()
    children: list[int] = field(default_factory=list)
    products: list[int] = field(default_factory=list)
    # Number of pending pairs and products that need the kept fields; if 0, the fields are made within another task.
    uses: int = 0
    is_kept: bool = False
    # The state of a pair.
    pair_state: PairState = PairState.WAITING
    # The key of the object that an input is.
    source: str | None = None

    @property
    def is_pair(self) -> bool:
        return len(self.parents) > 1


@dataclass
class Product:
    """A file to be made from the fields of these nodes."""

    number: int
    wanted: Wanted
    nodes: tuple[int, ...]
    # The nodes that are not available yet.
    waiting: set[int]
    state: ProductState = ProductState.WAITING


@dataclass(frozen=True)
class ReadyTasks:
    """The work that is ready: pairs to be transformed, products to be made."""

    pairs: tuple[int, ...] = ()
    products: tuple[int, ...] = ()


class ProductGraph:
    """All inputs, arrays and products of a list of recipes.

    Parameters
    ----------
    recipes
        The recipes; their order numbers the nodes.

    """

    def __init__(self, recipes: Sequence[Recipe]) -> None:
        self.recipes = list(recipes)
        self.nodes: list[GraphNode] = []
        self.products: list[Product] = []
        self._inputs: dict[Key, int] = {}
        self._made: dict[tuple[Any, ...], int] = {}
        # Number of products that are neither made nor failed.
        self.left = 0
        # By parameter, the requests for other fields than the ones before.
        self._askers: dict[Value, list[Recipe]] = defaultdict(list)
        # The numbers that recipes use for parameters, by ecCodes identifier.
        self._numbers: dict[str, set[Value]] = defaultdict(set)
        for asker in {tuple(recipe.sources()): recipe for recipe in recipes}.values():
            for param in dict(asker.words)["param"]:
                self._askers[param].append(asker)
                if (number := number_of(param)) is not None:
                    self._numbers[str(number)].add(param)
        for recipe in recipes:
            for wanted in recipe.wanted():
                self._add(recipe, wanted)
        self.left = len(self.products)

    def _add(self, recipe: Recipe, wanted: Wanted) -> None:
        number, nodes = len(self.products), self._shared(recipe, wanted.inputs)
        self.products.append(Product(number, wanted, tuple(nodes), set(nodes)))
        for node in set(nodes):
            self.nodes[node].products.append(number)
            self.nodes[node].uses += 1

    def _shared(self, recipe: Recipe, inputs: Iterable[Key]) -> list[int]:
        """Adds the results of the leading operations, on each input alone or on pairs."""
        nodes: list[int] = []
        pairs: dict[Key, list[int]] = defaultdict(list)
        left: dict[Key, tuple[Operation, ...]] = {}
        for key in inputs:
            operations = recipe.prefix(key)
            at = next((at for at, operation in enumerate(operations) if isinstance(operation, Winds)), None)
            node = self._chain(operations[:at], (self._input(key),))
            if at is None:
                nodes.append(node)
                continue
            both = Key({word: value for word, value in key.items() if word != "param"})
            pairs[both].append(node)
            left[both] = operations[at:]
        return nodes + [self._chain(left[both], tuple(parents)) for both, parents in pairs.items()]

    def _chain(self, operations: Iterable[Operation], nodes: tuple[int, ...]) -> int:
        for operation in operations:
            nodes = (self._operate(operation, nodes),)
        return nodes[0]

    def _input(self, key: Key) -> int:
        if key not in self._inputs:
            self._inputs[key] = self._node(GraphNode(len(self.nodes), key))
        return self._inputs[key]

    def _operate(self, operation: Operation, parents: tuple[int, ...]) -> int:
        name = (operation.text, parents)
        if name not in self._made:
            self._made[name] = self._node(GraphNode(len(self.nodes), None, operation, parents))
            for parent in parents:
                self.nodes[parent].children.append(self._made[name])
                # A pair is made when both parents are kept; the result of one parent is made together with it.
                self.nodes[parent].uses += len(parents) > 1
        return self._made[name]

    def _node(self, node: GraphNode) -> int:
        self.nodes.append(node)
        return node.number

    def inputs(self, attributes: Mapping[str, Any]) -> list[int]:
        """Returns the inputs that match an object with these attributes; as in selectors, parameters may be numbers."""
        try:
            param = canonical("param", attributes["param"])
        except (KeyError, Wrong):
            return []
        names = {param, *self._numbers.get(str(attributes.get("paramId")), ())}
        keys = {recipe.key({**attributes, "param": name}) for name in names for recipe in self._askers.get(name, [])}
        return sorted(self._inputs[key] for key in keys if key is not None and key in self._inputs)

    def kept_of(self, inputs: Iterable[int]) -> list[int]:
        """Returns the nodes to keep when these inputs are decoded: results of the inputs alone that other work
        needs.
        """
        return [node.number for node in self.below(inputs) if node.uses]

    def last_of(self, inputs: Iterable[int]) -> list[int]:
        """Returns the waiting products that need only results of these inputs, which no other product needs."""
        nodes = {node.number: node for node in self.below(inputs) if node.uses == 1}
        products = dict.fromkeys(product for node in nodes.values() for product in node.products)
        waiting = [number for number in products if self.products[number].state is ProductState.WAITING]
        return [number for number in waiting if nodes.keys() >= self.products[number].waiting]

    def root(self, number: int) -> int:
        """Returns the only input or pair that a node depends on."""
        while len(self.nodes[number].parents) == 1:
            (number,) = self.nodes[number].parents
        return number

    def below(self, nodes: Iterable[int]) -> Iterator[GraphNode]:
        """Returns these nodes and the nodes derived from them alone; parents first."""
        left = list(nodes)
        while left:
            node = self.nodes[left.pop(0)]
            yield node
            left += [child for child in node.children if not self.nodes[child].is_pair]

    def roots(self, nodes: Iterable[int]) -> list[int]:
        """Returns the inputs that these nodes depend on."""
        found: dict[int, None] = {}
        left = list(nodes)
        while left:
            node = self.nodes[left.pop(0)]
            left += node.parents
            if not node.parents:
                found[node.number] = None
        return list(found)

    def waiting_below(self, nodes: Iterable[int]) -> list[int]:
        """Returns the products that need these inputs and have not begun."""
        found: dict[int, None] = {}
        left = list(nodes)
        while left:
            node = self.nodes[left.pop(0)]
            left += node.children
            found.update((one, None) for one in node.products if self.products[one].state is ProductState.WAITING)
        return list(found)

    def missing_inputs(self, product: int) -> list[int]:
        """Returns the inputs that a product waits for, whether or not they have arrived."""
        found: dict[int, None] = {}
        left = sorted(self.products[product].waiting)
        while left:
            node = self.nodes[left.pop(0)]
            if node.is_kept:
                continue
            left += node.parents
            if not node.parents:
                found[node.number] = None
        return list(found)

    def waiting_pairs(self, node: int, made: Collection[int]) -> list[int]:
        """Returns the pairs of a node that have not begun, and whose other parent is made or kept, too."""
        children = (self.nodes[child] for child in self.nodes[node].children)
        return [
            child.number
            for child in children
            if child.is_pair
            and child.pair_state is PairState.WAITING
            and all(parent in made or self.nodes[parent].is_kept for parent in child.parents)
        ]

    def keep(self, nodes: Iterable[int]) -> ReadyTasks:
        """Records that these nodes are available."""
        pairs, products = [], []
        for node in map(self.nodes.__getitem__, nodes):
            if node.is_kept:
                continue
            node.is_kept = True
            children = [child for child in map(self.nodes.__getitem__, node.children) if child.is_pair]
            pairs += [child.number for child in children if self._is_pair_ready(child)]
            products += [number for number in node.products if self._got(self.products[number], node.number)]
        return ReadyTasks(tuple(pairs), tuple(products))

    def _is_pair_ready(self, pair: GraphNode) -> bool:
        """Returns whether a pair begins now."""
        if pair.pair_state is not PairState.WAITING or not all(self.nodes[parent].is_kept for parent in pair.parents):
            return False
        self.begin_pair(pair.number)
        return True

    def _got(self, product: Product, node: int) -> bool:
        """Returns whether a product begins now."""
        product.waiting.discard(node)
        if product.waiting or product.state is not ProductState.WAITING:
            return False
        self.begin(product.number)
        return True

    def begin(self, number: int) -> None:
        """Records that a task makes a product, from kept fields or from the last ones as soon as they are decoded."""
        self._move(self.products[number], ProductEvent.BEGUN)

    def begin_pair(self, number: int) -> None:
        """Records that a task makes a pair."""
        self._move_pair(self.nodes[number], PairEvent.BEGUN)

    def part(self, pairs: Iterable[int], products: Iterable[int]) -> list[int]:
        """Records that the task that was to make these has ended without them, and that others will make them; returns
        the nodes that are no longer needed.
        """
        free = []
        for product in products:
            self._move(self.products[product], ProductEvent.PARTED)
        for node in map(self.nodes.__getitem__, pairs):
            self._move_pair(node, PairEvent.PARTED)
            free += self._drop_unneeded(node)
        return free

    def _drop_unneeded(self, pair: GraphNode) -> list[int]:
        """Drops a waiting pair that nothing needs; returns the parents that are no longer needed."""
        if pair.pair_state is not PairState.WAITING or self.kept_of([pair.number]):
            return []
        self._move_pair(pair, PairEvent.DROPPED)
        return self.use(pair.parents)

    def end_pair(self, number: int, *, is_made: bool) -> list[int]:
        """Records that a pair is made, or cannot be; returns the parents that are no longer needed."""
        pair = self.nodes[number]
        self._move_pair(pair, PairEvent.MADE if is_made else PairEvent.FAILED)
        return self.use(pair.parents)

    @staticmethod
    def _move(product: Product, event: ProductEvent) -> None:
        product.state = PRODUCT.next(product.state, event, product.number)

    @staticmethod
    def _move_pair(pair: GraphNode, event: PairEvent) -> None:
        pair.pair_state = PAIR.next(pair.pair_state, event, pair.number)

    def use(self, nodes: Iterable[int]) -> list[int]:
        """Records that a dependent has received these nodes; returns those that are no longer needed."""
        free = []
        for node in map(self.nodes.__getitem__, nodes):
            node.uses -= 1
            if node.uses == 0:
                free.append(node.number)
        return free

    def found(self, product: int) -> list[int]:
        """Records that a product exists already; returns the nodes that are no longer needed."""
        return self._end(self.products[product], ProductEvent.FOUND)

    def done(self, product: int) -> list[int]:
        """Records that a product is made; returns the nodes that are no longer needed."""
        return self._end(self.products[product], ProductEvent.MADE)

    def fail(self, product: int) -> list[int]:
        """Records that a product cannot be made; returns the nodes that are no longer needed."""
        return self._end(self.products[product], ProductEvent.FAILED)

    def _end(self, product: Product, event: ProductEvent) -> list[int]:
        was_open = self.is_open(product.number)
        self._move(product, event)
        return self._settle(product) if was_open else []

    def _settle(self, product: Product) -> list[int]:
        self.left -= 1
        free, left = self.use(set(product.nodes)), list(product.nodes)
        while left:
            node = self.nodes[left.pop()]
            left += node.parents
            if node.is_pair:
                free += self._drop_unneeded(node)
        return free

    def fail_node(self, node: int) -> list[int]:
        """Records that fields are unavailable; returns the products that cannot be made without them."""
        failed: set[int] = set()
        left = [node]
        while left:
            one = self.nodes[left.pop()]
            failed.update(number for number in one.products if self.is_open(number))
            left += one.children
        return sorted(failed)

    def is_open(self, number: int) -> bool:
        """Whether a product is neither made nor failed."""
        return self.products[number].state in OPEN

    def open(self) -> list[Product]:
        """Returns the products that are neither made nor failed."""
        return [product for product in self.products if self.is_open(product.number)]

    def inputs_of(self, product: int) -> list[int]:
        """Returns the inputs of a product, in its order."""
        keys = self.products[product].wanted.inputs
        return [self._inputs[key] for key in keys]

    def missing(self, product: Product) -> list[Key]:
        """Returns the inputs that a product waits for."""
        found, left = [], sorted(product.waiting)
        while left:
            node = self.nodes[left.pop(0)]
            if node.parents:
                left += node.parents
            elif node.source is None and node.key is not None and node.key not in found:
                found.append(node.key)
        return found
