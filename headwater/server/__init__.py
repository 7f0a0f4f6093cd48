"""The HTTP server: queries, streams and answers for other programs, beside an engine in a process of its own."""
