"""Bulk loading: RDF files become a data set on disk."""
