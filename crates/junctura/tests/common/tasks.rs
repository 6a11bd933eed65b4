//! Tasks of the tests on one thread: a runtime, and what a task does with a pool.

use junctura::{Entry, Follow, Item, ListOptions, Object, OfferOptions, Pool, Result};

pub(crate) fn one_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Offers so many bytes; returns the sequence number of their version.
pub(crate) async fn offer(pool: &Pool, name: &str, bytes: usize) -> Result<u64> {
    let options = OfferOptions {
        schema: Some("free"),
        ..OfferOptions::default()
    };
    let version = pool.begin_offer([("name", name)], &vec![7; bytes], options)?.await?;
    Ok(version.sequence)
}

/// All that is visible.
#[allow(dead_code, reason = "of several tests")]
pub(crate) async fn listed(pool: &Pool) -> Vec<Entry> {
    let pages = pool.begin_list("", ListOptions::default()).unwrap().await.unwrap();
    pages.begin_entries().await.unwrap()
}

/// The next object; a gap fails the test.
pub(crate) async fn next_object(follow: &mut Follow) -> Object {
    loop {
        match follow.begin_next().await.unwrap().unwrap() {
            Item::Object(object) => return object,
            Item::Live => {}
            Item::Gap(gap) => panic!("{gap:?}"),
        }
    }
}
