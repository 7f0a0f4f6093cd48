"""The client of a SPARQL endpoint: requests, limits, retries, errors."""
