//! Commands for this machine and this program: checks, secrets, manual pages.

pub(crate) mod cert;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod manual;
pub(crate) mod security;
pub(crate) mod token;
pub(crate) mod version;
