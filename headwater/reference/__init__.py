"""The definition, executable: each window's graph is built and pyoxigraph is asked. Slow, obvious, complete."""

from headwater.reference.answers import Answer, WindowView
from headwater.reference.evaluator import ReferenceEvaluator
from headwater.reference.log import StreamKey
from headwater.reference.program import MakeEvaluator, Program, Step
from headwater.reference.registered import Registered, RegistrationError
from headwater.reference.ticking import Evaluator

__all__ = [
    "Answer",
    "Evaluator",
    "MakeEvaluator",
    "Program",
    "ReferenceEvaluator",
    "Registered",
    "RegistrationError",
    "Step",
    "StreamKey",
    "WindowView",
]
