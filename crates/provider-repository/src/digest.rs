//! Checksums.

use sha2::{Digest as _, Sha256};

use crate::error::Error;

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(content: &[u8]) -> String {
    let hash = Sha256::digest(content);
    let half = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    hash.iter()
        .flat_map(|byte| [half(byte >> 4), half(byte & 15)])
        .collect()
}

/// Compares content with `sha256:<hex>`. Other types of checksums are ignored.
pub(crate) fn check(what: &str, content: &[u8], expected: &str) -> Result<(), Error> {
    let Some(hex) = expected.strip_prefix("sha256:") else {
        return Ok(());
    };
    let found = sha256(content);
    if found.eq_ignore_ascii_case(hex) {
        return Ok(());
    }
    Err(Error::Checksum {
        what: what.to_owned(),
        expected: expected.to_owned(),
        found: format!("sha256:{found}"),
    })
}
