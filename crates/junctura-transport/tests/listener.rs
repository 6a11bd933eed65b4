//! Who may listen where, who gets in, and what is left behind.

use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use junctura_model::Code;
use junctura_transport::{
    Carrier, Inbox, Outbox, PollInterest, ReceiveResult, ServerAddress, ServerListener, ServerName, UnixCarrier, wait,
};
use junctura_wire::Request;
use tempfile::TempDir;

fn room() -> (TempDir, ServerAddress) {
    let room = tempfile::tempdir().unwrap();
    let address = ServerAddress::Path(room.path().join("pool.sock"));
    (room, address)
}

fn abstract_address(test: &str) -> ServerAddress {
    ServerAddress::Abstract(ServerName::new(format!("junctura-{test}-{}", std::process::id())).unwrap())
}

fn files(room: &TempDir) -> usize {
    std::fs::read_dir(room.path()).unwrap().count()
}

/// What a killed server leaves: its socket and its lock file, and nobody behind them.
fn leave_stale(path: &Path) {
    drop(std::os::unix::net::UnixListener::bind(path).unwrap());
    std::fs::write(path.with_extension("sock.lock"), "").unwrap();
}

#[test]
fn clients_come_in_and_nothing_is_left_behind() {
    let (room, address) = room();
    let mut listener = ServerListener::bind(&address).unwrap();
    let stat = std::fs::metadata(address.path().unwrap()).unwrap();
    assert!(stat.file_type().is_socket());
    assert_eq!(stat.permissions().mode() & 0o777, 0o600);
    assert!(listener.accept().unwrap().is_none());

    let clients: Vec<_> = (0..3).map(|_| UnixCarrier::connect(&address).unwrap()).collect();
    assert!(wait(listener.as_fd(), PollInterest::READ).unwrap().readable);
    for client in clients {
        let server = listener.accept().unwrap().unwrap();
        assert_eq!(server.peer(), client.peer());
        assert_eq!(server.peer().pid, Some(std::process::id()));
        assert!(server.watch_peer().is_some());
    }
    assert!(listener.accept().unwrap().is_none());
    drop(listener);
    assert_eq!(files(&room), 0);
    assert_eq!(UnixCarrier::connect(&address).unwrap_err().code(), Code::Unavailable);
}

#[test]
fn a_living_server_keeps_its_address() {
    let (_room, address) = room();
    let mut listener = ServerListener::bind(&address).unwrap();
    assert_eq!(ServerListener::bind(&address).unwrap_err().code(), Code::AlreadyExists);
    let _client = UnixCarrier::connect(&address).unwrap();
    assert!(listener.accept().unwrap().is_some());

    let address = abstract_address("living");
    let listener = ServerListener::bind(&address).unwrap();
    assert_eq!(ServerListener::bind(&address).unwrap_err().code(), Code::AlreadyExists);
    drop(listener);
    assert!(ServerListener::bind(&address).is_ok());
}

#[test]
fn a_killed_server_is_taken_over() {
    let (room, address) = room();
    leave_stale(&address.path().unwrap());
    assert_eq!(UnixCarrier::connect(&address).unwrap_err().code(), Code::Unavailable);
    let mut listener = ServerListener::bind(&address).unwrap();
    let _client = UnixCarrier::connect(&address).unwrap();
    assert!(listener.accept().unwrap().is_some());
    drop(listener);
    assert_eq!(files(&room), 0);
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let (_room, address) = room();
    let path = address.path().unwrap();
    std::fs::write(&path, "precious").unwrap();
    assert_eq!(ServerListener::bind(&address).unwrap_err().code(), Code::AlreadyExists);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    std::fs::remove_file(&path).unwrap();

    // Somebody who listens there without our lock.
    let stranger = std::os::unix::net::UnixListener::bind(&path).unwrap();
    assert_eq!(ServerListener::bind(&address).unwrap_err().code(), Code::AlreadyExists);
    drop(stranger);

    // Somebody who has put another socket in our place.
    let listener = ServerListener::bind(&address).unwrap();
    std::fs::remove_file(&path).unwrap();
    let _stranger = std::os::unix::net::UnixListener::bind(&path).unwrap();
    drop(listener);
    assert!(path.exists());
}

#[test]
fn only_one_of_many_becomes_the_server() {
    let (_room, address) = room();
    leave_stale(&address.path().unwrap());
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| ServerListener::bind(&address))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (servers, others): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!(servers.len(), 1);
    for other in others {
        assert_eq!(other.unwrap_err().code(), Code::AlreadyExists);
    }
    assert!(UnixCarrier::connect(&address).is_ok());
}

#[test]
fn a_path_that_is_none_is_refused() {
    let too_long = ServerAddress::Path(format!("/tmp/{}", "x".repeat(120)).into());
    for result in [
        ServerListener::bind(&too_long).map(drop),
        UnixCarrier::connect(&too_long).map(drop),
    ] {
        assert_eq!(result.unwrap_err().code(), Code::InvalidArgument);
    }
    let (room, _) = room();
    let nowhere = ServerAddress::Path(room.path().join("missing/pool.sock"));
    assert_eq!(ServerListener::bind(&nowhere).unwrap_err().code(), Code::Io);
    assert_eq!(UnixCarrier::connect(&nowhere).unwrap_err().code(), Code::Unavailable);
}

#[test]
fn other_users_are_refused_on_both_sides() {
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // Only the calling thread becomes another user.
    let as_nobody = |act: &(dyn Fn() + Sync)| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(NOBODY)).unwrap();
                act();
            });
        });
    };
    let ours = abstract_address("ours");
    let mut listener = ServerListener::bind(&ours).unwrap();
    as_nobody(&|| assert_eq!(UnixCarrier::connect(&ours).unwrap_err().code(), Code::Denied));
    assert_eq!(listener.accept().unwrap_err().code(), Code::Denied);
    assert!(listener.accept().unwrap().is_none());
    let _client = UnixCarrier::connect(&ours).unwrap();
    assert!(listener.accept().unwrap().is_some());

    let theirs = abstract_address("theirs");
    let kept = std::sync::Mutex::new(None);
    as_nobody(&|| *kept.lock().unwrap() = Some(ServerListener::bind(&theirs).unwrap()));
    let error = UnixCarrier::connect(&theirs).unwrap_err();
    assert_eq!(error.code(), Code::Denied, "{error}");

    // The file's mode keeps them out before it comes to that.
    let (_room, path) = room();
    let _listener = ServerListener::bind(&path).unwrap();
    as_nobody(&|| assert_eq!(UnixCarrier::connect(&path).unwrap_err().code(), Code::Denied));
}

#[test]
fn a_clone_is_the_same_connection() {
    let (near, mut far) = UnixCarrier::pair().unwrap();
    let (mut inbox, mut outbox) = (Inbox::new(), Outbox::new());
    let mut sender = near.clone();
    drop(near);
    outbox.push(|out| Request::Stat.encode(3, out)).unwrap();
    sender.send(&mut outbox).unwrap();
    far.receive(&mut inbox).unwrap();
    assert_eq!(inbox.next_frame().unwrap().unwrap().0.request, 3);
    let other = sender.clone();
    other.close();
    assert_eq!(far.receive(&mut inbox).unwrap(), ReceiveResult::End);
    outbox.push(|out| Request::Stat.encode(4, out)).unwrap();
    assert_eq!(sender.send(&mut outbox).unwrap_err().code(), Code::Disconnected);
}

#[test]
fn too_many_descriptors_at_once_end_the_connection() {
    let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut room = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(20))];
    let mut control = rustix::net::SendAncillaryBuffer::new(&mut room);
    let many = [near.as_fd(); 20];
    assert!(control.push(rustix::net::SendAncillaryMessage::ScmRights(&many)));
    let bytes = [std::io::IoSlice::new(b"x")];
    rustix::net::sendmsg(&near, &bytes, &mut control, rustix::net::SendFlags::empty()).unwrap();
    let error = UnixCarrier::over(far.into())
        .unwrap()
        .receive(&mut Inbox::new())
        .unwrap_err();
    assert_eq!(error.code(), Code::LimitExceeded);
}
