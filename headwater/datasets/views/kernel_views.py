"""Static parts that are more than a conjunction, evaluated by the kernel's operators over columns.

    ?paper dc:creator ?auth OPTIONAL { ?auth foaf:name ?n }

    LeftJoin( Conjunction(?paper dc:creator ?auth), Conjunction(?auth foaf:name ?n) )

The largest conjunctions inside a part are evaluated on the columns; the kernel's operators evaluate the rest, once.
Parts for which the kernel has no operator are evaluated by definition.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.algebra.nodes import Bgp, Node, PathMatch, Project
from headwater.algebra.plan import QueryKind, QueryPlan
from headwater.algebra.scope import nodes_of, visible_variables
from headwater.datasets.mapped_files import Ints
from headwater.datasets.views.conjunctions import Conjunction
from headwater.datasets.views.pattern_matching import evaluate_conjunction
from headwater.kernel.columns.vocabulary import Vocabulary
from headwater.kernel.compiling.compiler import Compiler
from headwater.kernel.compiling.static_parts import StaticParts, with_graph
from headwater.kernel.compiling.unsupported import UnsupportedByKernel
from headwater.kernel.operators.constant import ConstantOperator
from headwater.kernel.operators.operator import Operator
from headwater.terms.ids.term_ids import term_text
from headwater.terms.model import NamedNode, Variable
from headwater.windows.settings import QuerySettings, resolve_settings

if TYPE_CHECKING:
    from headwater.datasets.linked_data import LinkedData


def evaluate_by_kernel(plan: QueryPlan, part: Node, data: LinkedData, texts: dict[int, bytes]) -> Ints | None:
    """The solutions of a part; None if the kernel cannot evaluate it. `texts` receives those of new terms."""
    shown = visible_variables(part)
    whole = replace(plan, root=Project(part, shown), variables=shown, kind=QueryKind.SELECT, windows=())
    vocabulary = Vocabulary(data.text_of, data.kinds_of)
    compiler = Compiler(whole, settings := resolve_settings(whole), data, vocabulary)
    compiler.static_parts = _Conjunctions(whole, settings, data, vocabulary)
    try:
        root, presenter = compiler.compile()
    except UnsupportedByKernel:
        return None
    if presenter is not None:
        return None
    rows = root.advance().added[:, [root.column_of(variable.value) for variable in shown]]
    for term_id in {term_id for term_id in rows.ravel().tolist() if term_id >= 0}:
        if data.text_of(term_id) is None:
            term = vocabulary.term_of(term_id)
            assert term is not None
            texts[term_id] = term_text(term).encode()
    return rows


class _Conjunctions(StaticParts):
    """Evaluates the conjunctions inside a part on columns."""

    def __init__(
        self,
        plan: QueryPlan,
        settings: QuerySettings,
        data: LinkedData,
        vocabulary: Vocabulary,
    ) -> None:
        super().__init__(plan, settings, data, vocabulary)
        self._data = data

    def is_static(self, node: Node, graph: NamedNode) -> bool:
        return Conjunction.of(self._plan, with_graph(node, graph)) is not None or not _reads_data(node)

    def _evaluate_part(self, part: Node) -> tuple[Operator, frozenset[str]]:
        names = tuple(variable.value for variable in visible_variables(part))
        conjunction = Conjunction.of(self._plan, part)
        if conjunction is not None:
            return ConstantOperator(names, evaluate_conjunction(conjunction, self._data)), frozenset(names)
        rows = self._vocabulary.ids_of_rows(self._evaluate_by_reference(part, visible_variables(part)), len(names))
        return ConstantOperator(names, rows), frozenset()

    def in_static_graphs(self, name: Variable, inner: Node) -> Operator:
        raise UnsupportedByKernel("GRAPH with a variable over static data")


def _reads_data(node: Node) -> bool:
    return any(isinstance(inner, Bgp | PathMatch) for inner in nodes_of(node))
