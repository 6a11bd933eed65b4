//! Clients that connect and do not introduce themselves, made by hand, before a server on a thread.

use junctura_model::{Code, Error};
use junctura_transport::{Carrier, Inbox, Outbox, PollInterest, ReceiveResult, UnixCarrier, wait};
use junctura_wire::fixed::ReleasedHolding;
use junctura_wire::{Reply, Request, VERSION, body};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::poller::ReadyEvents;
use super::turn::ClientTurn;
use super::{EmbeddedServer, FairShare, SelectorPreparation, Server, ServerOptions, private_address};
use crate::{PoolConfig, PoolLimits};

/// A server for so many clients.
fn served(clients: usize) -> EmbeddedServer {
    let options = ServerOptions {
        config: PoolConfig {
            limits: PoolLimits {
                clients,
                ..PoolLimits::default()
            },
            ..PoolConfig::default()
        },
        ..ServerOptions::default()
    };
    Server::start_embedded(options).unwrap()
}

fn say_hello(client: &mut UnixCarrier) {
    let hello = body::Hello {
        version: VERSION,
        ring_bytes: Some(4096),
        ..body::Hello::default()
    };
    let mut out = Outbox::new();
    out.push(|bytes| Request::Hello(hello).encode(1, bytes)).unwrap();
    // A server that refuses a client at once has closed the connection.
    let _ = client.send(&mut out);
}

/// Whether the client is welcome; otherwise, why not.
fn hear(client: &mut UnixCarrier) -> Result<(), Error> {
    let mut inbox = Inbox::new();
    loop {
        while let Some((frame, _)) = inbox.next_frame().unwrap() {
            match Reply::decode(&frame).unwrap() {
                Reply::Welcome(_) => return Ok(()),
                Reply::Failed(failure) => return Err(failure.into()),
                _ => {}
            }
        }
        match client.receive(&mut inbox).unwrap() {
            ReceiveResult::End => panic!("the server gives a reason before it closes"),
            ReceiveResult::Nothing => drop(wait(client.as_fd(), PollInterest::READ).unwrap()),
            _ => {}
        }
    }
}

#[test]
fn a_client_that_is_silent_goes_for_one_that_introduces_itself() {
    let server = served(4);
    let connect = || UnixCarrier::connect(server.address()).unwrap();
    let mut silent: Vec<_> = (0..10).map(|_| connect()).collect();
    let mut honest: Vec<_> = (0..4)
        .map(|_| {
            let mut client = connect();
            say_hello(&mut client);
            hear(&mut client).unwrap();
            client
        })
        .collect();
    for client in &mut silent {
        let error = hear(client).unwrap_err();
        assert_eq!(error.code(), Code::LimitExceeded, "{error}");
        assert!(error.cause().contains("introduced itself"), "{error}");
    }
    // Connected clients stay, and one more is refused.
    let error = hear(&mut connect()).unwrap_err();
    assert_eq!((error.code(), error.subject()), (Code::LimitExceeded, "clients"));
    // One that leaves makes room.
    drop(honest.pop());
    loop {
        let mut client = connect();
        say_hello(&mut client);
        if hear(&mut client).is_ok() {
            break;
        }
    }
}

#[test]
fn without_descriptors_for_rings_a_client_is_told_so() {
    const VARIABLE: &str = "JUNCTURA_TEST_RINGS";
    if std::env::var_os(VARIABLE).is_none() {
        // In a process of its own, whose limit is its own.
        let done = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "server::tests::without_descriptors_for_rings_a_client_is_told_so",
            ])
            .env(VARIABLE, "1")
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        return;
    }
    let server = served(4);
    let mut late = UnixCarrier::connect(server.address()).unwrap();
    let mut first = UnixCarrier::connect(server.address()).unwrap();
    say_hello(&mut first);
    hear(&mut first).unwrap();
    let next = rustix::io::fcntl_dupfd_cloexec(late.as_fd(), 0).unwrap();
    let used = std::os::fd::AsRawFd::as_raw_fd(&next) as u64;
    drop(next);
    let limit = Rlimit {
        current: Some(used),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    say_hello(&mut late);
    let error = hear(&mut late).unwrap_err();
    assert_eq!(error.code(), Code::LimitExceeded, "{error}");
    let cause = format!("the server cannot open more file descriptors (limit {used}); raise it with `ulimit -n`");
    assert!(error.cause().contains(&cause), "{error}");
}

/// A server for so many clients, whose turns the test takes. No turn ends early.
fn stepped(clients: usize) -> Server {
    let options = ServerOptions {
        turn: Duration::MAX,
        config: PoolConfig {
            limits: PoolLimits {
                clients,
                ..PoolLimits::default()
            },
            ..PoolConfig::default()
        },
        ..ServerOptions::default()
    };
    Server::bind(&private_address().unwrap(), options).unwrap()
}

/// A client that has connected, and is the server's of this number.
fn connected(server: &mut Server) -> UnixCarrier {
    let client = UnixCarrier::connect(server.address()).unwrap();
    server.accept();
    client
}

fn ask(client: &mut UnixCarrier, requests: Vec<Request<'_>>) {
    let mut out = Outbox::new();
    for (number, request) in requests.into_iter().enumerate() {
        out.push(|bytes| request.encode(number as u64, bytes)).unwrap();
    }
    client.send(&mut out).unwrap();
    assert!(out.is_empty());
}

/// A `Hello`, and so many demands that stand.
fn introduction<'a>(demands: usize) -> Vec<Request<'a>> {
    let hello = body::Hello {
        version: VERSION,
        ..body::Hello::default()
    };
    let demand = || {
        Request::Demand(body::DemandRequest {
            target: body::TargetBody::selector("name=none"),
            timeout_ms: None,
            requirement: None,
            requirement_name: None,
            incomplete: false,
        })
    };
    let mut requests = vec![Request::Hello(hello)];
    requests.extend((0..demands).map(|_| demand()));
    requests
}

#[test]
fn the_connection_of_one_that_says_goodbye_ends_when_the_pool_has_let_go_of_it() {
    let mut server = stepped(4);
    let mut client = connected(&mut server);
    let mut requests = introduction(600);
    requests.push(Request::Goodbye);
    ask(&mut client, requests);
    while server.leaving.is_empty() {
        server.read(1, ClientTurn::Heavy);
    }
    let mut turns = 0;
    while server.core.has_joined(1) {
        server.flush();
        assert!(server.world.connections.contains_key(&1));
        server.see_off();
        turns += 1;
    }
    assert!(turns > 1);
    server.flush();
    assert!(!server.world.connections.contains_key(&1) && server.leaving.is_empty());
}

#[test]
fn one_that_is_turned_away_makes_room_while_another_leaves_in_parts() {
    let mut server = stepped(2);
    let mut heavy = connected(&mut server);
    ask(&mut heavy, introduction(900));
    while server.core.stat().interests.standing < 900 {
        server.read(1, ClientTurn::Heavy);
    }
    server.lost(1, "its connection ended");
    let _silent = connected(&mut server);
    assert!(server.world.connections.contains_key(&2));
    let _next = connected(&mut server);
    assert!(server.world.connections.contains_key(&3));
    assert!(!server.world.connections.contains_key(&2) && server.core.has_joined(1));
}

#[test]
fn one_whose_hello_has_come_is_not_too_late() {
    let mut server = stepped(4);
    let (mut hasty, _silent) = (connected(&mut server), connected(&mut server));
    ask(&mut hasty, introduction(0));
    server.turn_overdue_away(u64::MAX);
    assert!(server.core.has_joined(1));
    assert!(!server.world.connections.contains_key(&2));
}

#[test]
fn one_that_is_given_up_is_no_newcomer() {
    let mut server = stepped(4);
    let mut client = connected(&mut server);
    ask(&mut client, vec![Request::Stat]);
    server.read(1, ClientTurn::Heavy);
    server.flush();
    assert!(!server.world.connections.contains_key(&1));
    assert_eq!(server.newcomers.deadline(), None);
}

#[test]
fn so_many_get_another_turn_between_two_looks_at_sockets() {
    let mut server = stepped(100);
    let _clients: Vec<_> = (0..70).map(|_| connected(&mut server)).collect();
    (1..=70).for_each(|client| server.read_again(client));
    server.read_unfinished();
    assert_eq!(server.unfinished.len(), 6);
    server.read_unfinished();
    assert!(server.unfinished.is_empty());
    // Together they have the time of one turn.
    server.options.turn = Duration::ZERO;
    (1..=3).for_each(|client| server.read_again(client));
    server.read_unfinished();
    assert_eq!(server.unfinished.len(), 2);
}

/// Does what the server does when a client's socket is readable.
fn readable(server: &mut Server, client: u32) {
    let ready = ReadyEvents {
        readable: true,
        ..ReadyEvents::default()
    };
    server.serve(client, ready);
}

#[test]
fn one_that_says_little_is_answered_before_thirty_that_do_not_stop() {
    const HOSTILE: u32 = 30;
    let mut server = stepped(40);
    let mut hostile: Vec<_> = (0..HOSTILE).map(|_| connected(&mut server)).collect();
    let mut honest = connected(&mut server);
    ask(&mut honest, introduction(0));
    server.read(HOSTILE + 1, ClientTurn::Light);
    // From now on a turn is over as soon as the server looks at the clock.
    server.options.turn = Duration::ZERO;
    for client in &mut hostile {
        let mut requests = introduction(0);
        requests.extend((0..1000).map(|_| Request::Release(&[])));
        ask(client, requests);
    }
    (1..=HOSTILE).for_each(|client| readable(&mut server, client));
    for round in 0..5 {
        for _ in 0..7 * round {
            server.read_unfinished();
        }
        let before = server.world.traffic.frames_read;
        // It has taken less than its share: here all turns count the same.
        server.world.connections.get_mut(&(HOSTILE + 1)).unwrap().turn.spent = 0;
        ask(&mut honest, vec![Request::Release(&[])]);
        readable(&mut server, HOSTILE + 1);
        server.read_unfinished();
        assert_eq!(server.world.traffic.frames_read, before + 1, "its own, and no other");
        assert!(!server.world.connections[&(HOSTILE + 1)].turn.is_noted);
        assert_eq!(server.unfinished.len(), HOSTILE as usize);
    }
}

#[test]
fn an_honest_client_is_answered_before_fifty_visitors_that_do_not_stop() {
    const VISITORS: u32 = 50;
    let mut server = stepped(60);
    let mut visitors: Vec<_> = (0..VISITORS).map(|_| connected(&mut server)).collect();
    let mut honest = connected(&mut server);
    ask(&mut honest, introduction(0));
    server.read(VISITORS + 1, ClientTurn::Light);
    // From now on a turn is over as soon as the server looks at the clock.
    server.options.turn = Duration::ZERO;
    for (client, number) in visitors.iter_mut().zip(1..) {
        let hello = body::Hello {
            version: VERSION,
            visits: true,
            ..body::Hello::default()
        };
        let mut requests = vec![Request::Hello(hello)];
        requests.extend((0..100).map(|_| Request::Stat));
        ask(client, requests);
        server.read(number, ClientTurn::Light);
    }
    assert_eq!(server.visitors.len(), VISITORS as usize);
    for _ in 0..10 {
        // All have sent something, the honest client last: a quick request, and one that is not.
        (1..=VISITORS).for_each(|client| readable(&mut server, client));
        ask(&mut honest, vec![Request::Release(&[]), Request::Stat]);
        readable(&mut server, VISITORS + 1);
        let before = server.world.traffic.frames_read;
        while !server.unfinished.is_empty() || !server.deferred.is_empty() {
            server.share = FairShare::of_heavy();
            server.read_unfinished();
            server.read_deferred();
        }
        assert_eq!(server.world.traffic.frames_read, before + 2, "its own, and no other");
        // While it is at work, visitors wait for their share, and have one short turn then.
        server.visitor_share.note_turn(u64::MAX - 1, u64::MAX);
        server.visitor_share.note_others(u64::MAX);
        assert!(!server.visitors_may_go_on());
        server.visitor_share = FairShare::of_visitors();
        assert!(server.visitors_may_go_on());
        server.read_visitors();
        assert_eq!(server.world.traffic.frames_read, before + 3);
        assert_eq!(server.visitors.len(), VISITORS as usize);
    }
}

#[test]
fn visitors_have_whole_turns_where_nobody_else_is_at_work() {
    let mut server = stepped(4);
    let mut visitor = connected(&mut server);
    let hello = body::Hello {
        version: VERSION,
        visits: true,
        ..body::Hello::default()
    };
    let mut requests = vec![Request::Hello(hello)];
    requests.extend((0..100).map(|_| Request::Stat));
    ask(&mut visitor, requests);
    server.read(1, ClientTurn::Light);
    assert_eq!(
        server.world.traffic.frames_read, 1,
        "the rest waits for the turn of visitors"
    );
    server.visitor_share = FairShare::of_visitors();
    server.read_visitors();
    assert_eq!(server.world.traffic.frames_read, 101);
    assert!(server.visitors.is_empty());
}

#[test]
fn one_that_connects_anew_is_behind_those_who_wait() {
    let mut server = stepped(4);
    server.options.turn = Duration::from_millis(1);
    let (mut honest, mut newcomer) = (connected(&mut server), connected(&mut server));
    ask(&mut honest, introduction(0));
    server.read(1, ClientTurn::Heavy);
    server.world.connections.get_mut(&1).unwrap().turn.spent = 0;
    ask(&mut newcomer, introduction(0));
    readable(&mut server, 2);
    ask(&mut honest, vec![Request::Release(&[])]);
    readable(&mut server, 1);
    assert_eq!((server.unfinished.pop(), server.unfinished.pop()), (Some(1), Some(2)));
}

#[test]
fn what_is_not_quick_waits_until_sockets_were_looked_at() {
    let mut server = stepped(4);
    let mut client = connected(&mut server);
    ask(&mut client, introduction(1));
    server.read(1, ClientTurn::Light);
    assert!(server.core.has_joined(1) && server.core.stat().interests.standing == 0);
    assert!(server.unfinished.is_empty() && server.deferred == [1]);
    server.share.note_turn(u64::MAX - 1, u64::MAX);
    server.share.note_others(u64::MAX);
    server.read_deferred();
    assert_eq!(server.core.stat().interests.standing, 0, "others are at work");
    server.share = FairShare::of_heavy();
    server.read_deferred();
    assert_eq!(server.core.stat().interests.standing, 1);
}

/// Clients that wait for another turn get one.
fn go_on(server: &mut Server) {
    server.read_unfinished();
    server.read_deferred();
}

/// A subscription whose expressions take long to compile.
fn costly<'a>() -> Request<'a> {
    Request::Subscribe(body::SubscribeRequest {
        selector: r#"name~"[a-z]{3}""#.into(),
        events: body::events::OFFERED,
    })
}

#[test]
fn nothing_waits_for_expressions_but_their_client() {
    let mut server = stepped(4);
    let (mut client, mut other) = (connected(&mut server), connected(&mut server));
    let mut requests = introduction(0);
    requests.extend([costly(), Request::Stat, costly()]);
    ask(&mut client, requests);
    server.read(1, ClientTurn::Heavy);
    let waits = |server: &Server| server.world.connections[&1].turn.waits_for_selector();
    let standing = |server: &Server| server.core.stat().interests.standing;
    assert!(waits(&server) && server.core.has_joined(1) && standing(&server) == 0);
    ask(&mut other, introduction(1));
    server.read(2, ClientTurn::Heavy);
    assert_eq!(standing(&server), 1);
    // One that is not read waits for nothing else, either.
    server.read(1, ClientTurn::Heavy);
    server.flush();
    assert!(waits(&server) && server.unfinished.is_empty() && server.deferred.is_empty());
    for count in [2, 3] {
        wait(server.compiler.bell(), PollInterest::READ).unwrap();
        server.note_compiled();
        assert!(!waits(&server));
        go_on(&mut server);
        assert_eq!(standing(&server), count);
    }
    assert!(matches!(
        server.world.connections[&1].turn.selector,
        SelectorPreparation::None
    ));
}

#[test]
fn one_that_dies_while_its_expressions_are_compiled_is_heard_to_the_end() {
    let mut server = stepped(4);
    let mut client = connected(&mut server);
    let mut requests = introduction(0);
    requests.extend([costly(), costly(), Request::Goodbye]);
    ask(&mut client, requests);
    server.read(1, ClientTurn::Heavy);
    drop(client);
    server.died(1, "its process ended");
    go_on(&mut server);
    assert!(server.core.has_joined(1) && server.unfinished.is_empty() && server.deferred.is_empty());
    for _ in 0..2 {
        assert!(server.core.has_joined(1));
        wait(server.compiler.bell(), PollInterest::READ).unwrap();
        server.note_compiled();
        go_on(&mut server);
    }
    assert!(!server.core.has_joined(1));
    server.flush();
    // One that is lost before is forgotten.
    let mut client = connected(&mut server);
    let mut requests = introduction(0);
    requests.push(costly());
    ask(&mut client, requests);
    server.read(2, ClientTurn::Heavy);
    server.lost(2, "its connection ended");
    wait(server.compiler.bell(), PollInterest::READ).unwrap();
    server.note_compiled();
    assert!(!server.core.has_joined(2) && !server.deferred.contains(&2));
}

#[test]
fn a_release_of_very_many_takes_several_turns_and_is_one_frame() {
    let mut server = stepped(4);
    let mut client = connected(&mut server);
    ask(&mut client, introduction(0));
    server.read(1, ClientTurn::Light);
    let holding = ReleasedHolding::default();
    ask(
        &mut client,
        vec![Request::Release(&vec![holding; 3 * 128 + 1]), Request::Stat],
    );
    server.options.turn = Duration::ZERO;
    for released in [128, 256, 384] {
        server.read(1, ClientTurn::Light);
        assert_eq!(server.world.connections[&1].turn.released, released);
        assert!(server.world.connections[&1].turn.has_leftover);
    }
    let frames = server.world.traffic.frames_read;
    server.read(1, ClientTurn::Light);
    assert_eq!(server.world.connections[&1].turn.released, 0);
    assert_eq!(server.world.traffic.frames_read, frames + 1);
}

#[test]
fn so_many_newcomers_are_looked_at_before_one_goes_or_another_comes() {
    let mut server = stepped(40);
    let mut hasty: Vec<_> = (0..39).map(|_| connected(&mut server)).collect();
    let _silent = connected(&mut server);
    for client in &mut hasty {
        ask(client, introduction(0));
    }
    let joined = |server: &Server| server.core.stat().clients.len();
    let _next = connected(&mut server);
    assert!(joined(&server) == 16 && server.newcomers.wait_for_room());
    server.accept();
    assert!(joined(&server) == 32 && server.newcomers.wait_for_room());
    server.accept();
    assert!(joined(&server) == 39 && !server.newcomers.wait_for_room());
    assert!(!server.world.connections.contains_key(&40) && server.world.connections.contains_key(&41));
    // The next one takes its place; then all have introduced themselves.
    ask(&mut connected(&mut server), introduction(0));
    server.read(42, ClientTurn::Light);
    let mut last = connected(&mut server);
    let error = hear(&mut last).unwrap_err();
    assert_eq!((error.code(), error.subject()), (Code::LimitExceeded, "clients"));
}

#[test]
fn so_many_whose_time_is_over_go_in_a_turn() {
    let mut server = stepped(40);
    let _silent: Vec<_> = (0..40).map(|_| connected(&mut server)).collect();
    for left in [24, 8, 0] {
        server.turn_overdue_away(u64::MAX);
        assert_eq!(server.world.connections.len(), left);
    }
}

#[test]
fn a_look_at_a_newcomer_answers_its_first_message_alone() {
    let mut server = stepped(4);
    let mut hasty = connected(&mut server);
    let mut requests = introduction(0);
    requests.extend((0..100).map(|_| Request::Release(&[])));
    ask(&mut hasty, requests);
    server.turn_overdue_away(u64::MAX);
    assert!(server.core.has_joined(1) && server.world.traffic.frames_read == 1);
    server.read_unfinished();
    assert_eq!(server.world.traffic.frames_read, 101);
}

#[test]
fn so_many_clients_get_their_messages_before_others_have_a_turn() {
    let mut server = stepped(400);
    let mut clients: Vec<_> = (0..300).map(|_| connected(&mut server)).collect();
    for (client, number) in clients.iter_mut().zip(1..) {
        ask(client, introduction(0));
        server.read(number, ClientTurn::Light);
    }
    server.flush();
    assert!(server.world.is_touched());
    let written = |server: &Server| {
        server
            .world
            .connections
            .values()
            .filter(|one| one.outbox.is_empty())
            .count()
    };
    assert_eq!(written(&server), 256);
    // A client that gets more messages meanwhile is queued behind the waiting clients.
    server.world.touch(1);
    server.flush();
    assert!(written(&server) == 300 && !server.world.is_touched());
}

#[test]
fn so_many_bytes_are_sent_before_others_have_a_turn() {
    let mut server = stepped(80);
    let _clients: Vec<_> = (0..60).map(|_| connected(&mut server)).collect();
    let page = vec![0; 1 << 19];
    for client in 1..=60 {
        let connection = server.world.connections.get_mut(&client).unwrap();
        let stats = String::from_utf8(page.clone()).unwrap();
        connection
            .outbox
            .push(|out| Reply::Stats(&stats).encode(1, out))
            .unwrap();
        server.world.unread_bytes += connection.outbox.len();
        server.world.touch(client);
    }
    let mut before = 0;
    while server.world.is_touched() {
        server.flush();
        let written = server.world.traffic.bytes_written;
        assert!(written - before <= (4 << 20) + (1 << 20), "the last one is a client's");
        before = written;
    }
    assert!(before > 5 << 20, "it takes several turns");
}

#[test]
fn so_many_that_are_lost_leave_in_a_turn() {
    let mut server = stepped(20);
    let mut clients: Vec<_> = (0..10).map(|_| connected(&mut server)).collect();
    for (client, number) in clients.iter_mut().zip(1..) {
        ask(client, introduction(0));
        server.read(number, ClientTurn::Light);
    }
    (1..=10).for_each(|client| server.lost(client, "its process ended"));
    assert_eq!((server.world.connections.len(), server.leaving.len()), (0, 6));
    // One that has not introduced itself has nothing to leave.
    let silent = connected(&mut server);
    server.lost(11, "its process ended");
    assert!(!server.core.has_joined(11) && server.leaving.len() == 6);
    drop(silent);
    while server.see_off() {}
    assert_eq!(server.core.stat().clients_connected, 0);
}

#[test]
fn a_board_that_clients_ask_for_without_end_is_written_for_all_of_them_at_once() {
    let mut server = stepped(4);
    let mut client = connected(&mut server);
    ask(&mut client, introduction(0));
    server.read(1, ClientTurn::Light);
    let ask_for_boards = |server: &mut Server, client: &mut UnixCarrier| {
        ask(client, (0..50).map(|_| Request::Board).collect());
        server.read(1, ClientTurn::Heavy);
    };
    ask_for_boards(&mut server, &mut client);
    server.show(1000);
    assert!(server.world.boards_asked.is_empty());
    server.flush();
    let shown = server.world.traffic.frames_written;
    let board = server.board.as_mut().unwrap();
    board.took = 10_000;
    ask_for_boards(&mut server, &mut client);
    // Twenty times as long as it took.
    assert_eq!(server.board_due_at(), Some(201_000));
    server.show(200_999);
    assert_eq!(
        (server.world.boards_asked.len(), server.world.traffic.frames_written),
        (50, shown)
    );
    server.show(201_000);
    assert_eq!(
        (server.world.boards_asked.len(), server.world.traffic.frames_written),
        (0, shown + 50)
    );
    // One descriptor is enough for all.
    assert_eq!(
        std::sync::Arc::strong_count(&server.board.as_ref().unwrap().descriptor),
        51
    );
}

#[test]
fn a_server_that_nobody_reaches_ends_when_idle() {
    let options = ServerOptions {
        end_when_idle: Some(Duration::from_millis(1)),
        ..ServerOptions::default()
    };
    Server::bind(&private_address().unwrap(), options)
        .unwrap()
        .run()
        .unwrap();
}
