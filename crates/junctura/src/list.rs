//! What is visible, without payloads.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use junctura_model::Result;
use junctura_model::version::Version;
use junctura_wire::body::List;
use junctura_wire::fixed::STAGED;
use junctura_wire::{Listed, Request};

use crate::connection::{Connection, unexpected};
use crate::described::Described;
use crate::follow::order;
use crate::mail::Letter;
use crate::pool::Pool;
use crate::stream::Stream;

/// An object that is visible. It reads as its [`Described`] attributes.
pub struct Entry {
    object: Described,
    version: Version,
    bytes: u64,
    bundle: Option<u64>,
}

/// How to list, where it is not the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListOptions<'a> {
    /// Order by the value of this attribute first, then by key.
    pub order_by: Option<&'a str>,
    /// Members of bundles that are not complete, too.
    pub incomplete: bool,
    /// Only what belongs to the bundle of this path, or to one nested in it.
    pub bundle: Option<&'a str>,
}

impl Entry {
    /// Its newest version. A staged object has sequence number 0.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Bytes of its payload.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of the bundle in which it is staged ([`crate::BundleEntry::number`]); `None`: it is visible.
    #[must_use]
    pub fn staged_in(&self) -> Option<u64> {
        self.bundle
    }
}

impl Deref for Entry {
    type Target = Described;

    fn deref(&self) -> &Described {
        &self.object
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entry({} {}, {} bytes)", self.object.key(), self.version, self.bytes)
    }
}

/// The pages of a list, one at a time: an iterator that takes no more memory than one page.
#[derive(Debug)]
pub struct Pages {
    connection: Arc<Connection>,
    stream: Stream,
    /// A page was given, and the server waits to be asked for the next.
    asked: bool,
}

impl Pool {
    /// All visible objects that match a selector, by key.
    ///
    /// ```
    /// # use junctura::Pool;
    /// # fn main() -> junctura::Result<()> {
    /// let pool = Pool::builder().schema("free").open()?;
    /// pool.offer([("space", "demo"), ("name", "first")], b"bytes")?;
    /// let entries = pool.list("space=demo")?;
    /// assert_eq!((entries.len(), entries[0].bytes()), (1, 5));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidSelector`, pointing at the character.
    pub fn list(&self, selector: &str) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for page in self.list_pages(selector, None)? {
            entries.extend(page?);
        }
        Ok(entries)
    }

    /// As [`Pool::list`], page by page, ordered by key or by the value of an attribute.
    pub fn list_pages(&self, selector: &str, order_by: Option<&str>) -> Result<Pages> {
        let options = ListOptions {
            order_by,
            ..ListOptions::default()
        };
        self.list_with(&options, selector)
    }

    /// As [`Pool::list_pages`], with options.
    ///
    /// # Errors
    /// Also `NotFound` for the path of a bundle that there is not, or that is forgotten.
    pub fn list_with(&self, options: &ListOptions<'_>, selector: &str) -> Result<Pages> {
        let connection = self.connection()?;
        let request = Request::List(List {
            selector: selector.into(),
            order: order(options.order_by),
            incomplete: options.incomplete,
            bundle: options.bundle.map(Into::into),
        });
        let (stream, _) = Stream::begin(&connection, &request)?;
        Ok(Pages {
            connection,
            stream,
            asked: true,
        })
    }
}

impl Pages {
    fn page(&mut self) -> Result<Vec<Entry>> {
        if !self.asked {
            self.stream.say(&Request::More(self.stream.number()))?;
        }
        self.asked = false;
        match self.stream.next(None)? {
            Some(Letter::Page { last, entries }) => read(
                &self.connection,
                Listed {
                    last,
                    entries: &entries,
                },
            ),
            Some(Letter::Failed(error) | Letter::Ended(error)) => Err(error),
            _ => Err(unexpected("in a list")),
        }
    }
}

fn read(connection: &Connection, page: Listed<'_>) -> Result<Vec<Entry>> {
    let entries = page.iter().map(|entry| {
        let (head, record) = entry?;
        let schema = connection.known_schema(head.schema.get())?;
        let is_staged = head.flags.get() & STAGED != 0;
        let number = head.sequence.get();
        let version = connection.version(if is_staged { 0 } else { number });
        Ok(Entry {
            bundle: is_staged.then_some(number),
            object: Described::new(schema, record),
            version,
            bytes: head.length.get(),
        })
    });
    entries.collect()
}

impl Iterator for Pages {
    type Item = Result<Vec<Entry>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.stream.is_over() {
            return None;
        }
        let page = self.page();
        if page.is_err() {
            // There is no more after an error.
            let _ = self.stream.stop();
        }
        Some(page)
    }
}
