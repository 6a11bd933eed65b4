//! The text of `junctura --version`: the properties of a build that comparisons and reports need.

use junctura_model::Schema;

/// Returns several lines.
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
