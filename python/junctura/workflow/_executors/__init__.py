"""Executors run the tasks of a workflow: processes on this machine, or jobs of a batch system."""
