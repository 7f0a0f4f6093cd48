"""The rewrite rules, one per file; the file is named after its function."""
