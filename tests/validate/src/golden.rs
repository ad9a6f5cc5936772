//! Output that is compared with a file of the repository.

use std::path::Path;

/// Set to anything, it makes the tests write the files instead: look at the
/// difference before committing it.
const WRITE: &str = "KFD_VALIDATE_WRITE_GOLDEN";

/// Asserts that `text` is what `tests/golden/<name>` holds.
#[track_caller]
pub fn assert_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os(WRITE).is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    if golden != text {
        let differs = golden.lines().zip(text.lines()).position(|(old, new)| old != new);
        let line = differs.unwrap_or(golden.lines().count().min(text.lines().count())) + 1;
        panic!("{name} differs from line {line} on ({WRITE}=1 rewrites the file):\n{text}");
    }
}
