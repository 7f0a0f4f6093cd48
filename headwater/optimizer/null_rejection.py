"""Which conditions cannot hold where a variable is unbound (SPARQL 1.1, sections 17.2 and 17.4.1).

An unbound variable is an error, and most operators hand errors on. Those that do not are `||`, `&&`, `!` with their
three-valued logic, BOUND, COALESCE, IF, IN and EXISTS.

    ?v > 3        never true without ?v            !BOUND(?v)       true without ?v
    BOUND(?v)     never true without ?v            ?v > 3 || ?w     may be true without ?v
"""

from __future__ import annotations

from headwater.algebra.nodes import ExistsPlan
from headwater.language.expressions import Aggregate, Expression, FunctionCall, Operation, Timestamp, VariableReference
from headwater.optimizer.dependencies import is_steady
from headwater.terms.model import Variable

_FORGIVING = frozenset({"BOUND", "COALESCE", "IF", "BNODE"})


def rejects_unbound(condition: Expression, variable: Variable) -> bool:
    """Whether a condition is never true where the variable is unbound."""
    match condition:
        case Operation("&&", operands):
            return any(rejects_unbound(part, variable) for part in operands)
        case Operation("||", operands):
            return all(rejects_unbound(part, variable) for part in operands)
        case Operation("!", (operand,)):
            return _never_false(operand, variable)
        case FunctionCall("BOUND", (VariableReference(tested),)):
            return tested == variable
    return is_error_without(condition, variable)


def _never_false(condition: Expression, variable: Variable) -> bool:
    match condition:
        case Operation("&&", operands):
            return all(_never_false(part, variable) for part in operands)
        case Operation("||", operands):
            return any(_never_false(part, variable) for part in operands)
        case Operation("!", (operand,)):
            return rejects_unbound(operand, variable)
    return is_error_without(condition, variable)


def is_error_without(expression: Expression, variable: Variable) -> bool:
    """Whether an expression has no value where the variable is unbound."""
    match expression:
        case VariableReference(read):
            return read == variable
        case Operation("&&" | "||", operands):
            return all(is_error_without(part, variable) for part in operands)
        case Operation("IN" | "NOT IN", (first, *listed)):
            return bool(listed) and is_error_without(first, variable)
        case Operation(_, operands):
            return any(is_error_without(part, variable) for part in operands)
        case FunctionCall("IF", (condition, then, otherwise)):
            both = is_error_without(then, variable) and is_error_without(otherwise, variable)
            return both or is_error_without(condition, variable)
        case FunctionCall("COALESCE", arguments):
            return all(is_error_without(part, variable) for part in arguments)
        case FunctionCall(name, arguments):
            if name in _FORGIVING or not is_steady(expression):
                return False
            return any(is_error_without(part, variable) for part in arguments)
        case ExistsPlan() | Aggregate() | Timestamp():
            return False
    return False
