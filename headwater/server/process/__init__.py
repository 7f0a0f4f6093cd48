"""The engine process: what it does for the HTTP process, and how the two talk."""
