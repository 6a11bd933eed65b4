"""The terminal output of a workflow: its graph, and the progress of a run."""
