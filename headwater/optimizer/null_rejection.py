"""Which conditions cannot hold where a variable is unbound (SPARQL 1.1, sections 17.2 and 17.4.1).

An unbound variable is an error, and most operators propagate errors. Those that do not are `||`, `&&`, `!` with their
three-valued logic, BOUND, COALESCE, IF, IN and EXISTS.

    ?v > 3        never true without ?v            !BOUND(?v)       true without ?v
    BOUND(?v)     never true without ?v            ?v > 3 || ?w     may be true without ?v
"""

from __future__ import annotations

from headwater.algebra.nodes import ExistsPlan
from headwater.language.expressions import Aggregate, Expression, FunctionCall, Operation, Timestamp, VariableReference
from headwater.optimizer.dependencies import is_deterministic
from headwater.terms.model import Variable

_ERROR_TOLERANT = frozenset({"BOUND", "COALESCE", "IF", "BNODE"})


def is_null_rejecting(condition: Expression, variable: Variable) -> bool:
    """Whether a condition is never true where the variable is unbound."""
    match condition:
        case Operation("&&", operands):
            return any(is_null_rejecting(part, variable) for part in operands)
        case Operation("||", operands):
            return all(is_null_rejecting(part, variable) for part in operands)
        case Operation("!", (operand,)):
            return _is_never_false(operand, variable)
        case FunctionCall("BOUND", (VariableReference(tested),)):
            return tested == variable
    return is_error_without(condition, variable)


def _is_never_false(condition: Expression, variable: Variable) -> bool:
    match condition:
        case Operation("&&", operands):
            return all(_is_never_false(part, variable) for part in operands)
        case Operation("||", operands):
            return any(_is_never_false(part, variable) for part in operands)
        case Operation("!", (operand,)):
            return is_null_rejecting(operand, variable)
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
            if name in _ERROR_TOLERANT or not is_deterministic(expression):
                return False
            return any(is_error_without(part, variable) for part in arguments)
        case ExistsPlan() | Aggregate() | Timestamp():
            return False
    return False
