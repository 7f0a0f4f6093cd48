"""Storage of rows of ids: ring index, relation, counts, window buffers, vocabulary."""
