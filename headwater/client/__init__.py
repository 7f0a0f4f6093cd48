"""A server of `headwater serve` from another program, with the verbs of the engine."""
