"""The columnar scanner: N-Triples, N-Quads and `.tnq` bytes to columns of 64-bit ids, at native speed.

In the order of the data:

- `buffers`: text with room behind it; `memory`: reading it inside compiled code.
- `names`, `strings`, `literals`, `numbers`, `times`, `terms`: where terms end, and their ids; `hashing`: the hash.
- `patterns`: which triples are wanted, and whose texts.
- `lines`: the loop over the lines; `parsed_lines`, `resolving`: lines that the parser has to read.
- `groups`: lines to elements; `columns`: the result, `Scanned`; `texts`: its dictionary.
- `scanner`: `scan`; `ranges`: `scan_range`, for a part of a file; `elements`: the result as Python objects.
- `warm`: has numba compile all this once.
"""
