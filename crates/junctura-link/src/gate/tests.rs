//! Further streams at the gate: accepted and refused ones.

use std::io::{IoSliceMut, Write};
use std::sync::mpsc::channel;

use junctura_transport::ServerListener;

use super::*;
use crate::auth::handshake::MAGIC;
use crate::gate::newcomers::PER_ADDRESS_MAX;
use crate::stream::ReadOutcome;
use crate::{AccessRights, ClientToken, DialOptions, DialedGate};

const HOUR: Duration = Duration::from_hours(1);

struct Guarded {
    gate: Gate,
    tokens: TokenAuthority,
    _listener: ServerListener,
    _directory: tempfile::TempDir,
}

impl Guarded {
    fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let pool = ServerAddress::Path(directory.path().join("pool.sock"));
        let listener = ServerListener::bind(&pool).unwrap();
        let secrets = directory.path().join("secrets");
        let tokens = TokenAuthority::read_or_create(&secrets).unwrap();
        let options = GateOptions::new("tcp://127.0.0.1:0".parse().unwrap(), pool, ServerIdentity::default());
        let options = GateOptions {
            tokens: Some(TokenAuthority::read(&secrets).unwrap()),
            ..options
        };
        Self {
            gate: Gate::open(options).unwrap(),
            tokens,
            _listener: listener,
            _directory: directory,
        }
    }

    fn token(&self, name: &str) -> ClientToken {
        self.tokens.make(name, AccessRights::ALL, HOUR).unwrap().0
    }

    fn dial(&self, token: &ClientToken, streams: u8) -> Result<DialedGate> {
        DialOptions {
            endpoint: self.gate.endpoint(),
            token: Some(token),
            tls: None,
            users: LoopbackUsers::Own,
            mirror_bytes: 0,
            streams,
        }
        .dial(|| Ok(()))
    }

    /// Sends a greeting to the gate: returns the name of the link, the number of its streams, and the connection.
    fn greet(&self, shown: &ClientProof<'_>) -> Result<(Option<LinkId>, Option<u8>, LinkStream)> {
        let socket = TcpStream::connect(("127.0.0.1", self.gate.endpoint().port())).unwrap();
        let mut stream = LinkStream::new(socket, None).unwrap();
        let mut talk = TimedExchange {
            stream: &mut stream,
            until: Instant::now() + handshake::TIME_MAX,
            interrupted: &mut || Ok(()),
        };
        talk.say(&handshake::encode(shown).unwrap()).unwrap();
        let heard = talk.hear().unwrap();
        let answer: HandshakeAnswer<'_> = handshake::decode(&heard).unwrap();
        match answer.failure {
            Some(failure) => Err(failure.into()),
            None => Ok((answer.link, answer.streams, stream)),
        }
    }

    fn join(&self, token: &ClientToken, link: LinkId, number: u8) -> Result<LinkStream> {
        let shown = ClientProof {
            token: Some(token.reveal().into()),
            joins: Some(LinkJoin { link, number }),
            ..ClientProof::default()
        };
        self.greet(&shown).map(|(.., stream)| stream)
    }

    fn refuses(&self, token: &ClientToken, link: LinkId, number: u8) {
        let error = self.join(token, link, number).err().unwrap();
        assert_eq!(error.code(), Code::Denied, "{error}");
        assert!(error.cause().contains("no link lacks it"), "{error}");
    }
}

/// Waits until the gate has ended the link: further streams of it end.
fn ends(mut stream: LinkStream) {
    while let Ok(ReadOutcome::Bytes(_) | ReadOutcome::Nothing) = stream.read(&mut [IoSliceMut::new(&mut [0; 100])]) {
        let _ = stream.wait(PollFlags::IN, &Timespec::try_from(HOUR).unwrap());
    }
}

#[test]
fn strangers_who_do_not_complete_their_greetings_go_for_those_who_come() {
    let guarded = Guarded::open();
    let friend = guarded.token("friend");
    let mut strangers = Vec::new();
    for number in 0..PER_ADDRESS_MAX + 40 {
        let mut socket = TcpStream::connect(("127.0.0.1", guarded.gate.endpoint().port())).unwrap();
        socket.write_all(&MAGIC[..number % 3]).unwrap();
        strangers.push(socket);
        if number % 20 == 0 {
            guarded.dial(&friend, 1).unwrap();
        }
    }
    guarded.dial(&friend, 1).unwrap();
    assert!(guarded.gate.shared.state().newcomers.len() <= PER_ADDRESS_MAX);
    for socket in strangers.drain(..40) {
        let mut stream = LinkStream::new(socket, None).unwrap();
        let mut talk = TimedExchange {
            stream: &mut stream,
            until: Instant::now() + HOUR,
            interrupted: &mut || Ok(()),
        };
        let heard = talk.hear().unwrap();
        let failure: Error = handshake::decode::<HandshakeAnswer<'_>>(&heard)
            .unwrap()
            .failure
            .unwrap()
            .into();
        assert_eq!(failure.code(), Code::LimitExceeded, "{failure}");
    }
}

#[test]
fn a_link_is_joined_by_who_was_told_its_name() {
    let guarded = Guarded::open();
    let (friend, other) = (guarded.token("friend"), guarded.token("other"));
    let dialed = guarded.dial(&friend, 3).unwrap();
    let (link, streams) = dialed.granted.unwrap();
    assert_eq!(streams, 3);
    let mut guessed = link;
    guessed[15] ^= 1;
    guarded.refuses(&friend, guessed, 1);
    guarded.refuses(&friend, [0; 16].into(), 1);
    guarded.refuses(&other, link, 1);
    for number in [0, 3, 255] {
        guarded.refuses(&friend, link, number);
    }
    let error = guarded
        .join(&ClientToken::new("junctura-token-2.00"), link, 1)
        .err()
        .unwrap();
    assert_eq!(error.code(), Code::Denied);
    assert!(
        !error.cause().contains("no link"),
        "without a token nothing is looked for: {error}"
    );

    // The second stream may arrive before the first.
    let second = guarded.join(&friend, link, 2).unwrap();
    guarded.refuses(&friend, link, 2);
    let first = guarded.join(&friend, link, 1).unwrap();
    guarded.refuses(&friend, link, 1);
    let another = guarded.dial(&friend, 3).unwrap();
    assert_ne!(another.granted.unwrap().0, link);
    // The end of the link ends all its streams.
    drop(dialed);
    ends(first);
    ends(second);
}

/// A link of three streams with this token.
fn link_of_three(guarded: &Guarded, token: &ClientToken) -> Vec<LinkStream> {
    let shown = ClientProof {
        token: Some(token.reveal().into()),
        streams: Some(3),
        ..ClientProof::default()
    };
    let (link, _, first) = guarded.greet(&shown).unwrap();
    let sides = [1, 2].map(|number| guarded.join(token, link.unwrap(), number).unwrap());
    std::iter::once(first).chain(sides).collect()
}

#[test]
fn the_links_of_a_revoked_token_end_and_others_last() {
    let guarded = Guarded::open();
    let (token, claims) = guarded.tokens.make("lost", AccessRights::READ, HOUR).unwrap();
    let kept = guarded.token("kept");
    let mut lasts = link_of_three(&guarded, &kept);
    let streams = link_of_three(&guarded, &token);
    guarded.tokens.revoke(&[claims.id]).unwrap();
    streams.into_iter().for_each(ends);
    let error = guarded.dial(&token, 1).unwrap_err();
    assert_eq!(error.code(), Code::Denied);
    assert!(error.cause().contains("revoked"), "{error}");
    for stream in &mut lasts {
        let heard = stream.read(&mut [IoSliceMut::new(&mut [0; 100])]).unwrap();
        assert!(!matches!(heard, ReadOutcome::End), "its token is listed");
    }
}

#[test]
fn the_links_of_an_expired_token_end() {
    let guarded = Guarded::open();
    let brief = Duration::from_secs(1);
    let (token, claims) = guarded.tokens.make("brief", AccessRights::READ, brief).unwrap();
    let shown = ClientProof {
        token: Some(token.reveal().into()),
        ..ClientProof::default()
    };
    if let Ok((.., stream)) = guarded.greet(&shown) {
        ends(stream);
    }
    let error = guarded.dial(&token, 1).unwrap_err();
    assert!(error.cause().contains("expired"), "{error}");
    assert_eq!(
        guarded.tokens.list().unwrap(),
        [claims],
        "nothing was changed meanwhile"
    );
}

#[test]
fn a_token_revoked_while_its_client_is_let_in_ends_the_link() {
    let guarded = Guarded::open();
    let shared = &guarded.gate.shared;
    let (near, far) = (TcpListener::bind("127.0.0.1:0").unwrap(), 1 << 40);
    let mut socket = TcpStream::connect(near.local_addr().unwrap()).unwrap();
    let (_, claims) = guarded.tokens.make("lost", AccessRights::READ, HOUR).unwrap();
    guarded.tokens.revoke(&[claims.id]).unwrap();
    // The list was compared after the revocation, and before the link had its token.
    let kept = guarded.token("kept");
    let _links = link_of_three(&guarded, &kept);
    let link = OpenLink::new(far, Arc::new(near.accept().unwrap().0));
    shared.state().links.push(link);
    shared.note_token(far, &claims);
    assert_eq!(std::io::Read::read(&mut socket, &mut [0]).unwrap(), 0);
}

#[test]
fn a_client_with_fewer_rights_is_not_led_around_the_gate() {
    let guarded = Guarded::open();
    let offered = |rights: &str| {
        let (token, _) = guarded.tokens.make("n", rights.parse().unwrap(), HOUR).unwrap();
        guarded.dial(&token, 1).unwrap().nearby().is_some()
    };
    assert_eq!(
        (offered("read"), offered("read,offer"), offered("admin")),
        (false, false, true)
    );
}

#[test]
fn a_link_that_is_over_lacks_nothing() {
    let guarded = Guarded::open();
    let friend = guarded.token("friend");
    let dialed = guarded.dial(&friend, 3).unwrap();
    let (link, _) = dialed.granted.unwrap();
    let joined = guarded.join(&friend, link, 1).unwrap();
    drop(dialed);
    ends(joined);
    // The thread of the link may still run; a stream accepted until then ends.
    loop {
        match guarded.join(&friend, link, 2) {
            Ok(joined) => ends(joined),
            Err(error) => {
                assert_eq!(error.code(), Code::Denied);
                break;
            }
        }
    }
    assert!(guarded.gate.shared.state().several.is_empty());
}

#[test]
fn who_comes_within_tls_is_not_joined_in_the_clear() {
    let guarded = Guarded::open();
    let shared = &guarded.gate.shared;
    let (token, friend) = guarded.tokens.make("friend", AccessRights::ALL, HOUR).unwrap();
    let (joinable, _lead, _) = shared.expect(2, Some(friend.id), true).unwrap().unwrap();
    guarded.refuses(&token, joinable.link, 1);
    let joins = LinkJoin {
        link: joinable.link,
        number: 1,
    };
    assert!(shared.join(joins, Some(friend.id), true).is_ok());
    assert!(shared.join(joins, Some(friend.id), true).is_err());
}

#[test]
fn nobody_has_more_than_there_may_be_and_who_asks_for_none_has_one() {
    let guarded = Guarded::open();
    let friend = guarded.token("friend");
    for (asked, granted) in [
        (None, None),
        (Some(0), None),
        (Some(1), None),
        (Some(2), Some(2)),
        (Some(8), Some(8)),
        (Some(255), Some(8)),
    ] {
        let shown = ClientProof {
            token: Some(friend.reveal().into()),
            streams: asked,
            ..ClientProof::default()
        };
        let (link, streams, _stream) = guarded.greet(&shown).unwrap();
        assert_eq!((streams, link.is_some()), (granted, granted.is_some()), "{asked:?}");
    }
    let dialed = guarded.dial(&friend, 1).unwrap();
    assert!(dialed.granted.is_none());
    for streams in [0, 9] {
        assert_eq!(
            guarded.dial(&friend, streams).unwrap_err().code(),
            Code::InvalidArgument
        );
    }
}

/// A simulated gate: its answers, and the connections that it leaves without an answer; it records the greetings.
fn gate_that_answers(
    answers: Vec<HandshakeAnswer<'static>>,
    unanswered: usize,
) -> (Endpoint, std::sync::mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = listener.local_addr().unwrap().into();
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let none = std::iter::repeat_n(None, unanswered);
        for answer in answers.into_iter().map(Some).chain(none) {
            let (socket, _) = listener.accept().unwrap();
            let mut stream = LinkStream::new(socket, None).unwrap();
            let mut talk = TimedExchange {
                stream: &mut stream,
                until: Instant::now() + HOUR,
                interrupted: &mut || Ok(()),
            };
            let _ = sender.send(talk.hear().unwrap());
            if let Some(answer) = answer {
                talk.say(&handshake::encode(&answer).unwrap()).unwrap();
            }
            kept.push(stream);
        }
        // Until the client has disconnected.
        kept.into_iter().for_each(ends);
    });
    (endpoint, heard)
}

fn answer(link: Option<u8>, streams: Option<u8>) -> HandshakeAnswer<'static> {
    HandshakeAnswer {
        lease_ms: 1000,
        link: link.map(|byte| [byte; 16].into()),
        streams,
        ..HandshakeAnswer::default()
    }
}

fn dial_all(endpoint: &Endpoint, streams: u8) -> Result<DialedGate> {
    let dial = DialOptions {
        endpoint,
        token: None,
        tls: None,
        users: LoopbackUsers::Own,
        mirror_bytes: 0,
        streams,
    };
    let mut dialed = dial.dial(|| Ok(()))?;
    dial.add_streams(&mut dialed, || Ok(()))?;
    Ok(dialed)
}

#[test]
fn gates_that_know_of_no_streams_or_give_fewer_are_understood() {
    for (answers, streams) in [
        (vec![answer(None, None)], 1),
        (vec![answer(None, Some(4))], 1),
        (vec![answer(Some(1), None)], 1),
        (vec![answer(Some(1), Some(1))], 1),
        (vec![answer(Some(1), Some(2)), answer(None, None)], 2),
        // More than were asked for.
        (
            vec![answer(Some(1), Some(200)), answer(None, None), answer(None, None)],
            3,
        ),
    ] {
        let (endpoint, heard) = gate_that_answers(answers, 0);
        let dialed = dial_all(&endpoint, 3).unwrap();
        assert_eq!(dialed.streams(), streams);
        drop(dialed);
        let first = heard.recv().unwrap();
        assert_eq!(handshake::decode::<ClientProof<'_>>(&first).unwrap().streams, Some(3));
        for (number, body) in (1..).zip(heard) {
            let joins = handshake::decode::<ClientProof<'_>>(&body).unwrap().joins.unwrap();
            assert_eq!((joins.link, joins.number), ([1; 16].into(), number));
        }
    }
    // A client that asks for one stream does not send a number.
    let (endpoint, heard) = gate_that_answers(vec![answer(None, None)], 0);
    drop(dial_all(&endpoint, 1).unwrap());
    let plain = handshake::encode(&ClientProof::default()).unwrap();
    assert_eq!(heard.recv().unwrap(), handshake::split(&plain).unwrap().unwrap());
}

#[test]
fn a_gate_that_does_not_answer_a_further_stream_keeps_nobody() {
    let (endpoint, _heard) = gate_that_answers(vec![answer(Some(1), Some(2))], 1);
    let error = dial_all(&endpoint, 2).unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(error.subject().contains(&endpoint.to_string()), "{error}");
}
