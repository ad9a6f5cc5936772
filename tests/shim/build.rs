//! Tells the tests what they were compiled for, so that the programs they build
//! are for the same.

fn main() {
    for name in ["TARGET", "HOST"] {
        let value = std::env::var(name).unwrap_or_default();
        println!("cargo::rustc-env=BUILD_{name}={value}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
