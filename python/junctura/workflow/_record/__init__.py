"""The record of a run: written while it runs, read to resume it and to explain it."""
