//! Checksums.

use sha2::{Digest, Sha256, Sha512};

use crate::error::Error;

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(content: &[u8]) -> String {
    hexadecimal::<Sha256>(content)
}

fn hexadecimal<D: Digest>(content: &[u8]) -> String {
    let hash = D::digest(content);
    let half = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    hash.iter()
        .flat_map(|byte| [half(byte >> 4), half(byte & 15)])
        .collect()
}

/// Compares content with `sha256:<hex>` or `sha512:<hex>`. Other types of checksums are ignored.
pub(crate) fn check(what: &str, content: &[u8], expected: &str) -> Result<(), Error> {
    let (name, found, hex) = match expected.split_once(':') {
        Some(("sha256", hex)) => ("sha256", sha256(content), hex),
        Some(("sha512", hex)) => ("sha512", hexadecimal::<Sha512>(content), hex),
        _ => return Ok(()),
    };
    if found.eq_ignore_ascii_case(hex) {
        return Ok(());
    }
    Err(Error::Checksum {
        what: what.to_owned(),
        expected: expected.to_owned(),
        found: format!("{name}:{found}"),
    })
}
