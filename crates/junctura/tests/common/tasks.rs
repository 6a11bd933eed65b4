//! Tasks of the tests on one thread: a runtime, and what a task does with a pool.

use junctura::{Item, Object, OfferOptions, Result, aio};

pub(crate) fn one_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Offers so many bytes; returns the sequence number of their version.
pub(crate) async fn offer(pool: &aio::Pool, name: &str, bytes: usize) -> Result<u64> {
    let options = OfferOptions {
        schema: Some("free"),
        ..OfferOptions::default()
    };
    let version = pool.offer_with(options, [("name", name)], &vec![7; bytes]).await?;
    Ok(version.sequence)
}

/// The next object; a gap fails the test.
pub(crate) async fn next_object(follow: &mut aio::Follow) -> Object {
    loop {
        match follow.next_item().await.unwrap().unwrap() {
            Item::Object(object) => return object,
            Item::Live => {}
            Item::Gap(gap) => panic!("{gap:?}"),
        }
    }
}
