"""Plans named after the SPARQL and RSP-QL definitions, made from syntax, written back as SPARQL, drawn for people."""

from headwater.algebra.build import plan_query
from headwater.algebra.plan import QueryKind, QueryPlan, WindowSource
from headwater.algebra.to_sparql import to_sparql

__all__ = ["QueryKind", "QueryPlan", "WindowSource", "plan_query", "to_sparql"]
