//! One request of HTTP: `GET /metrics` or `GET /metrics/detailed`, and nothing else.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use junctura::PoolBoard;

use crate::metrics::families::{ShownNames, metrics_text};

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// The time that a peer has for its request, and for reading the answer.
const PATIENCE: Duration = Duration::from_secs(5);
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The board that is served, and the token for access.
pub(super) struct MetricsSource {
    pub(super) board: PoolBoard,
    /// The token that a request must have; without one, names are not shown.
    pub(super) token: Option<String>,
}

/// Answers the request of a connection, and ends it.
pub(super) fn answer(stream: &mut TcpStream, source: &MetricsSource) -> std::io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        if head.len() > HEAD_BYTES_MAX || left.is_zero() {
            return respond(stream, "431 Request Header Fields Too Large", "text/plain", "");
        }
        stream.set_read_timeout(Some(left))?;
        let mut bytes = [0; 1024];
        match stream.read(&mut bytes)? {
            0 => return Ok(()),
            count => head.extend_from_slice(&bytes[..count]),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let (status, kind, body) = response(&head, source);
    respond(stream, status, kind, &body)
}

fn response(head: &str, source: &MetricsSource) -> (&'static str, &'static str, String) {
    let plain = |status, text: &str| (status, "text/plain; charset=utf-8", text.to_owned());
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if !words.next().is_some_and(|version| version.starts_with("HTTP/1.")) {
        return plain("400 Bad Request", "this is not HTTP/1\n");
    }
    if method != "GET" {
        return plain("405 Method Not Allowed", "the method is GET\n");
    }
    let names = match target.split('?').next() {
        Some("/metrics") => ShownNames::All,
        Some("/metrics/detailed") => ShownNames::Detailed,
        _ => return plain("404 Not Found", "the path is /metrics or /metrics/detailed\n"),
    };
    let text = |names| ("200 OK", CONTENT_TYPE, metrics_text(&source.board, names));
    match &source.token {
        None if names == ShownNames::Detailed => {
            plain("403 Forbidden", "details have names: serve with --metrics-token-file\n")
        }
        None => text(ShownNames::None),
        Some(token) if is_allowed(head, token) => text(names),
        Some(_) => plain("401 Unauthorized", "the token is missing or wrong\n"),
    }
}

/// Whether a request has the token. The time does not depend on where a wrong one differs.
fn is_allowed(head: &str, token: &str) -> bool {
    let given = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let mut given = given.filter(|(name, _)| name.trim().eq_ignore_ascii_case("authorization"));
    let Some((_, value)) = given.next() else { return false };
    let Some((scheme, given)) = value.trim().split_once(' ') else {
        return false;
    };
    let given = given.trim().as_bytes();
    let differs = given.iter().zip(token.as_bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    scheme.eq_ignore_ascii_case("bearer") && given.len() == token.len() && differs == 0
}

fn respond(stream: &mut TcpStream, status: &str, kind: &str, body: &str) -> std::io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let challenge = if status.starts_with("401") {
        "WWW-Authenticate: Bearer\r\n"
    } else {
        ""
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{challenge}Connection: close\r\n\r\n",
        body.len()
    );
    let answer = [head.as_bytes(), body.as_bytes()].concat();
    let mut left = answer.as_slice();
    while !left.is_empty() {
        let time = deadline.saturating_duration_since(Instant::now());
        // A time of zero would be none at all.
        stream.set_write_timeout(Some(time.max(Duration::from_millis(1))))?;
        match stream.write(left)? {
            _ if time.is_zero() => return Err(ErrorKind::TimedOut.into()),
            0 => return Err(ErrorKind::WriteZero.into()),
            count => left = &left[count..],
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(token: Option<&str>) -> (junctura::Pool, MetricsSource) {
        let pool = junctura::Pool::builder().schema("free").name("judge").open().unwrap();
        let board = pool.board().unwrap();
        let token = token.map(str::to_owned);
        (pool, MetricsSource { board, token })
    }

    #[test]
    fn only_the_metrics_are_served() {
        let (_pool, source) = source(None);
        for (request, status) in [
            ("GET /metrics HTTP/1.1\r\n\r\n", "200"),
            ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200"),
            ("GET / HTTP/1.1\r\n\r\n", "404"),
            ("GET /metrics/detailed HTTP/1.1\r\n\r\n", "403"),
            ("GET /metrics/../etc/passwd HTTP/1.1\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
            ("hello\r\n\r\n", "400"),
            ("\r\n\r\n", "400"),
        ] {
            assert!(response(request, &source).0.starts_with(status), "{request:?}");
        }
        let (_, kind, body) = response("GET /metrics HTTP/1.1\r\n\r\n", &source);
        assert!(
            kind.starts_with("application/openmetrics-text") && !body.contains("judge"),
            "{body}"
        );
    }

    #[test]
    fn names_need_the_token() {
        let (_pool, source) = source(Some("secret-of-sixteen"));
        for (header, status) in [
            ("", "401"),
            ("Authorization: Bearer secret-of-sixtee\r\n", "401"),
            ("Authorization: Bearer secret-of-sixteeN\r\n", "401"),
            ("Authorization: Basic secret-of-sixteen\r\n", "401"),
            ("authorization:  bearer secret-of-sixteen\r\n", "200"),
        ] {
            let (told, _, body) = response(&format!("GET /metrics HTTP/1.1\r\n{header}\r\n"), &source);
            assert!(told.starts_with(status), "{header:?}");
            assert_eq!(body.contains("component=\"judge\""), status == "200");
        }
        let detailed = "GET /metrics/detailed HTTP/1.1\r\nAuthorization: Bearer secret-of-sixteen\r\n\r\n";
        assert!(response(detailed, &source).2.contains("junctura_edge_objects"));
    }
}
