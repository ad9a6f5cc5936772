//! Links the program without a C library: its entry is `_start` of its own. A
//! static file at a fixed address needs no relocation, so nothing has to run
//! before it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for argument in ["-nostartfiles", "-nostdlib", "-static", "-no-pie", "-Wl,--gc-sections"] {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
}
