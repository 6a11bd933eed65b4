"""xarray: labels as attributes, the backend that opens stores, and the axes of a cube of fields."""
