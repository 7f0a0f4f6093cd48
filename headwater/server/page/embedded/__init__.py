"""What the page asks for, answered by an engine in the same process."""
