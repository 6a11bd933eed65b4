//! Gives the shared library its SONAME, which has the number of the ABI.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libjunctura.so.0");
    // Crates export symbols of their own; of all libraries that are linked in none is visible.
    println!("cargo::rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
}
