//! A certificate for 127.0.0.1, and who to believe for it.

use std::path::Path;

use junctura_link::{ClientTls, ServerTls};
use rcgen::{CertificateParams, IsCa, Issuer, KeyPair};

/// A folder with `ca.pem`, `server.pem` and `server.key`.
pub(crate) struct Secrets(tempfile::TempDir);

impl Secrets {
    /// Fresh ones.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        certify(folder.path());
        Self(folder)
    }

    /// What the server shows.
    pub(crate) fn server(&self) -> ServerTls {
        let path = |name: &str| self.0.path().join(name);
        ServerTls::read(&path("server.pem"), &path("server.key")).unwrap()
    }

    /// Whom the client believes.
    pub(crate) fn authority(&self) -> ClientTls {
        ClientTls::read(&self.0.path().join("ca.pem")).unwrap()
    }
}

fn certify(directory: &Path) {
    let write = |name: &str, text: String| std::fs::write(directory.join(name), text).unwrap();
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    write("ca.pem", authority.self_signed(&key).unwrap().pem());
    let issuer = Issuer::new(authority, key);
    let server = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    write("server.pem", certificate.signed_by(&server, &issuer).unwrap().pem());
    write("server.key", server.serialize_pem());
}
