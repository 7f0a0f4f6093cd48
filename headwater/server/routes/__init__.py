"""The paths of the server: queries, answers, streams, and how it is doing."""
