"""Regridding: grids, interpolation weights, and spherical harmonics."""
