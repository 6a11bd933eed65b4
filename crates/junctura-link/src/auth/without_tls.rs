//! Replaces TLS and tokens in a build without the feature `tls`: types that have no values.
//!
//! Gates and links are then compiled without cryptography. A gate cannot be given a certificate, so it opens on
//! loopback only.

use std::io::{IoSlice, IoSliceMut};

use junctura_model::Result;

use crate::auth::token::TokenClaims;
use crate::stream::{ReadOutcome, StreamSocket};

/// The certificate of a server. Without the feature `tls` it has no values.
#[derive(Clone, Debug)]
pub enum ServerTls {}

/// The authorities that a client trusts. Without the feature `tls` it has no values.
#[derive(Clone, Debug)]
pub enum ClientTls {}

/// The tokens of a pool. Without the feature `tls` it has no values.
#[derive(Debug)]
pub enum TokenAuthority {}

/// Which list of tokens there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListVersion {}

/// One end of a connection within TLS.
pub(crate) enum TlsSession {}

impl ServerTls {
    pub(crate) fn connection(&self) -> Result<TlsSession> {
        match *self {}
    }
}

impl ClientTls {
    pub(crate) fn connection(&self, _host: &str) -> Result<TlsSession> {
        match *self {}
    }
}

impl TokenAuthority {
    /// Returns the listed tokens.
    ///
    /// # Errors
    /// It has no values.
    pub fn list(&self) -> Result<Vec<TokenClaims>> {
        match *self {}
    }

    pub(crate) fn check(&self, _token: &str) -> Result<TokenClaims> {
        match *self {}
    }

    pub(crate) fn version(&self) -> Option<ListVersion> {
        match *self {}
    }
}

impl TlsSession {
    pub(crate) fn wants_write(&self) -> bool {
        match *self {}
    }

    pub(crate) fn read(&mut self, _socket: &mut StreamSocket, _into: &mut [IoSliceMut<'_>]) -> Result<ReadOutcome> {
        match *self {}
    }

    pub(crate) fn write(&mut self, _socket: &mut StreamSocket, _from: &[IoSlice<'_>]) -> Result<usize> {
        match *self {}
    }

    pub(crate) fn flush(&mut self, _socket: &mut StreamSocket) -> Result<bool> {
        match *self {}
    }

    pub(crate) fn end(&mut self, _socket: &mut StreamSocket) {
        match *self {}
    }
}
