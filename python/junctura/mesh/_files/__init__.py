"""MeshStep files: Exodus II (netCDF) and CGNS (HDF5)."""
