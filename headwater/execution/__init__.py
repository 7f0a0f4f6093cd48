"""A batch in, answers out: `Program` runs the registered queries, `Evaluator` is what each evaluator implements."""
