"""A static input of a join keeps only what the stream side can bind, as far as that is known without looking.

    Join(Window(w, Filter({?x :at ?v}, c(?v))), {?v :name ?n})     →  Join(…, Filter({?v :name ?n}, c(?v)))
    Join(Window(w, {?v :at ?g}), {?x :owner ?v})                   →  Join(…, Filter({?x :owner ?v}, !isLITERAL(?v)))
    Join(Window(w, Join({?x :at ?v}, Values(?v, :a :b))), …)       →  Join(…, Filter(…, ?v IN (:a, :b)))

A *promise* of the stream side is a condition that is true on all its solutions, whose variables are bound in all of
them. A solution of the static side on which it is not true has no partner then, where it binds these variables for
sure, too. Views get smaller, and a source of equalities on the one side is one on the other. The filters then go
the way of all filters. Promises come from filters, VALUES, constants, and the places of a triple: no subject is a
literal, every predicate is an IRI.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headwater.algebra.active_graphs import Source
from headwater.algebra.nodes import (
    Aggregation,
    Bgp,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    OrderBy,
    Project,
    Reduced,
    Slice,
    Union,
    Values,
    Window,
)
from headwater.algebra.plan import QueryPlan
from headwater.algebra.scope import certain, conjuncts
from headwater.algebra.translate import conjunction
from headwater.language.expressions import Constant, Expression, FunctionCall, Operation, VariableReference
from headwater.language.patterns import TriplePattern
from headwater.optimizer.dependencies import has_exists, patterns, reads, reads_stream
from headwater.optimizer.joins import factors, joined
from headwater.optimizer.rewrites.bind_equalities import equal_means_same, fixed_by
from headwater.optimizer.rewrites.filter_static_parts import is_static
from headwater.optimizer.rewrites.push_filters import may_move
from headwater.optimizer.rule import Rule, Where, rewritten
from headwater.optimizer.statistics import Statistics
from headwater.terms.model import Literal, NamedNode, Term, Variable

Promises = tuple[Expression, ...]
MOST_LISTED = 64
"""So many terms of VALUES are worth asking for one by one."""


def narrow_static_parts(plan: QueryPlan, statistics: Statistics | None = None) -> Node:
    def change(node: Node, where: Where) -> Node:
        # Inside EXISTS any variable may have its value from outside.
        if not isinstance(node, Join) or where.correlated:
            return node
        inputs, source = factors(node), where.source
        streams = [one for one in inputs if reads_stream(plan, one, source)]
        promised = tuple(dict.fromkeys(promise for one in streams for promise in promises(one)))
        if not promised:
            return node
        narrowing = _Narrowing(plan, promised, statistics)
        narrowed = [narrowing.of(one, source) if is_static(plan, one, source) else one for one in inputs]
        if all(new is old for new, old in zip(narrowed, inputs, strict=True)):
            return node
        return joined(narrowed)

    return rewritten(plan, change)


@dataclass(frozen=True)
class _Narrowing:
    plan: QueryPlan
    promised: Promises
    statistics: Statistics | None

    def of(self, node: Node, source: Source) -> Node:
        """A static input without what has no partner."""
        known = promises(node)
        for promise in self.promised:
            if promise not in known and can_be_compared(node, promise) and self._pays(node, promise, known, source):
                node = Filter(node, promise)
        return node

    def _pays(self, node: Node, promise: Expression, known: Promises, source: Source) -> bool:
        """Kinds of terms are asked for only where something may go, and the stronger question once."""
        variable = _kind_told_by(promise)
        if variable is None:
            return True
        is_weaker = promise != _is_iri(variable) and _is_iri(variable) in (*known, *self.promised)
        return not is_weaker and self._may_be_literal(node, variable, source)

    def _may_be_literal(self, node: Node, variable: Variable, source: Source) -> bool:
        """Whether the input may bind a variable to literals, as far as they were counted."""
        is_object = False
        for pattern, where in patterns(self.plan, node, source):
            for triple in pattern.triples if isinstance(pattern, Bgp) else ():
                if triple.object != variable:
                    continue
                is_object = True
                if not self._has_literals(triple.predicate, where):
                    return False
        return is_object

    def _has_literals(self, predicate: object, source: Source) -> bool:
        if self.statistics is None or not isinstance(predicate, NamedNode):
            return True
        return self.statistics.counts(self.plan, source, predicate).literals


def can_be_compared(node: Node, promise: Expression) -> bool:
    """Whether each solution of the input has the very values that the promise is about."""
    return reads(promise) <= certain(node)


def promises(node: Node) -> Promises:
    """Conditions that are true on every solution of a node, over variables that are bound in every one."""
    match node:
        case Bgp(triples):
            return tuple(one for triple in triples for one in _of_places(triple))
        case Values(variables, rows):
            columns = zip(variables, zip(*rows, strict=True), strict=True) if rows else ()
            return tuple(one for variable, terms in columns for one in _listed(variable, terms))
        case Filter(inner, condition):
            said = [one for one in conjuncts(condition) if is_a_promise(inner, one)]
            return (*promises(inner), *(one for condition in said for one in _as_promise(condition)))
        case Join(left, right):
            return (*promises(left), *promises(right))
        case LeftJoin(left, _, _) | Minus(left, _):
            return promises(left)
        case Union(left, right):
            return of_either(promises(left), promises(right))
        case Extend(inner, variable, Constant(value)) if equal_means_same(value):
            return (*promises(inner), *_listed(variable, [value]))
        case Project(inner, variables):
            return seen_outside(promises(inner), variables)
        case Group(inner, keys, _):
            return seen_outside(promises(inner), [variable for variable, expression in keys if expression is None])
        case (
            Extend(inner, _, _)
            | Aggregation(inner, _, _)
            | Graph(_, inner)
            | Window(_, _, inner)
            | Distinct(inner)
            | Reduced(inner)
            | OrderBy(inner, _)
            | Slice(inner)
        ):
            return promises(inner)
    return ()


def is_a_promise(inner: Node, condition: Expression) -> bool:
    """Whether a filter says the same wherever its variables have the same values, and they have some."""
    return may_move(condition) and not has_exists(condition) and reads(condition) <= certain(inner)


def seen_outside(promised: Promises, variables: Iterable[Variable]) -> Promises:
    """What is promised of variables that can be seen outside."""
    shown = frozenset(variables)
    return tuple(one for one in promised if reads(one) <= shown)


def of_either(left: Promises, right: Promises) -> Promises:
    """What holds on both sides; of a single variable also that one or the other holds."""
    both = tuple(one for one in left if one in right)
    mine, others = _alternatives(left, both), _alternatives(right, both)
    shared = [variable for variable in mine if variable in others]
    return (*both, *(Operation("||", (conjunction(mine[one]), conjunction(others[one]))) for one in shared))


def _alternatives(promised: Promises, without: Promises) -> dict[Variable, list[Expression]]:
    """What is promised of single variables, kinds of terms left out."""
    found: dict[Variable, list[Expression]] = {}
    for one in promised:
        read = reads(one)
        if len(read) == 1 and one not in without and _kind_told_by(one) is None:
            found.setdefault(next(iter(read)), []).append(one)
    return found


def _as_promise(condition: Expression) -> Promises:
    """An equality as a list of one: as a constant in its patterns a view could not follow single statements."""
    found = fixed_by(condition)
    return (condition,) if found is None else _listed(found[0], [found[1]]) or (condition,)


def _listed(variable: Variable, terms: Sequence[Term | None]) -> Promises:
    """That a variable is one of a few terms, where no other term is equal to one of them."""
    listed = tuple(Constant(one) for one in dict.fromkeys(terms) if isinstance(one, NamedNode | Literal))
    if None in terms or len(listed) > MOST_LISTED or not all(equal_means_same(one.value) for one in listed):
        return ()
    return (Operation("IN", (VariableReference(variable), *listed)),)


def _of_places(triple: TriplePattern) -> Promises:
    """What RDF says of the subject and the predicate of a triple."""
    found: list[Expression] = []
    if isinstance(triple.subject, Variable):
        found.append(_is_no_literal(triple.subject))
    if isinstance(triple.predicate, Variable):
        found += [_is_no_literal(triple.predicate), _is_iri(triple.predicate)]
    return tuple(found)


def _is_no_literal(variable: Variable) -> Expression:
    return Operation("!", (FunctionCall("ISLITERAL", (VariableReference(variable),)),))


def _is_iri(variable: Variable) -> Expression:
    return FunctionCall("ISIRI", (VariableReference(variable),))


def _kind_told_by(promise: Expression) -> Variable | None:
    """The variable of which a promise says what kind of term it is, and nothing more."""
    read = reads(promise)
    if len(read) != 1:
        return None
    (variable,) = read
    return variable if promise in (_is_no_literal(variable), _is_iri(variable)) else None


RULE = Rule(
    "narrow static parts",
    "the stream side has no solution on which the condition is not true, and both sides bind its variables for sure",
    narrow_static_parts,
)
