"""The static parts of a family's plan: those with a parameter are asked for the values that the members give it.

    VALUES ?p0 { "Ann" "Bob" }   ?auth foaf:name ?p0 . ?paper dc:creator ?auth

The values stand as deep in the part as their parameter does, so that what is looked at follows the values and not the
size of the data. The data is asked where it is, without a copy, wherever the query sees the same graphs as the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import numpy as np
from pyoxigraph import Store

from headwater.algebra.nodes import Bgp, Extend, Filter, Graph, Join, LeftJoin, Minus, Node, Project, Values
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import certain_variables, nodes_of, visible_variables
from headwater.execution.static_data import StaticData
from headwater.kernel.columns.ring_index import Ints
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.join_inputs import Input
from headwater.kernel.compiling.pattern_inputs import Leaves
from headwater.kernel.compiling.static_parts import Placed, StaticParts, placed
from headwater.kernel.compiling.static_views import ViewData
from headwater.kernel.families.member_tables import AskFor, FamilyView, FollowsMembers, Key
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.reference.tick_dataset import Dataset
from headwater.terms.model import Literal, NamedNode, Row, Variable
from headwater.terms.stored_forms import is_stored_form
from headwater.windows.settings import QuerySettings


class FamilyStaticParts(StaticParts):
    """Knows the static parts of a family's plan. Those that change with the members are put among the `followers`."""

    def __init__(
        self,
        plan: QueryPlan,
        settings: QuerySettings,
        static: StaticData,
        vocabulary: Vocabulary,
        leaves: Leaves,
        parameters: Sequence[Variable],
        followers: list[FollowsMembers],
    ) -> None:
        super().__init__(plan, settings, static, vocabulary, leaves)
        self._parameters = parameters
        self._holds_stored_forms: bool | None = None
        self._followers = followers

    def view(self, parts: list[Placed]) -> Input:
        """Several static parts joined: constant, or what the members ask for."""
        node = reduce(Join, [placed(*part) for part in parts])
        shown = visible_variables(node)
        mine = [variable for variable in self._parameters if variable in shown]
        if not mine:
            return super().view(parts)

        ask = self._asking_views(node, mine) or self._asking_by_value(node, mine)
        names = tuple(variable.value for variable in shown)
        columns = [shown.index(variable) for variable in mine]
        places = [self._parameters.index(variable) for variable in mine]
        found = FamilyView(names, columns, places, ask)
        self._followers.append(found)
        self.views.append(node)
        self.found.append("asked for what the members of the family name")
        return Input(found, frozenset(variable.value for variable in certain_variables(node)))

    def _asking_by_value(self, node: Node, mine: Sequence[Variable]) -> AskFor:
        shown = visible_variables(node)

        def ask(keys: Sequence[Key]) -> Ints:
            rows = self._vocabulary.terms_of_rows(np.array(keys, dtype=np.int64))
            found = self._by_definition(_asked_for(node, mine, rows), shown)
            return self._vocabulary.ids_of_rows(found, len(shown))

        return ask

    def _asking_views(self, node: Node, mine: Sequence[Variable]) -> AskFor | None:
        """Look the values up in the view of all values, where the data keeps views."""
        if not isinstance(self._static, ViewData):
            return None
        shown = visible_variables(node)
        relation = self._static.view(self._plan, node, lambda data: self._by_definition(node, shown, data)).relation
        key = tuple(shown.index(variable) for variable in mine)

        def ask(keys: Sequence[Key]) -> Ints:
            index = relation.index(key)
            wanted = np.array(keys, dtype=np.int64)
            _, numbers = index.expand(*index.probe(relation.rows, wanted, np.arange(len(key), dtype=np.int32)))
            return relation.rows[numbers]

        return ask

    def _by_definition(self, part: Node, shown: tuple[Variable, ...], data: StaticData | None = None) -> list[Row]:
        if not isinstance(self._static, Store) or not self._sees_the_store(part):
            return super()._by_definition(part, shown, data)
        plan, dataset = self._plan, self._in_place(self._static)
        root = Project(part, shown)
        return ReferenceEvaluator(plan, self._settings, Store(), dataset).over_same_data(root, shown)

    def _sees_the_store(self, node: Node) -> bool:
        """Whether the graphs of a part are those of the store under the same names."""
        if self._plan.default_graphs is not None:
            return False
        named = self._plan.named_graphs
        graphs = [inner.name for inner in nodes_of(node) if isinstance(inner, Graph)]
        return all(isinstance(graph, NamedNode) and (named is None or graph in named) for graph in graphs)

    def _in_place(self, static: Store) -> Dataset:
        """The static data as a dataset that nobody changes."""
        if self._holds_stored_forms is None:
            self._holds_stored_forms = any(is_stored_form(quad.object) for quad in static)
        return Dataset(
            self._plan,
            self._settings.content,
            static,
            named=tuple(self.named_graphs),
            holds_stored_forms=self._holds_stored_forms,
        )


def _asked_for(node: Node, parameters: Sequence[Variable], rows: Sequence[Row]) -> Node:
    """A part with its parameters bound to some combinations of values."""
    values: dict[Variable, Node] = {}
    for place, variable in enumerate(parameters):
        different = dict.fromkeys(row[place] for row in rows)
        values[variable] = _values((variable,), [(term,) for term in different])
    restricted = _restricted(node, values)
    return restricted if len(parameters) == 1 else Join(_values(tuple(parameters), rows), restricted)


def _values(variables: tuple[Variable, ...], rows: Sequence[Row]) -> Values:
    written = (tuple(term for term in row if isinstance(term, NamedNode | Literal)) for row in rows)
    return Values(variables, tuple(written))


def _restricted(node: Node, values: Mapping[Variable, Node]) -> Node:
    """The values beside the patterns in which their parameters stand."""
    match node:
        case Bgp() | Join():
            parts = list(_parts(node))
            patterns = Bgp(tuple(triple for part in parts if isinstance(part, Bgp) for triple in part.triples))
            mine = [rows for variable, rows in values.items() if variable in visible_variables(patterns)]
            others = [_restricted(part, values) for part in parts if not isinstance(part, Bgp)]
            return reduce(Join, [*mine, *([patterns] if patterns.triples else []), *others])
        case LeftJoin(left, right, condition):
            return LeftJoin(_restricted(left, values), right, condition)
        case Minus(left, right):
            return Minus(_restricted(left, values), right)
        case Filter(inner, _) | Extend(inner, _, _) | Graph(_, inner):
            return node.with_children(_restricted(inner, values))
    return node


def _parts(node: Node) -> Iterator[Node]:
    """The inputs of nested joins."""
    if isinstance(node, Join):
        yield from _parts(node.left)
        yield from _parts(node.right)
    else:
        yield node
