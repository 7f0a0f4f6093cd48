"""The id codec: RDF terms as 64-bit ids and back, and the texts of the terms that an id does not hold itself."""
