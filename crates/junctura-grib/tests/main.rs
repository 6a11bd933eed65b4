//! Integration tests of GRIB reading. Messages are made by hand, so that no file is needed.

mod hostile;
mod keys;
#[path = "../../../fuzz/src/limits.rs"]
mod limits;
mod made;
mod packed;
mod splitting;
