/// An object's attributes, without payload: key() -> &str, schema(), get(name), attributes() -> iterator of (&str, &str), text_of_key
pub struct Described {}
