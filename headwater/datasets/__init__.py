"""Linked data that does not stream: data sets on disk, what queries ask of them, and how both stay fresh.

In the order of the data:

- `blocks`, `parts`, `loading`: files become columns, in bulk; `folder`: what a data set's folder holds.
- `columns`, `stored_terms`: statements as sorted columns of ids, and the texts of their terms; `mapped`: such files.
- `changes`: what was inserted and removed since; `dataset`: one data set at one version; `updates`: SPARQL Update.
- `linked_data`: several data sets as what a program asks; `watching`: which version others have reached.
- `conjunctions`, `matching`, `tables`, `kernel_views`: what a static part says, found on columns; `differences`: how a
  statement changes it; `views`, `stored_views`: what was found, shared and kept.
"""
