//! What a plain, tuned stream between two processes of this machine carries: the limit of a link.
//!
//! `plain_stream tcp|tls stream BYTES SECONDS MEMORY`: one process writes objects of BYTES, round and round from MEMORY bytes, the
//! other reads them, round and round into as many; a line of JSON with objects and bytes a second.
//! `plain_stream tcp|tls echo BYTES SECONDS MEMORY`: each is sent back before the next one goes; the time of a round trip.
//!
//! With two more words, LISTEN and THROUGH, the one listens at the former and the other connects to the latter: a proxy's address.
//!
//! Buffers of the sockets are 4 MiB, small writes go at once. TLS is rustls with ring, version 1.3, as links have it. Both
//! processes end after the time.

#![allow(clippy::unwrap_used, reason = "a measurement: whatever fails ends it")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

const BUFFER_BYTES: usize = 4 << 20;

trait Both: Read + Write {}
impl<T: Read + Write> Both for T {}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [how, what, bytes, seconds, memory] => lead(how, what, [bytes, memory], seconds, ["127.0.0.1:0", ""]),
        [how, what, bytes, seconds, memory, listen, through] => {
            lead(how, what, [bytes, memory], seconds, [listen, through]);
        }
        ["follow", how, what, bytes, memory, address] => follow(how, what, &mut Memory::new([bytes, memory]), address),
        _ => panic!("usage: plain_stream tcp|tls stream|echo BYTES SECONDS MEMORY [LISTEN THROUGH]"),
    }
}

/// Objects that come round.
struct Memory {
    bytes: Vec<u8>,
    length: usize,
    at: usize,
}

impl Memory {
    fn new([length, bytes]: [&str; 2]) -> Self {
        let length: usize = length.parse().unwrap();
        let bytes: usize = bytes.parse().unwrap();
        Self {
            // Not zeros, which would take no memory.
            bytes: vec![7; (bytes / length).max(1) * length],
            length,
            at: 0,
        }
    }

    fn next(&mut self) -> &mut [u8] {
        let at = self.at;
        self.at = (at + self.length) % self.bytes.len();
        &mut self.bytes[at..at + self.length]
    }
}

/// Reads what the other process writes, or has it send everything back.
fn lead(how: &str, what: &str, sizes: [&str; 2], seconds: &str, [listen, through]: [&str; 2]) {
    let listener = TcpListener::bind(listen).unwrap();
    let own = listener.local_addr().unwrap().to_string();
    let address = if through.is_empty() { own } else { through.to_owned() };
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["follow", how, what, sizes[0], sizes[1], &address])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let certificate = key.cert.pem();
    child.stdin.take().unwrap().write_all(certificate.as_bytes()).unwrap();
    let socket = tuned(listener.accept().unwrap().0);
    let mut stream: Box<dyn Both> = if how == "tls" {
        let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
        let secret = PrivateKeyDer::from_pem_slice(key.signing_key.serialize_pem().as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .unwrap();
        let mut connection = ServerConnection::new(Arc::new(config)).unwrap();
        connection.set_buffer_limit(Some(1 << 20));
        Box::new(StreamOwned::new(connection, socket))
    } else {
        Box::new(socket)
    };
    let time = Duration::from_secs_f64(seconds.parse().unwrap());
    let mut memory = Memory::new(sizes);
    if what == "echo" {
        measure_echo(&mut *stream, &mut memory, time);
    } else {
        measure_stream(&mut *stream, &mut memory, time);
    }
    drop(stream);
    child.wait().unwrap();
}

fn measure_stream(stream: &mut dyn Both, memory: &mut Memory, time: Duration) {
    let length = memory.length;
    stream.read_exact(memory.next()).unwrap();
    let (began, mut objects) = (Instant::now(), 0_u64);
    while began.elapsed() < time {
        stream.read_exact(memory.next()).unwrap();
        objects += 1;
    }
    let rate = objects as f64 / began.elapsed().as_secs_f64();
    let gib = rate * length as f64 / f64::from(1 << 30);
    println!("{{\"objects_per_s\": {rate:.1}, \"gib_per_s\": {gib:.4}}}");
}

fn measure_echo(stream: &mut dyn Both, memory: &mut Memory, time: Duration) {
    let (began, mut times) = (Instant::now(), Vec::new());
    while began.elapsed() < time {
        let (sent, object) = (Instant::now(), memory.next());
        stream.write_all(object).unwrap();
        stream.flush().unwrap();
        stream.read_exact(object).unwrap();
        times.push(sent.elapsed());
    }
    times.sort_unstable();
    let at = |q: f64| times[(q * (times.len() - 1) as f64) as usize].as_secs_f64() * 1e6;
    println!(
        "{{\"round_trip_us\": {{\"p50\": {:.1}, \"p90\": {:.1}, \"p99\": {:.1}}}, \"rounds\": {}}}",
        at(0.5),
        at(0.9),
        at(0.99),
        times.len()
    );
}

/// The other process.
fn follow(how: &str, what: &str, memory: &mut Memory, address: &str) {
    let mut certificate = Vec::new();
    std::io::stdin().read_to_end(&mut certificate).unwrap();
    let socket = tuned(TcpStream::connect(address).unwrap());
    let mut stream: Box<dyn Both> = if how == "tls" {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(&certificate).unwrap())
            .unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut connection =
            ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
        connection.set_buffer_limit(Some(1 << 20));
        Box::new(StreamOwned::new(connection, socket))
    } else {
        Box::new(socket)
    };
    // Until the other one has had enough.
    if what == "echo" {
        let object = memory.next();
        while stream.read_exact(object).is_ok() && stream.write_all(object).is_ok() && stream.flush().is_ok() {}
    } else {
        while stream.write_all(memory.next()).is_ok() {}
    }
}

fn tuned(socket: TcpStream) -> TcpStream {
    socket.set_nodelay(true).unwrap();
    rustix::net::sockopt::set_socket_send_buffer_size(&socket, BUFFER_BYTES).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(&socket, BUFFER_BYTES).unwrap();
    socket
}
