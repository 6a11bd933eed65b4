//! GRIB message boundaries and header keys, without decoding values.
