//! A received object with its payload, from a pool or a store.

use junctura::{Described, Schema};

/// A received object.
pub(crate) trait ReceivedObject {
    fn schema(&self) -> &Schema;
    fn key(&self) -> &str;
    fn get(&self, name: &str) -> Option<&str>;
    fn attributes(&self) -> impl Iterator<Item = (&str, &str)>;
    fn version(&self) -> String;
    fn payload(&self) -> &[u8];
}

impl ReceivedObject for junctura::Object {
    fn schema(&self) -> &Schema {
        self.schema()
    }

    fn key(&self) -> &str {
        self.key()
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.get(name)
    }

    fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.attributes()
    }

    fn version(&self) -> String {
        self.version().to_string()
    }

    fn payload(&self) -> &[u8] {
        self.payload()
    }
}

/// An object of a store.
pub(crate) struct RetrievedObject<'p> {
    pub(crate) object: Described,
    pub(crate) commit: u64,
    pub(crate) payload: &'p [u8],
}

impl ReceivedObject for RetrievedObject<'_> {
    fn schema(&self) -> &Schema {
        self.object.schema()
    }

    fn key(&self) -> &str {
        self.object.key()
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.object.get(name)
    }

    fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.object.attributes()
    }

    fn version(&self) -> String {
        self.commit.to_string()
    }

    fn payload(&self) -> &[u8] {
        self.payload
    }
}
