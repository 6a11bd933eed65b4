//! Listening in a process of its own, where the environment and the limits are its own.
//!
//! Apart from the other tests of listeners: a process that is being started holds, for a moment, what this one has open.

#![allow(clippy::unwrap_used, reason = "so a test fails")]

use std::os::unix::fs::PermissionsExt;

use junctura_model::Code;
use junctura_transport::{
    Carrier, ConnectionRings, Inbox, ReceiveResult, ServerAddress, ServerListener, ServerName, UnixCarrier,
};
use junctura_wire::Reply;

#[test]
fn a_named_server_is_found_by_its_name() {
    if std::env::var_os("JUNCTURA_TEST_NAMED").is_some() {
        let address: ServerAddress = "unix:seventh".parse().unwrap();
        assert_eq!(UnixCarrier::connect(&address).unwrap_err().code(), Code::Unavailable);
        let mut listener = ServerListener::bind(&address).unwrap();
        let path = address.path().unwrap();
        assert!(path.ends_with("junctura/seventh.sock"));
        let _client = UnixCarrier::connect(&address).unwrap();
        assert!(listener.accept().unwrap().is_some());
        std::fs::set_permissions(path.parent().unwrap(), PermissionsExt::from_mode(0o770)).unwrap();
        assert_eq!(UnixCarrier::connect(&address).unwrap_err().code(), Code::Denied);
        assert_eq!(
            ServerListener::bind(&"unix:eighth".parse().unwrap())
                .unwrap_err()
                .code(),
            Code::Denied
        );
        return;
    }
    let room = tempfile::tempdir().unwrap();
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_named_server_is_found_by_its_name"])
        .env("JUNCTURA_TEST_NAMED", "1")
        .env("XDG_RUNTIME_DIR", room.path())
        .output()
        .unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stdout));
}

#[test]
fn without_descriptors_left_a_client_is_told_so() {
    if std::env::var_os("JUNCTURA_TEST_FULL").is_some() {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let address =
            ServerAddress::Abstract(ServerName::new(format!("junctura-full-{}", std::process::id())).unwrap());
        let mut listener = ServerListener::bind(&address).unwrap();
        let mut client = UnixCarrier::connect(&address).unwrap();
        let next = rustix::io::fcntl_dupfd_cloexec(client.as_fd(), 0).unwrap();
        let used = std::os::fd::AsRawFd::as_raw_fd(&next) as u64;
        drop(next);
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(used),
                ..getrlimit(Resource::Nofile)
            },
        )
        .unwrap();
        let remedy = format!("(limit {used}); raise it with `ulimit -n`");
        for error in [
            listener.accept().unwrap_err(),
            ConnectionRings::create(4096).unwrap_err(),
        ] {
            assert_eq!(error.code(), Code::LimitExceeded, "{error}");
            assert!(error.cause().contains(&remedy), "{error}");
        }
        assert!(listener.accept().unwrap().is_none());
        let mut inbox = Inbox::new();
        assert!(matches!(client.receive(&mut inbox).unwrap(), ReceiveResult::Bytes(_)));
        let (frame, _) = inbox.next_frame().unwrap().unwrap();
        let Reply::Failed(failure) = Reply::decode(&frame).unwrap() else {
            panic!("not told")
        };
        assert_eq!(failure.code, Code::LimitExceeded.number());
        return;
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "without_descriptors_left_a_client_is_told_so",
            "--test-threads=1",
        ])
        .env("JUNCTURA_TEST_FULL", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
