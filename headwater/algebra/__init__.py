"""Query plans: nodes named after the SPARQL and RSP-QL definitions, made from syntax, and questions about plans."""
