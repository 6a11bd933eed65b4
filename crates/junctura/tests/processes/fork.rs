//! A forked child connects anew and leaves to its parent what is its parent's.

#![allow(
    unsafe_code,
    reason = "the closure runs in the forked child, which is what is tested"
)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::alone;
use junctura::{Code, Item, Pool, Target};

/// Runs `child` in a forked child of this process, and waits for its end.
fn in_child(child: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
    let mut command = Command::new("true");
    // SAFETY: the child uses memory and locks as if it went on alone; the C library makes its allocator fit for that, and
    // whether our own locks are is what the test asks.
    unsafe {
        command.pre_exec(move || {
            child().map_err(|why| {
                eprintln!("in the child: {why}");
                io::Error::other(why)
            })
        })
    };
    assert!(command.status().unwrap().success());
}

fn expect(what: &str, is: bool) -> Result<(), String> {
    if is { Ok(()) } else { Err(what.to_owned()) }
}

#[test]
fn a_child_has_a_connection_of_its_own_and_nothing_of_its_parents() {
    let _alone = alone();
    let pool = Pool::builder().schema("free").open().unwrap();
    pool.offer([("name", "a")], &vec![1; 100_000]).unwrap();
    let held = Arc::new(Mutex::new(Some(pool.demand("name=a", None).unwrap())));
    let allocated = Arc::new(Mutex::new(Some(pool.allocate(100_000).unwrap())));
    let mut follow = pool.follow("name=e").unwrap();
    assert!(matches!(follow.next_item().unwrap(), Some(Item::Live)));
    let follow = Arc::new(Mutex::new(follow));
    let mut pipeline = pool.pipeline(8).unwrap();
    let parent = pool.client().unwrap();

    let (childs_pool, childs_held) = (pool.clone(), Arc::clone(&held));
    let (childs_allocated, childs_follow) = (Arc::clone(&allocated), Arc::clone(&follow));
    in_child(move || {
        let error = childs_follow.lock().unwrap().next_item().unwrap_err();
        expect("an inherited follow is closed", error.code() == Code::Closed)?;
        drop(childs_held.lock().unwrap().take());
        drop(childs_allocated.lock().unwrap().take());
        let client = childs_pool.client().map_err(|error| error.to_string())?;
        expect("a client of its own", client != parent)?;
        let object = childs_pool.demand("name=a", None).map_err(|error| error.to_string())?;
        expect("the same bytes", object[..] == vec![1; 100_000])?;
        childs_pool
            .offer([("name", "b")], b"child")
            .map_err(|error| error.to_string())?;
        let grandchilds_pool = childs_pool.clone();
        in_child(move || {
            let grandchild = grandchilds_pool.client().map_err(|error| error.to_string())?;
            expect("another client", grandchild != parent && grandchild != client)?;
            grandchilds_pool
                .offer([("name", "c")], b"grandchild")
                .map(drop)
                .map_err(|error| error.to_string())
        });
        Ok(())
    });

    assert_eq!(pool.client().unwrap(), parent);
    assert_eq!(&pool.demand(Target::key([("name", "b")]), None).unwrap()[..], b"child");
    assert_eq!(
        &pool.demand(Target::key([("name", "c")]), None).unwrap()[..],
        b"grandchild"
    );
    let held = held.lock().unwrap().take().unwrap();
    assert_eq!(held[..], vec![1; 100_000]);
    let mut memory = allocated.lock().unwrap().take().unwrap();
    memory.fill(2);
    pipeline.offer_allocation(memory, [("name", "d")]).unwrap();
    pipeline.flush().unwrap();
    assert_eq!(pool.demand("name=d", None).unwrap()[..], vec![2; 100_000]);
    pool.offer([("name", "e")], b"after").unwrap();
    assert!(matches!(
        follow.lock().unwrap().next_item().unwrap(),
        Some(Item::Object(_))
    ));
}
