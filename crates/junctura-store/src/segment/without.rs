//! What a build without Parquet says of such files.

use junctura_model::{Code, Error, Result, Schema};

use crate::table::Table;

pub(crate) fn encode(_table: &Table, _schema: &Schema) -> Result<Vec<u8>> {
    Err(left_out())
}

pub(crate) fn decode(_file: Vec<u8>, _schema: &Schema) -> Result<Table> {
    Err(left_out())
}

fn left_out() -> Error {
    let cause = "this was built without Parquet (the feature parquet)";
    Error::new(Code::Unsupported, "segment", cause)
}
