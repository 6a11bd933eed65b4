//! Further streams at the gate: who may join a link, and who may not.

use std::io::{IoSliceMut, Write};
use std::sync::mpsc::channel;

use junctura_transport::ServerListener;

use super::*;
use crate::auth::handshake::MAGIC;
use crate::gate::newcomers::PER_ADDRESS_MAX;
use crate::stream::ReadOutcome;
use crate::{ClientToken, DialOptions, DialedGate};

const HOUR: Duration = Duration::from_hours(1);

struct Guarded {
    gate: Gate,
    key: TokenKey,
    _listener: ServerListener,
    _directory: tempfile::TempDir,
}

impl Guarded {
    fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let pool = ServerAddress::Path(directory.path().join("pool.sock"));
        let listener = ServerListener::bind(&pool).unwrap();
        let key = TokenKey::generate().unwrap();
        let file = directory.path().join("tokens.key");
        key.write(&file).unwrap();
        let options = GateOptions::new("tcp://127.0.0.1:0".parse().unwrap(), pool, ServerIdentity::default());
        let options = GateOptions {
            key: Some(TokenKey::read(&file).unwrap()),
            ..options
        };
        Self {
            gate: Gate::open(options).unwrap(),
            key,
            _listener: listener,
            _directory: directory,
        }
    }

    fn token(&self, name: &str) -> ClientToken {
        self.key.token(name, HOUR).unwrap()
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

    /// Says this to the gate: how the link is called and how many streams it may have, and the connection.
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

/// Until the gate has seen that the link is over: who still joins it ends.
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
    let error = guarded.join(&ClientToken::new("v4.local.none"), link, 1).err().unwrap();
    assert_eq!(error.code(), Code::Denied);
    assert!(
        !error.cause().contains("no link"),
        "without a token nothing is looked for: {error}"
    );

    // The second one may come before the first.
    let second = guarded.join(&friend, link, 2).unwrap();
    guarded.refuses(&friend, link, 2);
    let first = guarded.join(&friend, link, 1).unwrap();
    guarded.refuses(&friend, link, 1);
    let another = guarded.dial(&friend, 3).unwrap();
    assert_ne!(another.granted.unwrap().0, link);
    // With the link, all of it ends.
    drop(dialed);
    ends(first);
    ends(second);
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
    // The thread of the link may not have come to its end; whoever is still let in ends.
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
    let (joinable, _lead, _) = shared.expect(2, "friend".to_owned(), true).unwrap().unwrap();
    guarded.refuses(&guarded.token("friend"), joinable.link, 1);
    let joins = LinkJoin {
        link: joinable.link,
        number: 1,
    };
    assert!(shared.join(joins, "friend", true).is_ok());
    assert!(shared.join(joins, "friend", true).is_err());
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

/// A gate of our own making: what it answers, and those that it leaves without an answer; what it hears.
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
        // Until the client has gone.
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
    // Who asks for one says nothing of it.
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
