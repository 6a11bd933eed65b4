"""Workflows: programs that start when their inputs are available, and end when no task uses them any more."""
