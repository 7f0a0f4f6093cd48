"""The definition, executable: each window's graph is built and pyoxigraph is asked. Slow, obvious, complete."""

from headwater.reference.answers import Answer, WindowView
from headwater.reference.evaluator import ReferenceEvaluator, StreamKey
from headwater.reference.program import Program, Registered, RegistrationError, Step

__all__ = [
    "Answer",
    "Program",
    "ReferenceEvaluator",
    "Registered",
    "RegistrationError",
    "Step",
    "StreamKey",
    "WindowView",
]
