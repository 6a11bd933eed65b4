//! The same for those who must not wait: tasks, and loops of others.

use std::thread;
use std::time::Duration;

use junctura::{
    Code, DemandOptions, DemandSource, Entry, Follow, FollowOptions, Item, ListOptions, Target, Transport, binding,
};

use super::{Junction, TIMEOUT, all_of, payload_of, tell, until_live};

#[tokio::test]
async fn tasks_demand_and_list_what_has_left_the_pool() {
    let junction = Junction::new();
    junction.offer("ab");
    junction.archive("a");
    junction.withdraw("a");
    let tasks = junction.reader();
    for timeout in [Some(Duration::ZERO), TIMEOUT] {
        for (name, is_archived) in [("a", true), ("b", false)] {
            let found = tasks
                .begin_demand(
                    Target::key([("name", name)]),
                    DemandOptions {
                        timeout,
                        ..Default::default()
                    },
                )
                .unwrap()
                .await
                .unwrap();
            assert_eq!(&found[..], payload_of(name).as_bytes());
            assert_eq!(found.transport() == Transport::Store, is_archived);
        }
        let short = DemandOptions {
            timeout: timeout.filter(Duration::is_zero).or(Some(Duration::from_millis(1))),
            ..DemandOptions::default()
        };
        let missing = tasks.begin_demand("name=c", short).unwrap();
        let expected = if timeout == TIMEOUT {
            Code::Timeout
        } else {
            Code::NotFound
        };
        assert_eq!(missing.await.unwrap_err().code(), expected);
    }
    let listed = tasks
        .begin_list("", ListOptions::default())
        .unwrap()
        .await
        .unwrap()
        .begin_entries()
        .await
        .unwrap();
    let archived: Vec<bool> = listed.iter().map(Entry::is_archived).collect();
    assert_eq!(archived, [true, false]);
    let in_pool = DemandOptions {
        timeout: Some(Duration::ZERO),
        source: DemandSource::Pool,
        ..DemandOptions::default()
    };
    let gone = tasks.begin_demand(Target::key([("name", "a")]), in_pool).unwrap().await;
    assert_eq!(gone.unwrap_err().code(), Code::Gone);
    let in_time = DemandOptions {
        timeout: TIMEOUT,
        ..DemandOptions::default()
    };
    let late = tasks.begin_demand("name=d", in_time).unwrap();
    // The server must outlive the answer, so the junction comes back from the task that offers.
    let offer = tokio::task::spawn_blocking(move || {
        junction.offer("d");
        junction
    });
    let (found, _junction) = tokio::join!(late, offer);
    assert_eq!(&found.unwrap()[..], payload_of("d").as_bytes());
}

async fn some_for_a_task(follow: &mut Follow, count: usize) -> String {
    let mut said = String::new();
    for _ in 0..count {
        let next = tokio::time::timeout(Duration::from_secs(20), follow.begin_next());
        tell(&next.await.unwrap().unwrap().unwrap(), &mut said);
    }
    said
}

async fn all_for_a_task(follow: &mut Follow) -> String {
    let mut said = String::new();
    while let Some(item) = follow.begin_next().await.unwrap() {
        tell(&item, &mut said);
    }
    said
}

#[tokio::test]
async fn a_follow_of_tasks_begins_in_the_store_and_goes_on_live() {
    let junction = Junction::new();
    junction.offer_archive_withdraw("ace");
    junction.offer("bd");
    junction.archive("d");
    let tasks = junction.reader();
    let mut follow = tasks.begin_follow("", FollowOptions::default()).unwrap().await.unwrap();
    assert_eq!((follow.snapshot_sequence(), follow.window()), (5, 256));
    junction.offer("f");
    let mut said = some_for_a_task(&mut follow, 5).await;
    assert!(!follow.is_live());
    said += &some_for_a_task(&mut follow, 2).await;
    assert_eq!((said.as_str(), follow.is_live()), ("abcde|f", true));
    // As one that waits goes on from there.
    let cursor = follow.cursor().map(|cursor| cursor.to_string());
    junction.offer_archive_withdraw("g");
    junction.offer("h");
    assert_eq!(some_for_a_task(&mut follow, 2).await, "gh");
    follow.begin_stop().unwrap().await.unwrap();
    assert_eq!(
        all_of(&mut junction.reader().follow_with("", until_live(cursor)).unwrap()),
        "|gh"
    );
    for (selector, expected) in [("name=a/c", "ac|"), ("name=b", "b|"), ("name=x", "|")] {
        let mut only = tasks.begin_follow(selector, until_live(None)).unwrap().await.unwrap();
        assert_eq!(all_for_a_task(&mut only).await, expected);
        assert!(only.is_over() && only.is_live());
    }
}

#[tokio::test]
async fn a_follow_of_tasks_fills_gaps_and_tells_those_that_it_cannot_fill() {
    let junction = Junction::new();
    let options = FollowOptions {
        window: Some(1),
        ..FollowOptions::default()
    };
    junction.offer("a");
    let tasks = junction.reader();
    let mut follow = tasks.begin_follow("", options).unwrap().await.unwrap();
    let held = follow.begin_next().await.unwrap().unwrap(); // the window is full
    junction.offer_archive_withdraw("bc");
    junction.offer("d");
    junction.withdraw("d");
    junction.offer("e");
    drop(held);
    assert_eq!(some_for_a_task(&mut follow, 5).await, "|bc?e");
}

#[tokio::test]
async fn a_cursor_of_tasks_goes_on_in_the_store() {
    let mut junction = Junction::new();
    let tasks = junction.reader();
    let mut follow = tasks.begin_follow("", FollowOptions::default()).unwrap().await.unwrap();
    junction.offer("za");
    assert_eq!(some_for_a_task(&mut follow, 3).await, "|za");
    let cursor = follow.cursor().map(|cursor| cursor.to_string());
    drop(follow);
    junction.offer_archive_withdraw("yb");
    junction.offer("x");
    junction.offer_archive_withdraw("c");
    // In the order in which they became visible, and the last of them from the store.
    let options = FollowOptions {
        cursor,
        ..FollowOptions::default()
    };
    let mut resumed = tasks.begin_follow("", options.clone()).unwrap().await.unwrap();
    assert_eq!(some_for_a_task(&mut resumed, 5).await, "|ybxc");
    drop((resumed, tasks));
    // In the next life of the server it is in the order of keys.
    junction.begin_anew();
    junction.offer("e");
    let tasks = junction.reader();
    let options = FollowOptions {
        until_live: true,
        ..options
    };
    let mut resumed = tasks.begin_follow("", options).unwrap().await.unwrap();
    assert_eq!(all_for_a_task(&mut resumed).await, "bcey|");
}

/// What a task that is cancelled had asked for is there when it is asked again; what it never had is not lost.
#[tokio::test]
async fn who_gives_up_waiting_for_the_store_loses_nothing() {
    const OBJECTS: usize = 500;
    let junction = Junction::new();
    let mut writer = junction.store.writer().unwrap();
    let names: Vec<String> = (0..OBJECTS).map(|number| format!("{number:05}")).collect();
    for name in &names {
        let payload = [0; 10_000];
        writer.archive([("name", name.as_str())], &payload).unwrap();
    }
    writer.flush().unwrap();
    let tasks = junction.reader();
    let mut follow = tasks.begin_follow("", FollowOptions::default()).unwrap().await.unwrap();
    let mut given = Vec::new();
    while !follow.is_live() {
        // Asked once, and given up in the middle of whatever it was.
        match futures_once(follow.begin_next()).await {
            Some(item) => {
                if let Some(Item::Object(object)) = item.unwrap() {
                    given.push(object.get("name").unwrap().to_owned());
                }
            }
            None => tokio::task::yield_now().await,
        }
    }
    assert_eq!(given, names);
}

/// What a future has at once; it is dropped.
async fn futures_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        std::task::Poll::Ready(output) => std::task::Poll::Ready(Some(output)),
        std::task::Poll::Pending => std::task::Poll::Ready(None),
    })
    .await
}

/// Whoever drops a follow while a thread reads for it is not kept waiting, and the thread ends.
#[tokio::test]
async fn a_follow_of_tasks_is_dropped_while_it_reads() {
    let junction = Junction::new();
    junction.offer_archive_withdraw("abc");
    let tasks = junction.reader();
    for stops in [false, true] {
        let mut follow = tasks.begin_follow("", FollowOptions::default()).unwrap().await.unwrap();
        // It is at it, or has been.
        let _ = futures_once(follow.begin_next()).await;
        if stops {
            follow.begin_stop().unwrap().await.unwrap();
        }
    }
    tasks.begin_sync().unwrap().await.unwrap();
    let standing = tasks.begin_stat().unwrap().await.unwrap();
    assert!(standing.contains(r#""standing":0"#), "{standing}");
}

/// A loop of others: it looks, takes, and has done elsewhere what takes long.
#[test]
fn a_loop_of_others_follows_into_the_store() {
    let junction = Junction::new();
    junction.offer_archive_withdraw("ac");
    junction.offer("b");
    let reader = junction.reader();
    let mut begun = reader.begin_follow("", until_live(None)).unwrap();
    let mut follow = loop {
        if let Some(follow) = begun.try_take().unwrap() {
            break follow;
        }
    };
    let (mut said, mut errands) = (String::new(), 0);
    while !follow.is_over() {
        binding::look(&reader).unwrap();
        while let Some(item) = binding::take_item(&mut follow).unwrap() {
            tell(&item, &mut said);
        }
        if let Some(errand) = binding::take_errand(&mut follow).unwrap() {
            // One at a time, and one that was not run comes again.
            assert!(binding::take_errand(&mut follow).unwrap().is_none());
            assert!(binding::take_item(&mut follow).unwrap().is_none());
            binding::finish(&mut follow, errand).unwrap();
            let mut errand = binding::take_errand(&mut follow).unwrap().unwrap();
            let errand = thread::spawn(move || {
                errand.run();
                errand
            });
            binding::finish(&mut follow, errand.join().unwrap()).unwrap();
            errands += 1;
        }
    }
    // The look into the store at its beginning was a step of the request.
    assert_eq!((said.as_str(), errands), ("abc|", 2));
}
