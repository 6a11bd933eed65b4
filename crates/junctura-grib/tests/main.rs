//! Integration tests of GRIB reading. Messages are made by hand, so that no file is needed.

mod hostile;
mod keys;
mod made;
mod packed;
mod splitting;
