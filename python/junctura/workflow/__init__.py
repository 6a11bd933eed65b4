"""Workflows: programs that start when what they need is there, and end when nobody needs them any more."""
