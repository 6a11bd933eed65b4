"""What a terminal shows of a workflow: its graph, and the progress of a run."""
