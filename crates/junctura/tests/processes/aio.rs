//! The pool for tasks, with other processes, and with few threads.

#[path = "../common/tasks.rs"]
mod tasks;

use std::future::Future as _;
use std::process::{Child, Stdio};
use std::task::{Context, Waker};

use crate::{alone, itself, told};
use junctura::{DemandOptions, FollowOptions, Pool, RequireOptions, Target};
use tasks::{next_object, offer, one_thread};

const LARGE: usize = 1 << 18;

/// Another process of this program, which runs [`other`] alone.
fn start(pool: &Pool, part: &str) -> Child {
    itself(other, pool.url(), part).stdout(Stdio::null()).spawn().unwrap()
}

#[test]
#[ignore = "played by a process of its own"]
fn other() {
    let Some((url, part)) = told() else { return };
    one_thread().block_on(async {
        let pool = Pool::builder().url(url).begin_open().unwrap().await.unwrap();
        match part.as_str() {
            "offers 100" => {
                for number in 0..100 {
                    let bytes = if number % 10 == 0 { LARGE } else { 10 };
                    offer(&pool, &number.to_string(), bytes).await.unwrap();
                }
            }
            "works and dies" => {
                let one = FollowOptions {
                    window: Some(1),
                    join: Some("workers".to_owned()),
                    ..FollowOptions::default()
                };
                let mut share = pool.begin_follow("", one).unwrap().await.unwrap();
                drop(next_object(&mut share).await);
                pool.begin_sync().unwrap().await.unwrap();
                rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
            }
            other => panic!("no part {other}"),
        }
    });
}

#[test]
fn tasks_wait_for_another_process_each_for_its_own() {
    let _alone = alone();
    let many = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    for runtime in [one_thread(), many] {
        runtime.block_on(async {
            let pool = Pool::builder().begin_open().unwrap().await.unwrap();
            let waiting: Vec<_> = (0..100)
                .map(|number| {
                    let pool = pool.clone();
                    tokio::spawn(async move {
                        let key = format!("{{}}{{}}{{name={number}}}");
                        let object = pool
                            .begin_demand(Target::key_text(key).in_schema("free"), DemandOptions::default())?
                            .await;
                        object.map(|object| object.len())
                    })
                })
                .collect();
            let mut follow = pool
                .begin_follow("exists(name)", FollowOptions::default())
                .unwrap()
                .await
                .unwrap();
            let mut producer = start(&pool, "offers 100");
            for (number, task) in waiting.into_iter().enumerate() {
                let bytes = task.await.unwrap().unwrap();
                assert_eq!(bytes, if number % 10 == 0 { LARGE } else { 10 });
            }
            for number in 0..100 {
                assert_eq!(
                    next_object(&mut follow).await.get("name"),
                    Some(number.to_string().as_str())
                );
            }
            assert!(producer.wait().unwrap().success());
        });
    }
}

#[test]
fn what_was_released_before_a_sync_is_done() {
    let _alone = alone();
    one_thread().block_on(async {
        let pool = Pool::builder().schema("free").begin_open().unwrap().await.unwrap();
        let group = RequireOptions {
            name: Some("workers".to_owned()),
            group: true,
            ..RequireOptions::default()
        };
        pool.begin_require("", group).unwrap().await.unwrap();
        let objects = ["1", "2", "3"].map(|name| ([("name", name)], b"work"));
        pool.begin_offer_many(objects).await.unwrap();
        for _ in 0..2 {
            assert!(!start(&pool, "works and dies").wait().unwrap().success());
        }
        let joins = FollowOptions {
            join: Some("workers".to_owned()),
            ..FollowOptions::default()
        };
        let mut share = pool.begin_follow("", joins).unwrap().await.unwrap();
        assert_eq!(next_object(&mut share).await.get("name"), Some("3"));
    });
}

#[test]
fn no_thread_is_behind_a_wait() {
    let _alone = alone();
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    one_thread().block_on(async {
        let pool = Pool::builder().schema("free").begin_open().unwrap().await.unwrap();
        pool.begin_sync().unwrap().await.unwrap();
        let mut waiting: Vec<_> = (0..200)
            .map(|number| {
                let pool = pool.clone();
                Box::pin(async move {
                    pool.begin_demand(format!("name={number}").as_str(), DemandOptions::default())?
                        .await
                })
            })
            .collect();
        let before = threads();
        for one in &mut waiting {
            let polled = one.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
        }
        // The threads of tests that wait their turn begin and end.
        assert!(threads() < before + 100);
        for number in (0..200).rev() {
            offer(&pool, &number.to_string(), 1).await.unwrap();
        }
        for (number, one) in waiting.into_iter().enumerate() {
            assert_eq!(one.await.unwrap().get("name"), Some(number.to_string().as_str()));
        }
    });
}
