//! `junctura cert` creates the certificate of a server for other machines.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use junctura::{Code, Error, Result};
use junctura_terminal::size;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

use crate::admin::security::{
    AUTHORITY, AUTHORITY_KEY, CERTIFICATE, PRIVATE_KEY, private_directory, write_private, write_public,
};

/// Create the certificate of a server for other machines (`junctura pool serve --security`)
///
/// Writes the certificate and the private key of the server, server.pem and server.key, and a certificate authority that
/// signs them, ca.pem and ca.key, to FOLDER. An existing authority is used again, so clients need no update. Clients trust
/// certificates that ca.pem has signed: copy it to them, as the file that `JUNCTURA_CA_FILE` names, or as ~/.config/junctura/ca.pem. A
/// site with an authority of its own puts its files there under these names instead.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  junctura cert ~/pool-security --host node-7.cluster --host 10.0.0.7")]
pub(crate) struct CertArguments {
    /// Where the server's secrets are; only its owner may read them
    #[arg(value_name = "FOLDER")]
    security: PathBuf,
    /// A name or number by which clients reach the server; may be given several times
    #[arg(long, value_name = "HOST", required = true)]
    host: Vec<String>,
    /// How long the server's certificate is valid (the authority's: ten times as long)
    #[arg(long, value_name = "TIME", value_parser = size::parse_duration, default_value = "365d")]
    valid: Duration,
}

/// Makes a certificate.
pub(crate) fn run(arguments: &CertArguments) -> Result<()> {
    let directory = &arguments.security;
    private_directory(directory)?;
    let authority = authority(directory, arguments.valid.saturating_mul(10))?;
    let key = KeyPair::generate().map_err(unmade)?;
    let mut parameters = CertificateParams::new(arguments.host.clone()).map_err(unmade)?;
    parameters
        .distinguished_name
        .push(DnType::CommonName, "Junctura server");
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    limit(&mut parameters, arguments.valid);
    let certificate = parameters.signed_by(&key, &authority).map_err(unmade)?;
    write_private(&directory.join(PRIVATE_KEY), &key.serialize_pem())?;
    write_public(&directory.join(CERTIFICATE), &certificate.pem())?;
    say!(
        "junctura: {} is valid for {}",
        directory.join(CERTIFICATE).display(),
        arguments.host.join(", ")
    );
    say!("junctura: clients trust {}", directory.join(AUTHORITY).display());
    Ok(())
}

/// The authority in a directory, or a new one.
fn authority(directory: &Path, valid: Duration) -> Result<Issuer<'static, KeyPair>> {
    let (certificate, secret) = (directory.join(AUTHORITY), directory.join(AUTHORITY_KEY));
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters
        .distinguished_name
        .push(DnType::CommonName, "Junctura authority");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    if certificate.exists() {
        let text = junctura_transport::read_text(&secret).map_err(|error| {
            let cause = format!(
                "{}; {} is there, and cannot sign without it",
                error.cause(),
                certificate.display()
            );
            Error::new(Code::NotFound, secret.display().to_string(), cause)
        })?;
        return KeyPair::from_pem(&text)
            .map(|key| Issuer::new(parameters, key))
            .map_err(unmade);
    }
    let key = KeyPair::generate().map_err(unmade)?;
    limit(&mut parameters, valid);
    let signed = parameters.self_signed(&key).map_err(unmade)?;
    write_private(&secret, &key.serialize_pem())?;
    write_public(&certificate, &signed.pem())?;
    Ok(Issuer::new(parameters, key))
}

fn limit(parameters: &mut CertificateParams, valid: Duration) {
    let now = time::OffsetDateTime::now_utc();
    // Clocks differ.
    parameters.not_before = now - time::Duration::hours(1);
    let end = time::Duration::try_from(valid)
        .ok()
        .and_then(|valid| now.checked_add(valid));
    if let Some(end) = end {
        parameters.not_after = end;
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` gives it")]
fn unmade(error: rcgen::Error) -> Error {
    Error::new(Code::InvalidArgument, "certificate", error.to_string())
}
