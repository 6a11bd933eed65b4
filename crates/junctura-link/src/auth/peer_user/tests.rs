//! Rows of the kernel's tables, as literal text.

use std::fmt::Write as _;
use std::io::{Cursor, ErrorKind, Write as _};
use std::net::TcpListener;

use super::*;

const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
/// 127.0.0.1:40000 and 127.0.0.1:7000, as the tables show them.
const NEAR: &str = "0100007F:9C40";
const FAR: &str = "0100007F:1B58";
/// The same, of sockets for IPv6.
const NEAR_MAPPED: &str = "0000000000000000FFFF00000100007F:9C40";
const FAR_MAPPED: &str = "0000000000000000FFFF00000100007F:1B58";

fn row(local: &str, remote: &str, state: &str, uid: u32, inode: u64) -> String {
    format!(
        "   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000 {uid:>5}        0 {inode} 1 \
         00000000ec2dc013 100 0 0 10 0"
    )
}

fn ends() -> SocketEnds {
    SocketEnds {
        near: "127.0.0.1:40000".parse().unwrap(),
        far: "127.0.0.1:7000".parse().unwrap(),
    }
}

fn table(rows: &[String]) -> String {
    let mut text = format!("{HEAD:<149}\n");
    for row in rows {
        writeln!(text, "{row:<149}").unwrap();
    }
    text
}

fn owner(asking: AskingSide, rows: &[String]) -> Option<u32> {
    owner_in(Cursor::new(table(rows)), ends(), asking).unwrap()
}

#[test]
fn rows_are_read_as_the_kernel_writes_them() {
    if cfg!(target_endian = "big") {
        return;
    }
    let line = "   7: 0100007F:1B58 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 20 4 30 10 -1";
    let read = SocketRow::read(line.as_bytes()).unwrap();
    let expected = SocketRow {
        local: ends().far,
        remote: ends().near,
        state: ESTABLISHED,
        uid: 1000,
        inode: 4711,
    };
    assert_eq!(read, expected);
    let six =
        format!("0: 00000000000000000000000001000000:0050 {FAR_MAPPED} 0A 0:0 0:0 0 4294967294 0 18446744073709551615");
    let read = SocketRow::read(six.as_bytes()).unwrap();
    assert_eq!(read.local, "[::1]:80".parse().unwrap());
    assert_eq!(read.remote, ends().far);
    assert_eq!((read.state, read.uid, read.inode), (LISTEN, u32::MAX - 1, u64::MAX));
}

#[test]
fn other_text_is_no_row() {
    let good = row(FAR, NEAR, "01", 7, 9);
    assert!(SocketRow::read(good.as_bytes()).is_some());
    let words: Vec<_> = good.split_whitespace().collect();
    // Without any one of the first ten words, and with other text in place of those that are read.
    for count in 0..10 {
        assert_eq!(
            SocketRow::read(words[..count].join(" ").as_bytes()),
            None,
            "{count} words"
        );
    }
    for (at, wrong) in [
        (1, "0100007F"),
        (1, "0100007F:"),
        (1, "0100007F:10000"),
        (1, "0100007:1B58"),
        (1, "0100007G:1B58"),
        (1, "€€€:1B58"),
        (1, "0000000000000000FFFF00000100007:1B58"),
        (2, ":"),
        (3, "100"),
        (3, "x"),
        (7, "-1"),
        (7, "4294967296"),
        (9, "18446744073709551616"),
    ] {
        let mut changed = words.clone();
        changed[at] = wrong;
        assert_eq!(SocketRow::read(changed.join(" ").as_bytes()), None, "{wrong:?}");
    }
    for bytes in [&b""[..], b"\n", b"\xff\xfe", HEAD.as_bytes(), &[0; 100]] {
        assert_eq!(SocketRow::read(bytes), None);
    }
}

#[test]
fn the_owner_of_a_client_is_that_of_its_own_open_socket() {
    let accepted = row(NEAR, FAR, "01", 1, 11);
    let client = row(FAR, NEAR, "01", 2, 12);
    assert_eq!(owner(AskingSide::Acceptor, &[accepted.clone(), client]), Some(2));
    assert_eq!(owner(AskingSide::Acceptor, std::slice::from_ref(&accepted)), None);
    // A client may have a socket for IPv6.
    let mapped = row(FAR_MAPPED, NEAR_MAPPED, "01", 3, 13);
    assert_eq!(owner(AskingSide::Acceptor, &[mapped]), Some(3));
    // A socket that no process has open proves no user, nor does one in a state other than ESTABLISHED.
    assert_eq!(owner(AskingSide::Acceptor, &[row(FAR, NEAR, "01", 0, 0)]), None);
    for state in [
        "02", "03", "04", "05", "06", "07", "08", "09", "0A", "0B", "0C", "00", "FF",
    ] {
        assert_eq!(
            owner(AskingSide::Acceptor, &[row(FAR, NEAR, state, 1, 14)]),
            None,
            "{state}"
        );
    }
    // Nor does a listening socket prove the user of a client.
    let listening = row(FAR, "00000000:0000", "0A", 1, 15);
    assert_eq!(
        owner(AskingSide::Acceptor, &[listening, row(FAR, NEAR, "01", 0, 0)]),
        None
    );
}

#[test]
fn the_owner_of_a_server_is_that_of_the_accepted_socket_or_of_the_listening_one() {
    let any = "00000000:0000";
    let waiting = row(FAR, NEAR, "01", 0, 0);
    let listening = |at: &str, uid| row(at, any, "0A", uid, 21);
    let accepted = row(FAR, NEAR, "01", 2, 22);
    assert_eq!(
        owner(AskingSide::Connector, &[listening(FAR, 1), accepted.clone()]),
        Some(2)
    );
    assert_eq!(owner(AskingSide::Connector, &[accepted]), Some(2));
    for at in [
        FAR,
        "00000000:1B58",
        FAR_MAPPED,
        "00000000000000000000000000000000:1B58",
    ] {
        assert_eq!(
            owner(AskingSide::Connector, &[listening(at, 1), waiting.clone()]),
            Some(1),
            "{at}"
        );
    }
    let half = row(FAR, NEAR, "03", 0, 0);
    assert_eq!(owner(AskingSide::Connector, &[listening(FAR, 1), half]), Some(1));
    // Without the connection itself, or when another one listens, or several users do.
    assert_eq!(owner(AskingSide::Connector, &[listening(FAR, 1)]), None);
    assert_eq!(owner(AskingSide::Connector, std::slice::from_ref(&waiting)), None);
    for at in [
        "0100007F:1B59",
        "0200007F:1B58",
        "00000000000000000000000001000000:1B58",
    ] {
        assert_eq!(
            owner(AskingSide::Connector, &[listening(at, 1), waiting.clone()]),
            None,
            "{at}"
        );
    }
    assert_eq!(
        owner(AskingSide::Connector, &[row(FAR, any, "0A", 1, 0), waiting.clone()]),
        None
    );
    let two = [listening(FAR, 1), listening(FAR, 2), waiting.clone()];
    assert_eq!(owner(AskingSide::Connector, &two), None);
    // The closest one counts, in whichever order they are listed.
    let mut both = vec![listening("00000000:1B58", 2), listening(FAR, 1), waiting];
    assert_eq!(owner(AskingSide::Connector, &both), Some(1));
    both.swap(0, 1);
    assert_eq!(owner(AskingSide::Connector, &both), Some(1));
    // Closed by the server already.
    assert_eq!(
        owner(AskingSide::Connector, &[listening(FAR, 1), row(FAR, NEAR, "04", 0, 0)]),
        None
    );
}

/// A table without an end, and the number of bytes read from it.
struct Endless(Vec<u8>, u64);

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        for (at, byte) in (self.1..).zip(&mut *into) {
            *byte = self.0[at as usize % self.0.len()];
        }
        self.1 += into.len() as u64;
        Ok(into.len())
    }
}

#[test]
fn a_table_is_read_to_a_limit_and_a_row_too() {
    let read = |text| {
        let mut endless = Endless(text, 0);
        let failed = owner_in(BufReader::new(&mut endless), ends(), AskingSide::Acceptor).unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Other);
        endless.1
    };
    assert!(read(b"row".to_vec()) <= 16 << 10);
    let other = format!("0: 0100007F:0001 {}\n", "word ".repeat(90));
    assert!((TABLE_BYTES_MAX..TABLE_BYTES_MAX + (16 << 10)).contains(&read(other.into_bytes())));
}

#[test]
fn both_tables_are_asked_and_a_missing_one_proves_nothing() {
    let client = table(&[row(FAR_MAPPED, NEAR_MAPPED, "01", 5, 12)]);
    let mut asked = Vec::new();
    let mut open = |path: &'static str| {
        asked.push(path);
        match path {
            "/proc/net/tcp6" => Ok(Cursor::new(client.clone())),
            _ => Ok(Cursor::new(table(&[]))),
        }
    };
    assert_eq!(look_up(ends(), AskingSide::Acceptor, &mut open), Ok(5));
    assert_eq!(asked, TABLES);
    let mut scans = 0;
    let mut nothing = |_| {
        scans += 1;
        Err::<Cursor<&[u8]>, _>(ErrorKind::NotFound.into())
    };
    let cause = look_up(ends(), AskingSide::Acceptor, &mut nothing).unwrap_err();
    assert!(
        matches!(&cause, UnknownOwner::Unlisted(cause) if cause.starts_with("/proc/net/tcp: ")),
        "{cause:?}"
    );
    assert_eq!(scans, 2 * SCANS_MAX);
    let mut full = |_| Err::<Cursor<&[u8]>, _>(Errno::MFILE.into());
    let unknown = look_up(ends(), AskingSide::Acceptor, &mut full);
    assert_eq!(unknown, Err(UnknownOwner::NoDescriptors(Errno::MFILE)));
    let error = decide(unknown, 0, AskingSide::Acceptor, || true).unwrap_err();
    assert_eq!(error.code(), Code::LimitExceeded);
    assert!(
        error
            .cause()
            .starts_with("the server cannot open more file descriptors"),
        "{error}"
    );
    // A row that one scan has missed.
    let mut scans = 0;
    let mut late = |_| {
        scans += 1;
        let rows = if scans == 3 {
            vec![row(FAR, NEAR, "01", 8, 1)]
        } else {
            vec![]
        };
        Ok(Cursor::new(table(&rows)))
    };
    assert_eq!(look_up(ends(), AskingSide::Acceptor, &mut late), Ok(8));
}

#[test]
fn only_a_proven_peer_of_the_same_user_is_accepted() {
    for asking in [AskingSide::Acceptor, AskingSide::Connector] {
        let decided = |found, own, mapped: bool| decide(found, own, asking, || mapped);
        assert_eq!(decided(Ok(1000), 1000, false), Ok(()));
        assert_eq!(decided(Ok(0), 0, false), Ok(()));
        assert_eq!(decided(Ok(OVERFLOW_USER), OVERFLOW_USER, true), Ok(()));
        for (found, own, mapped) in [
            (Ok(1000), 1001, true),
            (Ok(0), 1000, true),
            (Ok(1000), 0, true),
            (Ok(OVERFLOW_USER), OVERFLOW_USER, false),
            (Err(UnknownOwner::Unlisted("no table".to_owned())), 0, true),
        ] {
            let error = decided(found, own, mapped).unwrap_err();
            assert_eq!(error.code(), Code::Denied);
            let remedy = if asking == AskingSide::Acceptor {
                "--security"
            } else {
                "JUNCTURA_CA_FILE"
            };
            assert!(error.cause().contains(remedy), "{error}");
        }
    }
}

/// The tables alone prove the owner, too.
fn is_listed(socket: &TcpStream, asking: AskingSide) {
    let ends = SocketEnds {
        near: canonical(socket.local_addr().unwrap()),
        far: canonical(socket.peer_addr().unwrap()),
    };
    let found = look_up(ends, asking, &mut |table| File::open(table).map(BufReader::new));
    assert_eq!(found, Ok(geteuid().as_raw()));
}

#[test]
fn the_host_lists_the_sockets_of_this_process() {
    for (listens, dials) in [
        ("127.0.0.1:0", "127.0.0.1"),
        ("[::1]:0", "::1"),
        ("[::]:0", "127.0.0.1"),
        ("[::]:0", "::1"),
        ("0.0.0.0:0", "127.0.0.1"),
    ] {
        let Ok(listener) = TcpListener::bind(listens) else {
            continue;
        };
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect((dials, port)).unwrap();
        must_be_own(&client, AskingSide::Connector).unwrap();
        is_listed(&client, AskingSide::Connector);
        let (server, _) = listener.accept().unwrap();
        must_be_own(&client, AskingSide::Connector).unwrap();
        must_be_own(&server, AskingSide::Acceptor).unwrap();
        is_listed(&client, AskingSide::Connector);
        is_listed(&server, AskingSide::Acceptor);
        drop(client);
        let error = must_be_own(&server, AskingSide::Acceptor).unwrap_err();
        assert_eq!(error.code(), Code::Disconnected, "{error}");
    }
}

#[test]
fn a_server_that_closes_the_connection_is_not_of_another_user() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    drop(server);
    let error = must_be_own(&client, AskingSide::Connector).unwrap_err();
    assert_eq!(error.code(), Code::Disconnected, "{error}");
    // Also where the process has unread data, and the kernel resets the connection.
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (server, _) = listener.accept().unwrap();
    client.write_all(b"x").unwrap();
    drop(server);
    let error = must_be_own(&client, AskingSide::Connector).unwrap_err();
    assert_eq!(error.code(), Code::Disconnected, "{error}");
}
