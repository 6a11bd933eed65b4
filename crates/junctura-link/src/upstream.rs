//! A machine's own door to a pool of another machine: its clients share one link, and what it has brought.
//!
//! ```text
//!   clients <--socket, rings--> Upstream ====== TCP, TLS ====== Gate <--sockets, rings--> Server
//!                               one mirror                      a client for each client
//! ```
//! To the server each process is a client like any other, with the same guarantees. A payload for several processes is sent
//! once, while it is in the mirror.

use std::sync::Arc;
use std::thread::JoinHandle;

use junctura_model::{Code, Error, Result};
use junctura_transport::{ServerAddress, ServerListener, ServerName};
use rustix::event::poll;
use rustix::io::Errno;

use crate::link::{DialOptions, DialedGate};
use crate::relay::channel_source::{AcceptStop, ChannelSource};
use crate::{ClientTls, ClientToken, Endpoint, LoopbackUsers, refused};

/// Serves a pool of another machine to the processes of this one. Dropped, it ends, and so do its clients' connections.
#[derive(Debug)]
pub struct UpstreamProxy {
    address: ServerAddress,
    stop: Arc<AcceptStop>,
    thread: Option<JoinHandle<()>>,
}

/// Where an upstream leads, and what it shows there.
#[derive(Clone, Debug)]
pub struct UpstreamOptions {
    /// The gate.
    pub endpoint: Endpoint,
    /// The token for the gate.
    pub token: Option<ClientToken>,
    /// The authorities to trust; beyond loopback they are required.
    pub tls: Option<ClientTls>,
    /// As [`DialOptions::users`].
    pub users: LoopbackUsers,
    /// The most bytes of unheld payloads that are kept here.
    pub mirror_bytes: u64,
    /// Streams of the link, as in [`DialOptions::streams`].
    pub streams: u8,
}

impl UpstreamOptions {
    fn dial(&self) -> DialOptions<'_> {
        DialOptions {
            endpoint: &self.endpoint,
            token: self.token.as_ref(),
            tls: self.tls.as_ref(),
            users: self.users,
            mirror_bytes: self.mirror_bytes,
            streams: self.streams,
        }
    }

    fn dial_all(&self) -> Result<DialedGate> {
        let dial = self.dial();
        let mut dialed = dial.dial_for(true, || Ok(()))?;
        dial.add_streams(&mut dialed, || Ok(()))?;
        Ok(dialed)
    }
}

impl UpstreamProxy {
    /// Returns the address at which clients of this machine look for an upstream of this gate, by default.
    #[must_use]
    pub fn usual_address(endpoint: &Endpoint) -> Option<ServerAddress> {
        let letters = endpoint.host().chars().map(|letter| match letter {
            'A'..='Z' | 'a'..='z' | '0'..='9' | '.' | '-' => letter,
            _ => '_',
        });
        let host: String = letters.collect();
        ServerName::new(format!("upstream-{host}-{}", endpoint.port()))
            .ok()
            .map(ServerAddress::Named)
    }

    /// Dials the gate, and lets clients in at `address` from then on. When the link ends, its clients' connections do; the next
    /// client makes it dial anew.
    ///
    /// # Errors
    /// As [`DialOptions::dial`] and [`ServerListener::bind`]; `Io` when the system gives no thread.
    pub fn open(address: &ServerAddress, options: UpstreamOptions) -> Result<Self> {
        let stop = Arc::new(AcceptStop::new()?);
        let listener = ServerListener::bind(address)?;
        let dialed = options.dial_all()?;
        let door = ChannelSource::In {
            listener,
            stop: Arc::clone(&stop),
        };
        let thread = std::thread::Builder::new()
            .name("junctura-upstream".to_owned())
            .spawn(move || {
                let (ended, door) = dialed.relay_for(door);
                tell(&options.endpoint, ended);
                serve(&options, door);
            })
            .map_err(|error| refused(Code::Io, "thread", "cannot be started", error))?;
        Ok(Self {
            address: address.clone(),
            stop,
            thread: Some(thread),
        })
    }

    /// Where its clients find it.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        &self.address
    }
}

impl Drop for UpstreamProxy {
    fn drop(&mut self) {
        self.stop.come();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One link after the other, each when a client needs it.
fn serve(options: &UpstreamOptions, mut door: Option<ChannelSource>) {
    while let Some(mut open) = door.take().filter(|door| !door.is_closed()) {
        match wait_for_client(&open) {
            Ok(true) => {}
            Ok(false) => {
                door = Some(open);
                continue;
            }
            Err(error) => {
                tracing::error!(%error, "the upstream is closed");
                return;
            }
        }
        match options.dial_all() {
            Ok(dialed) => {
                tracing::info!(endpoint = %options.endpoint, "an upstream was reached again");
                let (ended, back) = dialed.relay_for(open);
                tell(&options.endpoint, ended);
                door = back;
            }
            Err(error) => {
                tracing::warn!(%error, "an upstream cannot be reached");
                open.refuse_all(&error);
                door = Some(open);
            }
        }
    }
}

fn tell(endpoint: &Endpoint, ended: Result<()>) {
    match ended {
        Ok(()) => tracing::info!(%endpoint, "the link of an upstream ended"),
        Err(error) => tracing::warn!(%endpoint, %error, "the link of an upstream ended"),
    }
}

/// Waits until a client connects, or the source is to be closed.
fn wait_for_client(door: &ChannelSource) -> Result<bool> {
    let mut watched: Vec<_> = door.watched().collect();
    match poll(&mut watched, None) {
        Ok(_) => Ok(!door.is_closed()),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(Error::new(Code::Io, "", format!("cannot wait: {errno}"))),
    }
}
