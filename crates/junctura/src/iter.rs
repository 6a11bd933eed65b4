//! Blocking iterators over types that are also async streams.
//!
//! A follow is both: `for item in &mut follow` blocks a thread for each item, and with the feature `async` a follow is
//! a stream. A type that were an iterator itself would have two ambiguous methods `next`.

use junctura_model::Result;

/// Returns one item after the other and blocks for each; made by `into_iter` of a [`Follow`](crate::Follow), a
/// [`Subscription`](crate::Subscription) or [`Pages`](crate::Pages).
///
/// ```
/// # use junctura::{FollowOptions, Item, Pool};
/// # fn main() -> junctura::Result<()> {
/// # let pool = Pool::builder().schema("free").open()?;
/// pool.offer([("name", "a")], b"")?;
/// let mut follow = pool.follow("")?;
/// for item in &mut follow {
///     if let Item::Live = item? {
///         break; // the snapshot is complete, and the follow continues
///     }
/// }
/// let until_live = FollowOptions { until_live: true, ..Default::default() };
/// assert_eq!(pool.follow_with("", until_live)?.into_iter().count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct BlockingIter<S>(pub(crate) S);

/// The source of a blocking iterator.
pub trait BlockingSource {
    type Item;
    /// Returns the next item; `None` after the last one. Blocks.
    fn next_blocking(&mut self) -> Result<Option<Self::Item>>;
}

impl<S: BlockingSource> BlockingSource for &mut S {
    type Item = S::Item;

    fn next_blocking(&mut self) -> Result<Option<S::Item>> {
        (**self).next_blocking()
    }
}

impl<S: BlockingSource> Iterator for BlockingIter<S> {
    type Item = Result<S::Item>;

    fn next(&mut self) -> Option<Result<S::Item>> {
        self.0.next_blocking().transpose()
    }
}

/// Makes a type iterable by value and by reference.
macro_rules! iterable {
    ($source:ty, $item:ty, $next:ident) => {
        impl crate::iter::BlockingSource for $source {
            type Item = $item;

            fn next_blocking(&mut self) -> junctura_model::Result<Option<$item>> {
                self.$next()
            }
        }

        impl $source {
            /// Iterates without consuming it; blocks for each item.
            pub fn iter_mut(&mut self) -> crate::iter::BlockingIter<&mut Self> {
                crate::iter::BlockingIter(self)
            }
        }

        impl IntoIterator for $source {
            type Item = junctura_model::Result<$item>;
            type IntoIter = crate::iter::BlockingIter<Self>;

            fn into_iter(self) -> Self::IntoIter {
                crate::iter::BlockingIter(self)
            }
        }

        impl<'s> IntoIterator for &'s mut $source {
            type Item = junctura_model::Result<$item>;
            type IntoIter = crate::iter::BlockingIter<Self>;

            fn into_iter(self) -> Self::IntoIter {
                self.iter_mut()
            }
        }
    };
}

pub(crate) use iterable;
