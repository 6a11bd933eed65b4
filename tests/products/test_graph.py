"""What products share: each input and transform once, each product once, and nothing kept longer than it is needed."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from junctura._document.located_yaml import documents
from junctura.products._broker.life_cycles import ProductState
from junctura.products._broker.task_graph import ProductGraph
from junctura.products._recipe.definitions import Recipe
from junctura.products._recipe.mars_words import Key
from junctura.products._recipe.reading import recipe_of

FIXED = settings(derandomize=True, database=None, deadline=None, max_examples=150)
CSV = "to: {format: csv, name: '%s_{step}.csv'}"
GRID = f"product: grid\nfrom: {{param: t, levelist: 850, step: 0/6}}\ndo: [grid: 10/10]\n{CSV % 'grid'}\n"
UNITS = GRID.replace("grid_", "units_").replace(": grid\n", ": units\n").replace("10/10]", "10/10, units: {t: degC}]")
WINDS = (
    "product: winds\nfrom: {param: [vo, d, t], levelist: 850, step: 0/6}\n"
    f"do: [wind: {{grid: 10/10}}, grid: 10/10]\n{CSV % 'winds'}\n"
)
JET = (
    WINDS.replace("winds", "jet")
    .replace(", t]", "]")
    .replace("grid: 10/10]", "crop: {north: 60, west: 0, south: 0, east: 90}]")
)
PLAIN = f"product: plain\nfrom: {{param: t, levelist: 850, step: 0/to/12/by/6}}\n{CSV % 'plain'}\n"
GATHERED = (
    "product: gathered\nfrom: {param: [t, d], levelist: 850, step: 0/6}\n"
    "do: [grid: 10/10]\nto: {format: csv, gather: step, name: gathered.csv}\n"
)
ALL = (GRID, UNITS, WINDS, JET, PLAIN, GATHERED)


def recipes(*texts: str) -> list[Recipe]:
    return [recipe_of(document) for text in texts for document in documents(text.encode(), "t.yaml")]


def graph(*texts: str) -> ProductGraph:
    return ProductGraph(recipes(*texts))


def inputs(made: ProductGraph) -> list[int]:
    return [node.number for node in made.nodes if node.key is not None]


def node(made: ProductGraph, param: str, step: int) -> int:
    (found,) = made.inputs({"param": param, "levelist": 850, "step": str(step)})
    return found


def texts(made: ProductGraph) -> list[str]:
    return [one.operation.name if one.operation else str(one.key) for one in made.nodes]


@pytest.mark.parametrize(
    ("asked", "without_name", "without_number"),
    [("131", 1, 0), ("131.128", 0, 0), ("u", 0, 1), ("[u, 131]", 1, 1), ("[131, '131.128', u]", 1, 1)],
)
def test_a_parameter_is_found_by_its_number_as_by_a_selector(
    asked: str, without_name: int, without_number: int
) -> None:
    made = graph(f"product: p\nfrom: {{param: {asked}, step: 0}}\nto: {{format: csv, name: p}}\n")
    wind = {"param": "u", "paramId": 131, "step": "0"}
    assert made.inputs(wind) == inputs(made)
    assert made.inputs({**wind, "param": "v", "paramId": 132}) == []
    # A field that has no name, as of a store of FDB, and one that has no number.
    assert len(made.inputs({"param": "131", "step": "0"})) == without_name
    assert len(made.inputs({"param": "u", "step": "0"})) == without_number


def test_products_share_inputs_and_what_is_done_first() -> None:
    made = graph(GRID, UNITS, WINDS)
    names = texts(made)
    assert len(inputs(made)) == 6
    assert {name: names.count(name) for name in ("grid", "units", "wind")} == {"grid": 4, "units": 2, "wind": 2}
    t = made.nodes[node(made, "t", 0)]
    (gridded,) = map(made.nodes.__getitem__, t.children)
    assert t.uses == 0, "only its grid is wanted"
    assert gridded.uses == 2
    assert [made.products[number].wanted.recipe.product for number in gridded.products] == ["grid", "winds"]
    (in_degrees,) = map(made.nodes.__getitem__, gridded.children)
    assert in_degrees.uses == 1


def test_an_input_is_the_last_of_a_product_where_no_other_one_needs_what_comes_of_it() -> None:
    made = graph(GRID, UNITS, WINDS, GATHERED)

    def last_of(param: str) -> list[str]:
        return [made.products[number].wanted.recipe.product for number in made.last_of([node(made, param, 0)])]

    assert last_of("t") == ["units"]
    assert last_of("vo") == last_of("d") == []
    (units,) = made.last_of([node(made, "t", 0)])
    made.fail(units)
    assert last_of("t") == []
    plain = graph(PLAIN)
    assert plain.last_of(inputs(plain)) == [0, 1, 2]


def test_an_input_is_the_last_of_a_product_when_all_others_are_kept() -> None:
    made = graph(GATHERED)
    *others, last = inputs(made)
    for number in others:
        assert made.last_of([number]) == []
        made.keep(made.kept_of([number]))
    assert made.last_of([last]) == [0]


def test_broker_and_workers_number_everything_alike() -> None:
    one, other = graph(*ALL), graph(*ALL)
    assert one.nodes == other.nodes
    assert [product.nodes for product in one.products] == [product.nodes for product in other.products]


def test_an_input_that_two_products_take_as_it_is_comes_once() -> None:
    made = graph(PLAIN, PLAIN.replace("plain", "other"))
    assert len(made.nodes) == 3
    assert [one.uses for one in made.nodes] == [2, 2, 2]


def test_a_field_is_an_input_for_each_way_of_asking() -> None:
    with_members = GRID.replace("step: 0/6", "step: 0, number: 1/2").replace("_{step}", "_{number}")
    made = graph(with_members, PLAIN)
    said = {"param": "t", "levelist": 850, "step": 0, "number": 2, "class": "od"}
    assert [made.nodes[number].key for number in made.inputs(said)] == [
        Key(param="t", levelist=850, step=0, number=2),
        Key(param="t", levelist=850, step=0),
    ]
    assert len(made.inputs({**said, "number": 3})) == 1
    for other in ({"param": "q"}, {"step": 24}, {"levelist": "top"}):
        assert made.inputs({**said, **other}) == []
    assert made.inputs({}) == []


def test_what_comes_of_an_input_alone_is_made_in_passing() -> None:
    made = graph(GRID, UNITS, PLAIN)
    t = node(made, "t", 0)
    assert [texts(made)[number] for number in made.kept_of([t])] == [str(made.nodes[t].key), "grid", "units"]
    assert [texts(made)[number] for number in made.kept_of([node(made, "t", 12)])] == ["levelist=850,param=t,step=12"]


def test_a_pair_is_ready_once_when_both_are_there() -> None:
    made = graph(WINDS, JET)
    vo, d, t = (node(made, param, 0) for param in ("vo", "d", "t"))
    assert made.kept_of([vo]) == [vo], "it waits for the other one"
    assert made.keep([d]).pairs == ()
    ready = made.keep([vo])
    (pair,) = ready.pairs
    assert ready.products == ()
    assert made.nodes[pair].parents == (vo, d)
    assert made.keep([vo, d]).pairs == (), "they were there before"
    ready = made.keep(made.kept_of([pair]))
    assert [made.products[number].wanted.recipe.product for number in ready.products] == ["jet"]
    assert made.end_pair(pair, is_made=True) == [vo, d]
    ready = made.keep(made.kept_of([t]))
    assert [made.products[number].wanted.recipe.product for number in ready.products] == ["winds"]


def test_nodes_are_free_when_the_last_product_has_them() -> None:
    made = graph(GRID, UNITS, WINDS)
    t = node(made, "t", 0)
    kept = made.kept_of([t])
    ready = made.keep(kept)
    assert [made.products[number].wanted.recipe.product for number in ready.products] == ["grid", "units"]
    grid_product, units_product = ready.products
    assert made.done(grid_product) == [], "the winds wait for it"
    assert made.done(units_product) == [kept[1]]
    (winds,) = [number for number in made.nodes[kept[0]].products if made.is_open(number)]
    assert {kept[0], node(made, "vo", 0), node(made, "d", 0)} < set(made.fail(winds))
    assert [product.number for product in made.open()] == [1, 3, 5]
    assert made.left == 3


@pytest.mark.parametrize("end", ["found", "fail"])
def test_a_pair_that_nobody_waits_for_any_more_is_not_made(end: str) -> None:
    """Else what a run before has finished would be decoded again, and what came for it would be kept for ever."""
    made = graph(WINDS, JET)
    vo, d = node(made, "vo", 0), node(made, "d", 0)
    made.keep([vo])
    of_this = [product for product in made.products if product.wanted.attributes["step"] == 0]
    freed = [made.found(one.number) if end == "found" else made.fail(one.number) for one in of_this]
    assert {vo, d} <= set(freed[1])
    assert not {vo, d} & set(freed[0])
    assert made.kept_of([d]) == []
    assert made.keep([d]).pairs == ()


def test_what_fails_takes_with_it_whatever_is_made_of_it_and_nothing_else() -> None:
    made = graph(GRID, UNITS, WINDS, JET)
    failed = made.fail_node(node(made, "d", 6))
    assert [(made.products[n].wanted.recipe.product, made.products[n].wanted.attributes["step"]) for n in failed] == [
        ("winds", 6),
        ("jet", 6),
    ]
    for number in failed:
        made.fail(number)
    assert made.fail_node(node(made, "d", 6)) == [], "each is given up once"
    gridded = made.nodes[node(made, "t", 0)].children[0]
    assert {made.products[n].wanted.recipe.product for n in made.fail_node(gridded)} == {"grid", "units", "winds"}


def test_a_product_that_was_given_up_is_not_begun() -> None:
    made = graph(GRID)
    made.fail(0)
    assert made.kept_of([node(made, "t", 0)]) == []
    assert made.keep(made.nodes[node(made, "t", 0)].children).products == ()


def test_what_is_missing_is_named_by_inputs_that_have_not_come() -> None:
    made = graph(WINDS)
    winds = made.products[0]
    assert [str(key) for key in made.missing(winds)] == [
        f"levelist=850,param={param},step=0" for param in ("t", "vo", "d")
    ]
    for param in ("vo", "t"):
        one = made.nodes[node(made, param, 0)]
        one.source = "some key"
        made.keep(made.kept_of([one.number]))
    assert [key["param"] for key in made.missing(winds)] == ["d"]


def test_inputs_of_a_product_come_in_its_order() -> None:
    made = graph(GATHERED)
    assert [made.nodes[number].key for number in made.inputs_of(0)] == list(made.products[0].wanted.inputs)


class Broker:
    """Does what can be done in any order, and checks that it is done once."""

    def __init__(self, made: ProductGraph, chance: random.Random, failing: Iterable[int]) -> None:
        self.graph, self.chance, self.failing = made, chance, set(failing)
        self.begun: list[int] = []
        self.kept: list[int] = []
        self.freed: list[int] = []
        self.left = [("input", number) for number in inputs(made)]

    def run(self) -> None:
        while self.left:
            kind, number = self.left.pop(self.chance.randrange(len(self.left)))
            {"input": self.input, "pair": self.pair, "product": self.product}[kind](number)

    def input(self, number: int) -> None:
        keep = self.graph.kept_of([number])
        if keep:
            self.take(keep)

    def pair(self, number: int) -> None:
        self.take(self.graph.kept_of([number]))
        self.free(self.graph.end_pair(number, is_made=True))

    def take(self, keep: list[int]) -> None:
        bad = self.failing.intersection(keep)
        for number in bad:
            for product in self.graph.fail_node(number):
                self.free(self.graph.fail(product))
        kept = [number for number in keep if number not in bad]
        ready = self.graph.keep(kept)
        self.kept += kept
        self.freed += [number for number in kept if not self.graph.nodes[number].uses]
        self.left += [("pair", number) for number in ready.pairs] + [("product", number) for number in ready.products]

    def product(self, number: int) -> None:
        if self.graph.is_open(number):
            self.begun.append(number)
            assert all(self.graph.nodes[one].uses and one in self.kept for one in self.graph.products[number].nodes)
            self.free(self.graph.done(number))

    def free(self, numbers: list[int]) -> None:
        self.freed += [number for number in numbers if self.graph.nodes[number].is_kept]


CHOSEN = st.lists(st.sampled_from(ALL), min_size=1, unique=True)


@FIXED
@given(CHOSEN, st.integers(0, 2**32))
def test_in_any_order_every_product_is_ready_once_and_every_node_is_freed_once(chosen: list[str], seed: int) -> None:
    made = graph(*chosen)
    broker = Broker(made, random.Random(seed), [])
    broker.run()
    assert sorted(broker.begun) == [product.number for product in made.products]
    assert sorted(broker.freed) == sorted(broker.kept) == sorted(set(broker.kept))
    assert [one.uses for one in made.nodes] == [0] * len(made.nodes)
    assert (made.left, made.open()) == (0, [])


@FIXED
@given(CHOSEN, st.integers(0, 2**32), st.sets(st.integers(0, 30)))
def test_whatever_fails_every_product_ends_once_and_nothing_stays(chosen: list[str], seed: int, bad: set[int]) -> None:
    made = graph(*chosen)
    broker = Broker(made, random.Random(seed), bad)
    broker.run()
    failed = {product.number for product in made.products if product.state is ProductState.FAILED}
    assert failed.isdisjoint(broker.begun)
    assert failed | set(broker.begun) == {product.number for product in made.products}
    assert len(broker.begun) == len(set(broker.begun))
    assert sorted(broker.freed) == sorted(broker.kept) == sorted(set(broker.kept))
    assert [one.uses for one in made.nodes] == [0] * len(made.nodes)
    assert made.left == 0
