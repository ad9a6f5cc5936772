//! Builds and starts the program without a C library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const PACKAGE: &str = "hsakmt-shim-freestanding";

/// Where the program is, built for what this crate was compiled for.
///
/// # Panics
/// When it does not build.
#[must_use]
pub fn program() -> &'static PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let (target, host) = (env!("BUILD_TARGET"), env!("BUILD_HOST"));
        // Cargo reads a relative folder from where it was started, the workspace's
        // root; tests start in that of their package.
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folder = root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into()));
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo.args(["build", "--quiet", "-p", PACKAGE, "--target-dir"]).arg(&folder);
        cargo.current_dir(&root);
        let mut program = folder;
        if target != host {
            cargo.args(["--target", target]);
            program.push(target);
        }
        assert!(cargo.status().unwrap().success(), "{cargo:?}");
        program.push("debug");
        program.push(PACKAGE);
        program
    })
}

/// A command that starts the program, with nothing in its environment.
#[must_use]
pub fn command(arguments: &[&str]) -> Command {
    let variable = format!(
        "CARGO_TARGET_{}_RUNNER",
        env!("BUILD_TARGET").to_ascii_uppercase().replace(['-', '.'], "_")
    );
    // A program and its arguments, as cargo reads it.
    let runner = std::env::var(variable).unwrap_or_default();
    let mut words = runner.split_ascii_whitespace();
    let mut command = match words.next() {
        None => Command::new(program()),
        Some(emulator) => {
            let mut command = Command::new(emulator);
            command.args(words).arg(program());
            command
        }
    };
    command.args(arguments).env_clear();
    command
}
