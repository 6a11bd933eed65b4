"""YAML documents: values with their positions in the file, validation, sizes, times and ranges."""
