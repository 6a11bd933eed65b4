"""Documents in YAML: values with their places in the file, validation, sizes, times and ranges."""
