//! A pool that is private to a process and its children: the server on a thread of its creator.

use std::thread::JoinHandle;

use junctura_model::{Code, Error, Result};
use junctura_transport::{ServerAddress, ServerName};

use super::{Server, ServerOptions, ServerStopper};

/// A server on a thread of this process. It ends when this value is dropped, or with the process. In a forked child the
/// value is without effect: the thread lives in the parent.
#[derive(Debug)]
pub struct EmbeddedServer {
    address: ServerAddress,
    stopper: ServerStopper,
    thread: Option<JoinHandle<()>>,
    process: u32,
}

impl Server {
    /// Starts a server on a thread of its own, at a random address.
    ///
    /// # Errors
    /// Those of [`Server::bind`], and `Io` when the system provides no thread.
    pub fn start_embedded(options: ServerOptions) -> Result<EmbeddedServer> {
        let server = Server::bind(&private_address()?, options)?;
        let (address, stopper) = (server.address().clone(), server.stopper());
        let thread = std::thread::Builder::new()
            .name("junctura".to_owned())
            .spawn(move || {
                if let Err(error) = server.run() {
                    tracing::error!(%error, "the embedded server ended");
                }
            })
            .map_err(|error| Error::new(Code::Io, "thread", error.to_string()))?;
        Ok(EmbeddedServer {
            address,
            stopper,
            thread: Some(thread),
            process: std::process::id(),
        })
    }
}

impl EmbeddedServer {
    /// Returns its address, to which children connect.
    #[must_use]
    pub fn address(&self) -> &ServerAddress {
        &self.address
    }
}

impl Drop for EmbeddedServer {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.process == std::process::id() {
            self.stopper.stop();
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "the server's thread does not panic");
        } else {
            // The thread is the parent's; its handle names nothing here.
            let _kept = std::mem::ManuallyDrop::new(thread);
        }
    }
}

/// Returns a random address in the abstract namespace: it leaves no file behind, and ends with the process.
///
/// # Errors
/// `Io` when the system provides no random numbers.
pub fn private_address() -> Result<ServerAddress> {
    let mut random = [0u8; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| super::io("random numbers", errno))?;
    let name = format!("junctura-{}-{:032x}", std::process::id(), u128::from_ne_bytes(random));
    Ok(ServerAddress::Abstract(ServerName::new(name)?))
}
