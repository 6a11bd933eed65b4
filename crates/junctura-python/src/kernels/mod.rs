//! Computations on buffers for the packages `junctura.products` and `junctura.remap`.

pub(crate) mod grib;
pub(crate) mod raster;
pub(crate) mod remap;
pub(crate) mod statistics;
