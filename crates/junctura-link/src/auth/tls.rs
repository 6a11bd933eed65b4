//! TLS for a link: version 1.3 alone, the server shown by its certificate, the client by its token.

use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::path::Path;
use std::sync::Arc;

use junctura_model::{Code, Error, Result};
use junctura_transport::read_bytes;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use zeroize::Zeroizing;

use crate::refused;
use crate::stream::{ReadOutcome, StreamSocket, came, went};

/// The most bytes that TLS buffers while the socket is blocked.
const BUFFER_BYTES: usize = 1 << 20;

/// A server's certificate and key.
#[derive(Clone, Debug)]
pub struct ServerTls(Arc<rustls::ServerConfig>);

/// The authorities that a client trusts.
#[derive(Clone, Debug)]
pub struct ClientTls(Arc<rustls::ClientConfig>);

impl ServerTls {
    /// From the files of a certificate (with those that lead to its authority) and of its private key, as PEM.
    ///
    /// # Errors
    /// `NotFound` or `Io` when one cannot be read, `InvalidArgument` when they do not belong together.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self> {
        let chain = certificates(certificate)?;
        let text = Zeroizing::new(read_bytes(key)?);
        let secret = PrivateKeyDer::from_pem_slice(&text).map_err(|error| unreadable(key, &error))?;
        let config = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret))
            .map_err(|error| {
                refused(
                    Code::InvalidArgument,
                    certificate.display().to_string(),
                    "it is not a server certificate with its key",
                    error,
                )
            })?;
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn connection(&self) -> Result<TlsSession> {
        rustls::ServerConnection::new(Arc::clone(&self.0))
            .map(|connection| TlsSession::new(connection.into()))
            .map_err(|error| refused(Code::Io, "TLS", "cannot begin", error))
    }
}

impl ClientTls {
    /// Trusts the authorities in this file, as PEM.
    ///
    /// # Errors
    /// `NotFound` or `Io` when it cannot be read, `InvalidArgument` when it contains no certificate.
    pub fn read(authorities: &Path) -> Result<Self> {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in certificates(authorities)? {
            roots.add(certificate).map_err(|error| {
                refused(
                    Code::InvalidArgument,
                    authorities.display().to_string(),
                    "no authority",
                    error,
                )
            })?;
        }
        let config = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| refused(Code::Io, "TLS", "cannot begin", error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn connection(&self, host: &str) -> Result<TlsSession> {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| {
            refused(
                Code::InvalidArgument,
                host,
                "it is not a valid name in a certificate",
                error,
            )
        })?;
        rustls::ClientConnection::new(Arc::clone(&self.0), name)
            .map(|connection| TlsSession::new(connection.into()))
            .map_err(|error| refused(Code::Io, "TLS", "cannot begin", error))
    }
}

/// One end of a connection within TLS. It reads from and writes to the socket that it is given, and never waits.
pub(crate) struct TlsSession(Box<rustls::Connection>);

impl TlsSession {
    fn new(mut connection: rustls::Connection) -> Self {
        connection.set_buffer_limit(Some(BUFFER_BYTES));
        Self(Box::new(connection))
    }

    /// Whether TLS holds bytes that the socket has not taken.
    pub(crate) fn wants_write(&self) -> bool {
        self.0.wants_write()
    }

    /// Reads decrypted bytes into `into`, in their order.
    pub(crate) fn read(&mut self, socket: &mut StreamSocket, into: &mut [IoSliceMut<'_>]) -> Result<ReadOutcome> {
        loop {
            match came(self.0.reader().read_vectored(into))? {
                ReadOutcome::Nothing => {}
                other => return Ok(other),
            }
            match came(self.0.read_tls(socket))? {
                ReadOutcome::Bytes(_) => {
                    let state = self.0.process_new_packets().map_err(|error| {
                        // Sends the alert that reports the reason, if the socket takes it.
                        let _ = self.0.write_tls(socket);
                        Error::new(Code::Denied, "TLS", error.to_string())
                    })?;
                    // Handshake messages and alerts of TLS itself.
                    self.flush(socket)?;
                    if state.peer_has_closed() && state.plaintext_bytes_to_read() == 0 {
                        return Ok(ReadOutcome::End);
                    }
                }
                other => return Ok(other),
            }
        }
    }

    /// Encrypts and sends as much of `from` as is possible at once. Returns the number of bytes taken.
    pub(crate) fn write(&mut self, socket: &mut StreamSocket, from: &[IoSlice<'_>]) -> Result<usize> {
        self.flush(socket)?;
        let count = went(self.0.writer().write_vectored(from))?;
        self.flush(socket)?;
        Ok(count)
    }

    /// Sends what TLS holds. Returns true if nothing is left.
    pub(crate) fn flush(&mut self, socket: &mut StreamSocket) -> Result<bool> {
        while self.0.wants_write() {
            if went(self.0.write_tls(socket))? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends the alert `close_notify`.
    pub(crate) fn end(&mut self, socket: &mut StreamSocket) {
        self.0.send_close_notify();
        let _ = self.flush(socket);
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let text = read_bytes(path)?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| unreadable(path, &error))?;
    if found.is_empty() {
        return Err(Error::new(
            Code::InvalidArgument,
            path.display().to_string(),
            "it contains no certificate",
        ));
    }
    Ok(found)
}

fn unreadable(path: &Path, error: &rustls::pki_types::pem::Error) -> Error {
    Error::new(Code::InvalidArgument, path.display().to_string(), error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_end_are_refused() {
        let endless = Path::new("/dev/zero");
        assert_eq!(ClientTls::read(endless).unwrap_err().code(), Code::TooLarge);
        assert_eq!(ServerTls::read(endless, endless).unwrap_err().code(), Code::TooLarge);
    }
}
