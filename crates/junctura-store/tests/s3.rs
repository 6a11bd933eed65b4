//! Object stores that cannot be relied on, and what is told of them. Those that can: `places.rs`.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::mem::ManuallyDrop;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::processes;
use junctura_model::{Code, Schema};
use junctura_store::{Commits, RetentionAges, Store, StoreLayout};

/// How a server that knows no order deals with a put that is allowed only for a free name.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// As with any other put.
    Ignores,
    /// It looks, and writes then: of two at once, both see that the name is free.
    LooksFirst,
    /// It says that the name was taken, and writes all the same.
    RefusesAndWrites,
    /// It says that it does not know such puts.
    Lacks,
}

/// A server of one bucket, just good enough to be asked whether it is good enough.
struct Server {
    manner: Manner,
    objects: Mutex<HashMap<String, Vec<u8>>>,
    looking: Mutex<HashMap<String, u32>>,
    looked: Condvar,
}

struct Request {
    method: String,
    path: String,
    is_conditional: bool,
    body: Vec<u8>,
}

impl Request {
    fn read(from: &mut BufReader<TcpStream>) -> Option<Self> {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|&read| read > 0)?;
        let mut words = line.split_whitespace().map(str::to_owned);
        let (method, path) = (words.next()?, words.next()?);
        let (mut length, mut is_conditional) = (0, false);
        loop {
            let mut header = String::new();
            from.read_line(&mut header).ok()?;
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(bytes) = header.strip_prefix("content-length:") {
                length = bytes.trim().parse().ok()?;
            }
            is_conditional |= header == "if-none-match: *";
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body).ok()?;
        Some(Self {
            method,
            path,
            is_conditional,
            body,
        })
    }
}

const NOTHING_LISTED: &[u8] = b"<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";

impl Server {
    /// Starts one, and says at which URL.
    fn start(manner: Manner) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("s3://fields/store?endpoint=http://{}", listener.local_addr().unwrap());
        let server = Arc::new(Self {
            manner,
            objects: Mutex::default(),
            looking: Mutex::default(),
            looked: Condvar::new(),
        });
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let server = Arc::clone(&server);
                std::thread::spawn(move || server.serve(&stream.unwrap()));
            }
        });
        url
    }

    fn serve(&self, stream: &TcpStream) {
        let mut from = BufReader::new(stream.try_clone().unwrap());
        while let Some(request) = Request::read(&mut from) {
            let (status, body) = self.answer(request);
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"1\"\r\nLast-Modified: Sun, 22 Nov 2026 00:00:00 GMT\r\n\r\n",
                body.len()
            );
            let mut to = stream;
            if to.write_all(&[head.as_bytes(), &body].concat()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, request: Request) -> (&'static str, Vec<u8>) {
        let known = self.objects.lock().unwrap().get(&request.path).cloned();
        match (&*request.method, known) {
            ("GET", Some(body)) => ("200 OK", body),
            ("GET", None) if request.path.contains("list-type") => ("200 OK", NOTHING_LISTED.to_vec()),
            ("HEAD", Some(_)) => ("200 OK", Vec::new()),
            ("GET" | "HEAD", None) => ("404 Not Found", Vec::new()),
            ("PUT", known) => self.put(request, known.is_some()),
            _ => ("204 No Content", Vec::new()),
        }
    }

    fn put(&self, request: Request, is_taken: bool) -> (&'static str, Vec<u8>) {
        if request.is_conditional && self.manner == Manner::Lacks {
            let body = b"<Error><Code>NotImplemented</Code></Error>".to_vec();
            return ("501 Not Implemented", body);
        }
        let refuses = request.is_conditional && is_taken && self.manner != Manner::Ignores;
        if refuses && self.manner == Manner::LooksFirst {
            return ("412 Precondition Failed", Vec::new());
        }
        if request.is_conditional && self.manner == Manner::LooksFirst && request.path.contains("race") {
            // Until another one has seen the same.
            let mut looking = self.looking.lock().unwrap();
            *looking.entry(request.path.clone()).or_default() += 1;
            self.looked.notify_all();
            while looking[&request.path] < 2 {
                looking = self.looked.wait(looking).unwrap();
            }
        }
        self.objects.lock().unwrap().insert(request.path, request.body);
        (if refuses { "412 Precondition Failed" } else { "200 OK" }, Vec::new())
    }
}

fn create(url: &str, layout: &StoreLayout) -> junctura_model::Result<Store> {
    Store::create_url(url, &[Schema::builtin("mars").unwrap()], layout)
}

#[test]
#[ignore = "needs credentials: tests/run.py store-s3"]
fn s3_that_gives_a_name_twice_is_refused() {
    for (manner, says) in [
        (Manner::Ignores, "when its name is taken"),
        (Manner::RefusesAndWrites, "and replaces it"),
        (Manner::LooksFirst, "more than one gets"),
        (Manner::Lacks, "does not support"),
    ] {
        let url = Server::start(manner);
        let began = Instant::now();
        let error = create(&url, &StoreLayout::default()).unwrap_err();
        assert!(began.elapsed() < Duration::from_secs(10), "not at once");
        assert_eq!(error.code(), Code::Unsupported, "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(
            Store::open_url(&url).unwrap_err().code(),
            Code::NotFound,
            "nothing was made"
        );
        // There may be data.
        let folder = tempfile::tempdir().unwrap();
        let layout = StoreLayout {
            data: Some(url),
            ..StoreLayout::default()
        };
        create(folder.path().to_str().unwrap(), &layout).unwrap();
    }
}

#[test]
#[ignore = "needs a server: tests/run.py store-s3"]
fn s3_errors_say_what_is_wrong_and_no_secret() {
    let url = std::env::var("JUNCTURA_TEST_S3").expect("JUNCTURA_TEST_S3");
    let secrets = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| std::env::var(name).expect(name));
    let store = url.replace("{}", "errors");
    let nowhere = Store::open_url(&store).unwrap_err();
    assert_eq!(nowhere.code(), Code::NotFound);
    assert!(nowhere.subject().starts_with("store s3://fields/"), "{nowhere}");
    let other = url.replace("s3://fields", "s3://other");
    let appended = StoreLayout {
        commits: Some(Commits::Appended),
        ..StoreLayout::default()
    };
    for (error, code) in [
        (nowhere, Code::NotFound),
        (create(&other, &StoreLayout::default()).unwrap_err(), Code::NotFound),
        (create(&store, &appended).unwrap_err(), Code::InvalidArgument),
    ] {
        assert_eq!(error.code(), code, "{error}");
        assert!(
            secrets.iter().all(|secret| !error.to_string().contains(secret)),
            "{error}"
        );
    }
}

#[test]
#[ignore = "needs a server: tests/run.py store-s3"]
fn s3_uploads_that_nobody_ended_are_found_and_given_up() {
    let url = std::env::var("JUNCTURA_TEST_S3").expect("JUNCTURA_TEST_S3");
    let layout = StoreLayout {
        ages: RetentionAges {
            unflushed_max: Duration::from_millis(200),
            ..RetentionAges::default()
        },
        ..StoreLayout::default()
    };
    let store = Store::create_url(
        &url.replace("{}", "uploads"),
        &[Schema::builtin("free").unwrap()],
        &layout,
    )
    .unwrap();
    // Two parts and a half, of which nobody hears any more.
    let mut writer = ManuallyDrop::new(store.writer().unwrap());
    writer.archive([("name", "large")], &vec![1; 20 << 20]).unwrap();
    let unnamed = || store.snapshot().unwrap().check("", None, |_, _| true).unwrap().unnamed;
    let [upload] = &unnamed()[..] else {
        panic!("{:?}", unnamed());
    };
    assert!(upload.starts_with("data/"), "{upload}");
    // By the server's clock it is too old some day.
    let mut compactions = std::iter::repeat_with(|| store.compact().unwrap().removed);
    let removed = compactions.find(|removed| !removed.is_empty()).unwrap();
    assert_eq!(&removed[..], std::slice::from_ref(upload));
    assert!(unnamed().is_empty());
    assert!(store.unneeded().unwrap().is_empty());
}

/// What a started process does whose key is wrong.
#[test]
#[ignore = "is started by the test below"]
fn ask_with_a_wrong_key() {
    let Some((url, _)) = processes::told() else { return };
    println!("{}", create(&url, &StoreLayout::default()).unwrap_err());
}

#[test]
#[ignore = "needs a server: tests/run.py store-s3"]
fn s3_with_a_wrong_key_is_denied() {
    let url = std::env::var("JUNCTURA_TEST_S3").expect("JUNCTURA_TEST_S3");
    let key = std::env::var("AWS_ACCESS_KEY_ID").expect("AWS_ACCESS_KEY_ID");
    let asked = processes::itself(ask_with_a_wrong_key, url.replace("{}", "denied"), "a stranger")
        .env("AWS_SECRET_ACCESS_KEY", "guessed")
        .output()
        .unwrap();
    let told = String::from_utf8(asked.stdout).unwrap();
    assert!(told.contains("Denied"), "{told}");
    assert!(!told.contains(&key) && !told.contains("guessed"), "{told}");
}
