//! The board of a server: its numbers equal those that the server reports itself.

use junctura::board::{BoardHistogram, BoardSnapshot};
use junctura::{BoardCounter, BoardState, Code, Pool, PoolBoard, RequireOptions, WithdrawOptions};

/// A pool of this process; `None` where all pools are reached over a network here (see CONTRIBUTING.md).
fn with_board() -> Option<(Pool, PoolBoard)> {
    let pool = Pool::builder().schema("free").name("member-17").open().unwrap();
    match pool.board() {
        Ok(board) => Some((pool, board)),
        Err(error) => {
            assert_eq!(error.code(), Code::Unsupported, "{error}");
            assert!(error.cause().contains("stat"), "{error}");
            None
        }
    }
}

/// A new board is written for each request.
fn now(pool: &Pool) -> BoardSnapshot {
    pool.board().unwrap().snapshot()
}

fn offer(pool: &Pool, name: &str, bytes: usize) {
    pool.offer([("name", name)], &vec![7; bytes]).unwrap();
}

#[test]
fn sums_of_flows_are_the_totals() {
    let Some((producer, _)) = with_board() else { return };
    let consumer = Pool::builder().url(producer.url()).name("reader-3").open().unwrap();
    for (name, bytes) in [("a", 10), ("b", 100_000), ("c", 0)] {
        offer(&producer, name, bytes);
        drop(consumer.demand(format!("name={name}").as_str(), None).unwrap());
    }
    consumer.sync(None).unwrap();
    let held = consumer.demand("name=b", None).unwrap();
    let board = now(&producer);
    assert!(board.is_consistent && board.head.state == BoardState::Serving);
    assert_eq!(board.counter(BoardCounter::Offered), 3);
    assert_eq!(board.counter(BoardCounter::Delivered), 4);
    assert_eq!(board.counter(BoardCounter::Held), 1);
    assert_eq!(board.histogram(BoardHistogram::ObjectSize).sum, 100_010);
    assert_eq!(board.histogram(BoardHistogram::ObjectSize).count(), 3);
    let component = |name: &str| board.components.iter().position(|one| one.name == name).unwrap();
    let (from, to) = (component("member-*"), component("reader-*"));
    assert_eq!((board.components[from].offered, board.components[to].delivered), (3, 4));
    assert_eq!(board.components[to].released, 3);
    let [edge] = board.edges[..] else {
        panic!("{:?}", board.edges)
    };
    assert_eq!((usize::from(edge.from), usize::from(edge.to)), (from, to));
    assert_eq!(
        (edge.objects, edge.bytes),
        (4, board.counter(BoardCounter::DeliveredBytes))
    );
    let [dataset] = &board.datasets[..] else {
        panic!("{:?}", board.datasets)
    };
    assert_eq!(
        (dataset.name.as_str(), dataset.visible, dataset.visible_bytes),
        ("space=default", 3, 100_010)
    );
    drop(held);
}

#[test]
fn numbers_are_those_of_stat() {
    let Some((pool, _)) = with_board() else { return };
    let requirement = pool
        .require_with(
            "name=x1/x2",
            RequireOptions {
                name: Some("plots".to_owned()),
                ..RequireOptions::default()
            },
        )
        .unwrap();
    for name in ["x1", "x2", "y"] {
        offer(&pool, name, 5000);
    }
    assert_eq!(pool.withdraw_all("name=y", WithdrawOptions::default()).unwrap(), 1);
    let (stat, board) = (pool.stat().unwrap(), now(&pool));
    for (counter, field) in [
        (BoardCounter::Offered, "\"offered\":3"),
        (BoardCounter::Withdrawn, "\"withdrawn\":1"),
        (BoardCounter::Visible, "\"visible\":2"),
        (BoardCounter::Tombstones, "\"tombstones\":1"),
        (BoardCounter::Owed, "\"owed\":2"),
    ] {
        assert!(stat.contains(field), "{field}: {stat}");
        let number: u64 = field.rsplit(':').next().unwrap().parse().unwrap();
        assert_eq!(board.counter(counter), number, "{}", counter.name());
    }
    let plots = &board.requirements[0];
    assert_eq!(
        (plots.name.as_str(), plots.owed, plots.owed_bytes, plots.users),
        ("plots", 2, 10_000, 1)
    );
    assert!(plots.oldest_owed_age_ns.is_some() && plots.last_release_age_ns.is_none() && !plots.is_broken);
    assert_eq!(board.datasets[0].visible, 2);
    let json = board.to_json();
    assert!(
        json.contains("\"counters\":{\"offered\":3,") && json.contains("\"state\":\"serving\""),
        "{json}"
    );
    drop(requirement);
}

#[test]
fn clients_and_components_come_and_go() {
    let Some((pool, board)) = with_board() else { return };
    let others: Vec<_> = (0..3)
        .map(|number| {
            Pool::builder()
                .url(pool.url())
                .name(format!("reader-{number}"))
                .open()
                .unwrap()
        })
        .collect();
    let with_them = now(&pool);
    assert_eq!(with_them.clients.len(), 4);
    assert_eq!(with_them.components[1].clients, 3);
    for other in others {
        other.begin_close().unwrap().wait().unwrap();
    }
    // The board is written some time after a client has left.
    loop {
        let later = board.snapshot();
        if later.clients.len() == 1 {
            assert_eq!(
                (
                    later.components[1].clients,
                    later.components[1].joined,
                    later.components[1].left
                ),
                (0, 3, 3)
            );
            break;
        }
        std::hint::spin_loop();
    }
}

#[test]
fn the_last_note_is_on_the_board() {
    let Some((pool, board)) = with_board() else { return };
    for step in 0..50 {
        pool.note(format!("step={step}, of=50")).unwrap();
    }
    while board.snapshot().clients[0].note != "step=49, of=50" {
        std::hint::spin_loop();
    }
    let long = "x".repeat(1024);
    pool.note(&long).unwrap();
    while board.snapshot().clients[0].note != long[..128] {
        std::hint::spin_loop();
    }
    assert!(pool.stat().unwrap().contains(&long));
    for wrong in ["x".repeat(1025), "a\nb".to_owned()] {
        assert_eq!(pool.note(wrong).unwrap_err().code(), Code::InvalidArgument);
    }
}

#[test]
fn delays_holds_and_errors_are_counted() {
    let Some((pool, _)) = with_board() else { return };
    offer(&pool, "a", 10);
    drop(pool.demand("name=a", None).unwrap());
    pool.sync(None).unwrap();
    assert!(pool.offer([("name", "a")], b"again").is_err());
    let board = now(&pool);
    for histogram in [BoardHistogram::DeliveryDelay, BoardHistogram::HoldTime] {
        assert_eq!(board.histogram(histogram).count(), 1, "{histogram:?}");
    }
    assert_eq!(board.histogram(BoardHistogram::MemoryWait).count(), 0);
    let failed: Vec<_> = board.errors.iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(failed, [&(Code::AlreadyExists, 1)]);
    assert_eq!(board.counter(BoardCounter::Failed), 1);
}

#[test]
fn a_server_that_rests_turns_and_one_that_has_ended_says_so() {
    let Some((pool, board)) = with_board() else { return };
    let turns = board.head().turns;
    while board.head().turns < turns + 2 {
        std::hint::spin_loop();
    }
    drop(pool);
    while board.head().state != BoardState::Ended {
        std::hint::spin_loop();
    }
    assert!(board.snapshot().is_consistent);
}
