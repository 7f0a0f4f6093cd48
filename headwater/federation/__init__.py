"""SERVICE: local views of remote data, refreshed within a budget, with an estimate of their accuracy.

Each room imports only those above it:

- `endpoint`: the client of a SPARQL endpoint; requests for keys and pages, limits, retries, errors
- `view`: the local view; its entries, their change rates, the quality of answers
- `policy`: which entries are refreshed at a tick, and how many; proposers, rankers, maintainer
- the modules here: the SERVICE operator over them; strategies, clauses, compiler, evaluator
"""
