"""The static parts of a family's plan: those with a parameter are evaluated for the values of the members.

    VALUES ?p0 { "Ann" "Bob" }   ?auth foaf:name ?p0 . ?paper dc:creator ?auth

The values stand as deep in the part as their parameter does, so that the work follows the number of values and not the
size of the data. The store itself is queried, without a copy, wherever the query sees the same graphs as the store.
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
from headwater.kernel.compiling.join_inputs import JoinInput
from headwater.kernel.compiling.static_parts import PlacedPart, StaticParts, with_graph
from headwater.kernel.compiling.static_views import ViewData
from headwater.kernel.families.member_tables import FamilyViewOperator, Key, LookUp, MemberFollower
from headwater.reference.reference_evaluator import ReferenceEvaluator
from headwater.reference.tick_dataset import TickDataset
from headwater.terms.model import Literal, NamedNode, Row, Variable
from headwater.terms.stored_forms import is_stored_form
from headwater.windows.settings import QuerySettings


class FamilyStaticParts(StaticParts):
    """Evaluates the static parts of a family's plan. Those that change with the members are added to `followers`."""

    def __init__(
        self,
        plan: QueryPlan,
        settings: QuerySettings,
        static: StaticData,
        vocabulary: Vocabulary,
        parameters: Sequence[Variable],
        followers: list[MemberFollower],
    ) -> None:
        super().__init__(plan, settings, static, vocabulary)
        self._parameters = parameters
        self._holds_stored_forms: bool | None = None
        self._followers = followers

    def view(self, parts: list[PlacedPart]) -> JoinInput:
        """Several static parts joined: constant, or the rows for the values of the members."""
        node = reduce(Join, [with_graph(*part) for part in parts])
        shown = visible_variables(node)
        mine = [variable for variable in self._parameters if variable in shown]
        if not mine:
            return super().view(parts)

        ask = self._view_lookup(node, mine) or self._reference_lookup(node, mine)
        names = tuple(variable.value for variable in shown)
        columns = [shown.index(variable) for variable in mine]
        places = [self._parameters.index(variable) for variable in mine]
        view = FamilyViewOperator(names, columns, places, ask)
        self._followers.append(view)
        self.views.append(node)
        self.view_locations.append("asked for what the members of the family name")
        return JoinInput(view, frozenset(variable.value for variable in certain_variables(node)))

    def _reference_lookup(self, node: Node, mine: Sequence[Variable]) -> LookUp:
        shown = visible_variables(node)

        def ask(keys: Sequence[Key]) -> Ints:
            rows = self._vocabulary.terms_of_rows(np.array(keys, dtype=np.int64))
            solutions = self._evaluate_by_reference(_restrict_to_rows(node, mine, rows), shown)
            return self._vocabulary.ids_of_rows(solutions, len(shown))

        return ask

    def _view_lookup(self, node: Node, mine: Sequence[Variable]) -> LookUp | None:
        """Looks values up in the view of the whole part, where the data keeps views."""
        if not isinstance(self._static, ViewData):
            return None
        shown = visible_variables(node)
        relation = self._static.view(
            self._plan, node, lambda data: self._evaluate_by_reference(node, shown, data)
        ).relation
        key = tuple(shown.index(variable) for variable in mine)

        def ask(keys: Sequence[Key]) -> Ints:
            index = relation.index(key)
            wanted = np.array(keys, dtype=np.int64)
            _, numbers = index.expand(*index.probe(relation.rows, wanted, np.arange(len(key), dtype=np.int32)))
            return relation.rows[numbers]

        return ask

    def _evaluate_by_reference(
        self, part: Node, shown: tuple[Variable, ...], data: StaticData | None = None
    ) -> list[Row]:
        if not isinstance(self._static, Store) or not self._has_graphs_of_store(part):
            return super()._evaluate_by_reference(part, shown, data)
        plan, dataset = self._plan, self._dataset_of(self._static)
        root = Project(part, shown)
        return ReferenceEvaluator(plan, self._settings, Store(), dataset).evaluate_static_part(root, shown)

    def _has_graphs_of_store(self, node: Node) -> bool:
        """Whether the graphs of a part are those of the store under the same names."""
        if self._plan.default_graphs is not None:
            return False
        named = self._plan.named_graphs
        graphs = [inner.name for inner in nodes_of(node) if isinstance(inner, Graph)]
        return all(isinstance(graph, NamedNode) and (named is None or graph in named) for graph in graphs)

    def _dataset_of(self, static: Store) -> TickDataset:
        """The static data as a dataset, without a copy."""
        if self._holds_stored_forms is None:
            self._holds_stored_forms = any(is_stored_form(quad.object) for quad in static)
        return TickDataset(
            self._plan,
            self._settings.content,
            static,
            named=tuple(self.named_graphs),
            holds_stored_forms=self._holds_stored_forms,
        )


def _restrict_to_rows(node: Node, parameters: Sequence[Variable], rows: Sequence[Row]) -> Node:
    """A part with its parameters bound to some combinations of values."""
    values: dict[Variable, Node] = {}
    for place, variable in enumerate(parameters):
        different = dict.fromkeys(row[place] for row in rows)
        values[variable] = _values((variable,), [(term,) for term in different])
    restricted = _restrict(node, values)
    return restricted if len(parameters) == 1 else Join(_values(tuple(parameters), rows), restricted)


def _values(variables: tuple[Variable, ...], rows: Sequence[Row]) -> Values:
    written = (tuple(term for term in row if isinstance(term, NamedNode | Literal)) for row in rows)
    return Values(variables, tuple(written))


def _restrict(node: Node, values: Mapping[Variable, Node]) -> Node:
    """The values beside the patterns in which their parameters stand."""
    match node:
        case Bgp() | Join():
            parts = list(_parts(node))
            patterns = Bgp(tuple(triple for part in parts if isinstance(part, Bgp) for triple in part.triples))
            mine = [rows for variable, rows in values.items() if variable in visible_variables(patterns)]
            others = [_restrict(part, values) for part in parts if not isinstance(part, Bgp)]
            return reduce(Join, [*mine, *([patterns] if patterns.triples else []), *others])
        case LeftJoin(left, right, condition):
            return LeftJoin(_restrict(left, values), right, condition)
        case Minus(left, right):
            return Minus(_restrict(left, values), right)
        case Filter(inner, _) | Extend(inner, _, _) | Graph(_, inner):
            return node.with_children(_restrict(inner, values))
    return node


def _parts(node: Node) -> Iterator[Node]:
    """The inputs of nested joins."""
    if isinstance(node, Join):
        yield from _parts(node.left)
        yield from _parts(node.right)
    else:
        yield node
