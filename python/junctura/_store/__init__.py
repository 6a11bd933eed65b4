"""Views of a store: files, a file system, tables, and the comparison of two listings."""
