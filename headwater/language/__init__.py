"""Query text to syntax tree: C-SPARQL, CQELS-QL, RSP-QL and all of SPARQL 1.1 Query (`parser.parse`)."""
