//! What `junctura --version` says: what one needs to know of a build before one compares or reports anything.

use junctura_model::Schema;

/// Several lines.
pub(crate) fn long() -> String {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    format!(
        "{}\nprotocol  {}\nbuilt for {}-{}, {profile}\nschemas   {}",
        env!("CARGO_PKG_VERSION"),
        junctura_wire::VERSION,
        std::env::consts::ARCH,
        std::env::consts::OS,
        Schema::BUILTIN_NAMES.join(", ")
    )
}
