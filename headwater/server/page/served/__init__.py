"""What the page asks for, answered by the server and its engine process; and who may look."""
