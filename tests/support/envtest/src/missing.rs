//! Tests and tasks whose programs are missing: they are left out with a message, or fail (`WINDLASS_STRICT=1`).

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use crate::StartError;

/// The variable that turns missing programs into failures.
pub const STRICT: &str = "WINDLASS_STRICT";

/// The variable with the file that lists what was left out, one line each.
pub const LEFT_OUT: &str = "WINDLASS_LEFT_OUT";

/// Whether a missing program is a failure.
pub fn is_strict() -> bool {
    std::env::var(STRICT).is_ok_and(|value| value == "1")
}

/// Reports what is left out, on standard error and in the file [`LEFT_OUT`]. An error in strict mode.
pub fn left_out(what: &str, why: &str) -> Result<(), String> {
    let file = std::env::var_os(LEFT_OUT).filter(|path| !path.is_empty());
    let line = noted(is_strict(), file.as_deref().map(Path::new), what, why)?;
    // Not by a macro: the test harness shows their output only for tests that fail.
    let _ = std::io::stderr().write_all(line.as_bytes());
    Ok(())
}

/// The line, which is in the file now.
fn noted(is_strict: bool, file: Option<&Path>, what: &str, why: &str) -> Result<String, String> {
    if is_strict {
        return Err(format!("{what} may not be left out ({STRICT}=1): {why}"));
    }
    let line = format!("left out: {what}: {why}\n");
    if let Some(path) = file {
        let opened = OpenOptions::new().create(true).append(true).open(path);
        let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
        written.map_err(|error| format!("{}: cannot be written: {error}", path.display()))?;
    }
    Ok(line)
}

/// The requirement of a test, or `None` if the test is to be left out. A missing program is a failure in strict mode.
pub(crate) fn required<T>(found: Result<T, StartError>) -> Option<T> {
    let error = match found {
        Ok(found) => return Some(found),
        Err(error) => error.to_string(),
    };
    let thread = std::thread::current();
    let result = left_out(thread.name().unwrap_or("a test"), &error);
    #[expect(clippy::panic, reason = "a test that may not be left out fails")]
    result.unwrap_or_else(|error| panic!("{error}"));
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_collected_and_fails_in_strict_mode() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("left-out");
        noted(false, Some(&file), "a", "no x").unwrap();
        noted(false, Some(&file), "b", "no y").unwrap();
        let error = noted(true, Some(&file), "c", "no z").unwrap_err();
        assert!(error.contains("no z") && error.contains(STRICT), "{error}");
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text, "left out: a: no x\nleft out: b: no y\n");
    }
}
