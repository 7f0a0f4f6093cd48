"""SPARQL expressions over columns of ids."""
