"""Workers: processes, or Dask's, that execute the broker's tasks."""
