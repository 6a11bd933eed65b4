//! Metrics beside a server: threads of their own, which read the board.

use std::collections::VecDeque;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use clap::Args;
use junctura::{Code, Error, PoolBoard, Result};
use junctura_pool::server::Server;

use crate::metrics::http::{MetricsSource, answer};
use crate::metrics::textfile::MetricsFile;

/// How often the file is written.
const WRITTEN_EVERY: Duration = Duration::from_secs(15);
/// Requests that are answered at the same time; for a further one, the oldest is ended.
const ANSWERED_MAX: usize = 16;
/// Bytes of a token.
const TOKEN_BYTES_MIN: usize = 16;

/// Options of a server that exports metrics.
#[derive(Args, Debug)]
pub(crate) struct MetricsOptions {
    /// Serve metrics for Prometheus at `http://HOST:PORT/metrics`, on loopback only. Without --metrics-token-file, the names of
    /// components, datasets and requirements are left out: every user of this machine can read the text
    #[arg(
        id = "metrics",
        long = "metrics",
        value_name = "HOST:PORT",
        conflicts_with = "upstream"
    )]
    address: Option<SocketAddr>,
    /// The file of the token that a request for metrics must have (`Authorization: Bearer TOKEN`); at least 16 characters
    #[arg(
        id = "metrics_token_file",
        long = "metrics-token-file",
        value_name = "FILE",
        requires = "metrics"
    )]
    token_file: Option<PathBuf>,
    /// Write metrics to this file every 15 s, for the textfile collector of `node_exporter`; its name ends in .prom. The file is
    /// removed when the server ends
    #[arg(
        id = "metrics_textfile",
        long = "metrics-textfile",
        value_name = "FILE",
        conflicts_with = "upstream"
    )]
    textfile: Option<PathBuf>,
}

/// Threads that export metrics; they end when this is dropped.
#[derive(Default)]
pub(crate) struct MetricsThreads {
    listener: Option<(SocketAddr, Arc<AtomicBool>, JoinHandle<()>)>,
    writer: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl MetricsOptions {
    /// Begins to export, if asked to.
    ///
    /// # Errors
    /// `InvalidArgument` for an address off loopback and for a token that is too short; `Io` for an address or a file that cannot
    /// be used.
    pub(crate) fn start(&self, server: &mut Server) -> Result<MetricsThreads> {
        let mut threads = MetricsThreads::default();
        if self.address.is_none() && self.textfile.is_none() {
            return Ok(threads);
        }
        let board = PoolBoard::from(server.board()?);
        if let Some(path) = &self.textfile {
            threads.writer = Some(write_regularly(path, board.clone())?);
        }
        if let Some(address) = self.address {
            let token = self.token_file.as_deref().map(read_token).transpose()?;
            threads.listener = Some(listen(address, MetricsSource { board, token })?);
        }
        Ok(threads)
    }
}

impl MetricsThreads {
    /// Returns where metrics are served.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.listener.as_ref().map(|(address, ..)| *address)
    }
}

impl Drop for MetricsThreads {
    fn drop(&mut self) {
        if let Some((ending, thread)) = self.writer.take() {
            drop(ending);
            let _ = thread.join();
        }
        if let Some((address, is_over, thread)) = self.listener.take() {
            is_over.store(true, Ordering::Release);
            // It waits for the next connection.
            if TcpStream::connect(address).is_ok() {
                let _ = thread.join();
            }
        }
    }
}

fn read_token(path: &Path) -> Result<String> {
    let subject = || path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| Error::new(Code::Io, subject(), error.to_string()))?;
    let token = text.trim();
    if token.len() < TOKEN_BYTES_MIN || token.contains(char::is_whitespace) {
        let cause = format!("a token has at least {TOKEN_BYTES_MIN} characters without a space");
        return Err(Error::new(Code::InvalidArgument, subject(), cause));
    }
    Ok(token.to_owned())
}

fn write_regularly(path: &Path, board: PoolBoard) -> Result<(mpsc::Sender<()>, JoinHandle<()>)> {
    let file = MetricsFile::new(path, board);
    file.write()?;
    let (ending, ended) = mpsc::channel();
    let thread = spawn("metrics-file", move || {
        while ended.recv_timeout(WRITTEN_EVERY) == Err(RecvTimeoutError::Timeout) {
            if let Err(error) = file.write() {
                tracing::warn!(%error, "metrics were not written");
            }
        }
    })?;
    Ok((ending, thread))
}

fn listen(address: SocketAddr, source: MetricsSource) -> Result<(SocketAddr, Arc<AtomicBool>, JoinHandle<()>)> {
    if !address.ip().is_loopback() {
        let cause = "metrics are served on loopback only; a proxy with TLS on this machine can pass them on";
        return Err(Error::new(Code::InvalidArgument, format!("--metrics {address}"), cause));
    }
    let failed = |error: std::io::Error| Error::new(Code::Io, format!("--metrics {address}"), error.to_string());
    let listener = TcpListener::bind(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let thread = spawn("metrics", move || serve(&listener, &Arc::new(source), &over))?;
    Ok((address, is_over, thread))
}

fn serve(listener: &TcpListener, source: &Arc<MetricsSource>, is_over: &AtomicBool) {
    let mut answered: VecDeque<(TcpStream, JoinHandle<()>)> = VecDeque::new();
    for stream in listener.incoming() {
        if is_over.load(Ordering::Acquire) {
            return;
        }
        let Ok(mut stream) = stream else { continue };
        answered.retain(|(_, thread)| !thread.is_finished());
        if answered.len() >= ANSWERED_MAX
            && let Some((oldest, thread)) = answered.pop_front()
        {
            // A peer that sends nothing, or does not read, does not keep another one out.
            let _ = oldest.shutdown(Shutdown::Both);
            let _ = thread.join();
        }
        let source = Arc::clone(source);
        let started = stream
            .try_clone()
            .map_err(|error| Error::new(Code::Io, "socket", error.to_string()))
            .and_then(|held| {
                let thread = spawn("metrics-answer", move || {
                    if let Err(error) = answer(&mut stream, &source) {
                        tracing::debug!(%error, "a request for metrics was not answered");
                    }
                    // The queue has the connection, too.
                    let _ = stream.shutdown(Shutdown::Both);
                });
                Ok((held, thread?))
            });
        match started {
            Ok(answering) => answered.push_back(answering),
            Err(error) => tracing::warn!(%error, "a request for metrics was refused"),
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map_err(|error| Error::new(Code::Io, "thread", error.to_string()))
}
