//! TLS for a link: version 1.3 alone, the server shown by its certificate, the client by its token.

use std::path::Path;
use std::sync::Arc;

use junctura_model::{Code, Error, Result};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use crate::refused;

/// How a server shows who it is.
#[derive(Clone, Debug)]
pub struct ServerTls(Arc<rustls::ServerConfig>);

/// Whom a client believes.
#[derive(Clone, Debug)]
pub struct ClientTls(Arc<rustls::ClientConfig>);

impl ServerTls {
    /// From the files of a certificate (with those that lead to its authority) and of its private key, as PEM.
    ///
    /// # Errors
    /// `NotFound` or `Io` when one cannot be read, `InvalidArgument` when they do not belong together.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self> {
        let chain = certificates(certificate)?;
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
        let config = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret))
            .map_err(|error| {
                refused(
                    Code::InvalidArgument,
                    certificate.display().to_string(),
                    "no certificate of a server",
                    error,
                )
            })?;
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn connection(&self) -> Result<rustls::Connection> {
        rustls::ServerConnection::new(Arc::clone(&self.0))
            .map(Into::into)
            .map_err(|error| refused(Code::Io, "TLS", "cannot begin", error))
    }
}

impl ClientTls {
    /// Believes the authorities in this file, as PEM.
    ///
    /// # Errors
    /// `NotFound` or `Io` when it cannot be read, `InvalidArgument` when no certificate is in it.
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

    pub(crate) fn connection(&self, host: &str) -> Result<rustls::Connection> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| refused(Code::InvalidArgument, host, "no name that a certificate has", error))?;
        rustls::ClientConnection::new(Arc::clone(&self.0), name)
            .map(Into::into)
            .map_err(|error| refused(Code::Io, "TLS", "cannot begin", error))
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(path, &error))?;
    let found: Vec<_> = read
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| unreadable(path, &error))?;
    if found.is_empty() {
        return Err(Error::new(
            Code::InvalidArgument,
            path.display().to_string(),
            "no certificate is in it",
        ));
    }
    Ok(found)
}

fn unreadable(path: &Path, error: &rustls::pki_types::pem::Error) -> Error {
    let code = match error {
        rustls::pki_types::pem::Error::Io(error) if error.kind() == std::io::ErrorKind::NotFound => Code::NotFound,
        rustls::pki_types::pem::Error::Io(_) => Code::Io,
        _ => Code::InvalidArgument,
    };
    Error::new(code, path.display().to_string(), error.to_string())
}
