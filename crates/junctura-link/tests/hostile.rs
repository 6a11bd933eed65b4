//! Strangers at the gate: whatever they say or do not say, they are refused, and the pool goes on.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::secrets::Secrets;
use junctura_link::{
    AccessRights, ClientTls, ClientToken, DialOptions, DialedGate, Endpoint, Gate, GateOptions, LoopbackUsers,
    ServerIdentity, TokenAuthority,
};
use junctura_model::{Code, Error, Result};
use junctura_transport::{ServerAddress, ServerListener};

const HOUR: Duration = Duration::from_hours(1);

/// A gate that asks for tokens, before a pool at which nobody is served.
struct Guarded {
    gate: Gate,
    tokens: TokenAuthority,
    authority: ClientTls,
    listener: ServerListener,
    _directory: tempfile::TempDir,
}

impl Guarded {
    fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let secrets = Secrets::new();
        let pool = ServerAddress::Path(path("pool.sock"));
        let listener = ServerListener::bind(&pool).unwrap();
        let tokens = TokenAuthority::read_or_create(&path("secrets")).unwrap();
        let endpoint = "tcp://127.0.0.1:0".parse().unwrap();
        let options = GateOptions {
            tls: Some(secrets.server()),
            tokens: Some(TokenAuthority::read(&path("secrets")).unwrap()),
            ..GateOptions::new(endpoint, pool, ServerIdentity::default())
        };
        Self {
            gate: Gate::open(options).unwrap(),
            tokens,
            authority: secrets.authority(),
            listener,
            _directory: directory,
        }
    }

    fn dial(&self, token: Option<&ClientToken>, tls: Option<&ClientTls>) -> Result<DialedGate> {
        DialOptions {
            endpoint: self.gate.endpoint(),
            token,
            tls,
            users: LoopbackUsers::Own,
            mirror_bytes: 0,
            streams: 1,
        }
        .dial(|| Ok(()))
    }

    fn socket(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.gate.endpoint().port())).unwrap()
    }

    /// Whoever has a good token still comes in.
    fn is_well(&self) {
        let token = make(&self.tokens, "friend", HOUR);
        self.dial(Some(&token), Some(&self.authority)).unwrap();
        self.dial(Some(&token), None).unwrap();
    }
}

fn make(tokens: &TokenAuthority, name: &str, time: Duration) -> ClientToken {
    tokens.make(name, AccessRights::ALL, time).unwrap().0
}

/// A token of another pool.
fn stranger(name: &str) -> ClientToken {
    let directory = tempfile::tempdir().unwrap();
    make(&TokenAuthority::read_or_create(directory.path()).unwrap(), name, HOUR)
}

fn refused(outcome: Result<DialedGate>) -> Error {
    outcome.err().unwrap()
}

/// What the gate says before it closes; a gate that does not close fails the test.
fn rest(mut socket: TcpStream) -> Vec<u8> {
    socket.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let mut said = Vec::new();
    if let Err(error) = socket.read_to_end(&mut said) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "the gate has closed it");
    }
    said
}

#[test]
fn only_a_good_token_opens() {
    let mut guarded = Guarded::open();
    let other = stranger("stranger");
    let good = make(&guarded.tokens, "friend", HOUR);
    let brief = make(&guarded.tokens, "friend", Duration::from_secs(1));
    let torn = ClientToken::new(&good.reveal()[..good.reveal().len() - 3]);
    let long = ClientToken::new("junctura-token-2.".to_owned() + &"A".repeat(4000));
    for token in [
        None,
        Some(&other),
        Some(&torn),
        Some(&ClientToken::new("")),
        Some(&long),
    ] {
        for tls in [None, Some(&guarded.authority)] {
            let error = refused(guarded.dial(token, tls));
            assert_eq!(error.code(), Code::Denied, "{error}");
            assert!(!error.to_string().contains("junctura-token-2"), "{error}");
        }
    }
    // The token expires while a client connects again and again. The pool accepts all of it, so that its backlog is never full.
    let error = loop {
        match guarded.dial(Some(&brief), None) {
            Ok(_) => while guarded.listener.accept().unwrap().is_some() {},
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), Code::Denied, "{error}");
    assert!(error.cause().contains("time"), "{error}");
    guarded.is_well();
}

/// Runs `work` in a thread of another user; `None`: this process may not do that.
fn as_another_user<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can be another user");
        return None;
    }
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let other = rustix::process::Uid::from_raw(65534);
            rustix::thread::set_thread_res_uid(other, other, other).unwrap();
            work()
        });
        Some(other.join().unwrap())
    })
}

/// A gate without tokens, before a pool at which nobody is served.
fn open_without_tokens(users: LoopbackUsers) -> (Gate, ServerListener, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let pool = ServerAddress::Path(directory.path().join("pool.sock"));
    let listener = ServerListener::bind(&pool).unwrap();
    let endpoint = "tcp://127.0.0.1:0".parse().unwrap();
    let options = GateOptions {
        users,
        ..GateOptions::new(endpoint, pool, ServerIdentity::default())
    };
    (Gate::open(options).unwrap(), listener, directory)
}

fn dial_in_the_clear(endpoint: &Endpoint, users: LoopbackUsers, token: Option<&ClientToken>) -> Result<DialedGate> {
    DialOptions {
        endpoint,
        token,
        tls: None,
        users,
        mirror_bytes: 0,
        streams: 2,
    }
    .dial(|| Ok(()))
}

#[test]
fn without_tokens_only_the_own_user_is_let_in() {
    let (gate, mut listener, _directory) = open_without_tokens(LoopbackUsers::Own);
    let dial = |users| dial_in_the_clear(gate.endpoint(), users, None);
    for users in [LoopbackUsers::Own, LoopbackUsers::Any] {
        dial(users).unwrap();
        while listener.accept().unwrap().is_some() {}
    }
    if let Some(outcome) = as_another_user(|| dial(LoopbackUsers::Any)) {
        let error = refused(outcome);
        assert_eq!(error.code(), Code::Denied, "{error}");
        assert!(
            error.cause().contains("user 65534") && error.cause().contains("--security"),
            "{error}"
        );
        assert!(listener.accept().unwrap().is_none(), "the pool was not asked");
    }
}

#[test]
fn without_tokens_all_users_are_let_in_where_that_is_asked_for() {
    let (gate, _listener, _directory) = open_without_tokens(LoopbackUsers::Any);
    if let Some(outcome) = as_another_user(|| dial_in_the_clear(gate.endpoint(), LoopbackUsers::Any, None)) {
        outcome.unwrap();
    }
}

#[test]
fn a_server_of_another_user_is_sent_nothing_in_the_clear() {
    let Some(listener) = as_another_user(|| std::net::TcpListener::bind("127.0.0.1:0").unwrap()) else {
        return;
    };
    let endpoint: Endpoint = listener.local_addr().unwrap().into();
    let token = stranger("friend");
    for token in [None, Some(&token)] {
        let error = refused(dial_in_the_clear(&endpoint, LoopbackUsers::Own, token));
        assert_eq!(error.code(), Code::Denied, "{error}");
        assert!(error.cause().contains("the server runs as user 65534"), "{error}");
        assert!(rest(listener.accept().unwrap().0).is_empty());
    }
}

#[test]
fn a_server_that_cannot_show_who_it_is_is_not_believed() {
    let (guarded, other) = (Guarded::open(), Guarded::open());
    let token = make(&guarded.tokens, "friend", HOUR);
    let error = refused(guarded.dial(Some(&token), Some(&other.authority)));
    assert_eq!(error.code(), Code::Denied, "{error}");
    guarded.is_well();
}

#[test]
fn a_gate_beyond_loopback_needs_both() {
    let secrets = tempfile::tempdir().unwrap();
    let nowhere = || ServerAddress::Path("/nowhere".into());
    for endpoint in ["tcp://0.0.0.0:0", "tcp://[::]:0", "tcp://192.0.2.1:0"] {
        let options = GateOptions::new(endpoint.parse().unwrap(), nowhere(), ServerIdentity::default());
        assert_eq!(Gate::open(options).err().unwrap().code(), Code::Denied);
        let options = GateOptions {
            tokens: Some(TokenAuthority::read_or_create(secrets.path()).unwrap()),
            ..GateOptions::new(endpoint.parse().unwrap(), nowhere(), ServerIdentity::default())
        };
        assert_eq!(Gate::open(options).err().unwrap().code(), Code::Denied);
    }
    let far = "tcp://192.0.2.1:7".parse().unwrap();
    let dial = DialOptions {
        endpoint: &far,
        token: None,
        tls: None,
        users: LoopbackUsers::Own,
        mirror_bytes: 0,
        streams: 1,
    };
    assert_eq!(
        refused(dial.dial(|| Ok(()))).code(),
        Code::Denied,
        "nothing is sent in the clear"
    );
}

#[test]
fn words_that_are_none_are_refused() {
    let guarded = Guarded::open();
    let mut greeting = b"JUNCTURA".to_vec();
    greeting.extend([1, 0]);
    let claim = |length: u16, body: &[u8]| [&greeting[..], &length.to_le_bytes(), body].concat();
    let strange: Vec<Vec<u8>> = vec![
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0; 100_000],
        vec![0xff; 64],
        // A TLS record that holds nothing of TLS.
        [&[22, 3, 1, 0x40, 0][..], &[0xaa; 0x4000]].concat(),
        b"JUNCTURA\x02\x00\x00\x00".to_vec(),
        claim(u16::MAX, &[0xa0; 70_000]),
        claim(3, &[0x9f, 0x9f, 0x9f]),
        claim(1, &[0xa0, 0xa0]),
        claim(5, &[0xbb, 0xff, 0xff, 0xff, 0xff]),
    ];
    for words in strange {
        let mut socket = guarded.socket();
        let _ = socket.write_all(&words);
        let _ = socket.shutdown(Shutdown::Write);
        rest(socket);
    }
    for end in 0..12 {
        let mut socket = guarded.socket();
        socket.write_all(&claim(1, &[0xa0])[..end]).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        rest(socket);
    }
    guarded.is_well();
}

#[test]
fn who_talks_too_slowly_is_refused_and_keeps_nobody_waiting() {
    let guarded = Guarded::open();
    let mut slow: Vec<_> = (0..20).map(|_| guarded.socket()).collect();
    for socket in &mut slow {
        socket.write_all(b"JUNC").unwrap();
    }
    guarded.is_well();
    for socket in slow {
        rest(socket);
    }
    guarded.is_well();
}

#[test]
fn who_comes_in_great_numbers_keeps_nobody_out() {
    let guarded = Guarded::open();
    let mut many = Vec::new();
    for number in 0..200 {
        let mut socket = guarded.socket();
        socket.write_all(&b"J"[..number % 2]).unwrap();
        many.push(socket);
        if number % 40 == 39 {
            guarded.is_well();
        }
    }
    // The oldest ones were closed for the newer ones, which are closed when their time is over.
    for socket in many {
        rest(socket);
    }
    guarded.is_well();
}

#[test]
fn a_recorded_conversation_is_worth_nothing() {
    let guarded = Guarded::open();
    let token = make(&guarded.tokens, "friend", HOUR);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let between = listener.local_addr().unwrap();
    let gate = guarded.socket();
    let listening = std::thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let (mut from_client, mut to_gate) = (client.try_clone().unwrap(), gate.try_clone().unwrap());
        let (mut from_gate, mut to_client) = (gate, client);
        let back = std::thread::spawn(move || std::io::copy(&mut from_gate, &mut to_client));
        let (mut recorded, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(bytes @ 1..) = from_client.read(&mut piece) {
            recorded.extend_from_slice(&piece[..bytes]);
            if to_gate.write_all(&piece[..bytes]).is_err() {
                break;
            }
        }
        let _ = to_gate.shutdown(Shutdown::Both);
        let _ = back.join();
        recorded
    });
    let endpoint = between.into();
    let dial = DialOptions {
        endpoint: &endpoint,
        token: Some(&token),
        tls: Some(&guarded.authority),
        users: LoopbackUsers::Own,
        mirror_bytes: 0,
        streams: 1,
    };
    drop(dial.dial(|| Ok(())).unwrap());
    let recorded = listening.join().unwrap();
    assert!(recorded.len() > 300);
    assert!(
        !recorded
            .windows(20)
            .any(|window| window == &token.reveal().as_bytes()[..20]),
        "the token is not to be read on the way"
    );
    let mut again = guarded.socket();
    let _ = again.write_all(&recorded);
    let _ = again.shutdown(Shutdown::Write);
    // An alert, and no answer to the greeting: nothing that the key of the first session could read.
    assert!(rest(again).len() < 3000);
    guarded.is_well();
}
