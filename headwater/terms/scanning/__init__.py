"""The columnar scanner: N-Triples, N-Quads and `.tnq` bytes to columns of 64-bit ids, at native speed.

In the order of the data:

- `padded_text`: text with room behind it; `memory`: reading it inside compiled code; `ascii_bytes`: its characters.
- `iri_ends`, `strings`, `literals`, `numbers`, `times`, `escapes`, `term_ends`: where terms end, and their ids.
- `byte_hashes`: the hash of a term's text; `pattern_tables`: which triples are wanted, and whose texts.
- `long_lines`: lines that are too long to be read.
- `lines`: the loop over the lines; `parsed_lines`, `resolving`: lines that the parser has to read.
- `groups`: lines to elements; `scanned_columns`: the result, `ScannedColumns`; `texts`: its dictionary.
- `scanner`: `scan`; `ranges`: `scan_range`, for a part of a file.
- `precompile_scanner`: has numba compile all this once.
"""
