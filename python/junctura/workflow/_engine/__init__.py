"""A run: a state machine without I/O decides, one thread executes its actions."""
