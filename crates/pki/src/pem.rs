//! PEM in the form of Go's encoder: 64 columns, one newline at the end.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::PkiError;

/// One block of a PEM text.
pub(crate) struct Block {
    pub(crate) label: String,
    pub(crate) der: Vec<u8>,
}

pub(crate) fn encode(label: &str, der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let mut text = String::with_capacity(body.len() + body.len() / 64 + 2 * label.len() + 40);
    text.push_str("-----BEGIN ");
    text.push_str(label);
    text.push_str("-----\n");
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, tail) = rest.split_at(rest.len().min(64));
        text.push_str(line);
        text.push('\n');
        rest = tail;
    }
    text.push_str("-----END ");
    text.push_str(label);
    text.push_str("-----\n");
    text
}

/// All blocks of a text; text between blocks is skipped, as in OpenSSL and Go.
pub(crate) fn blocks(what: &'static str, text: &str) -> Result<Vec<Block>, PkiError> {
    let fail = |why: String| PkiError::Pem { what, why };
    let mut found = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines().map(str::trim) {
        if let Some(label) = line.strip_prefix("-----BEGIN ").and_then(|l| l.strip_suffix("-----")) {
            if let Some((outer, _)) = open {
                return Err(fail(format!("block \"{outer}\" has no end")));
            }
            open = Some((label.to_owned(), String::new()));
        } else if let Some(label) = line.strip_prefix("-----END ").and_then(|l| l.strip_suffix("-----")) {
            let Some((begun, body)) = open.take() else {
                return Err(fail(format!("end of \"{label}\" without a beginning")));
            };
            if begun != label {
                return Err(fail(format!("block \"{begun}\" ends as \"{label}\"")));
            }
            let der = STANDARD
                .decode(body)
                .map_err(|error| fail(format!("block \"{label}\": {error}")))?;
            found.push(Block { label: begun, der });
        } else if let Some((_, body)) = open.as_mut() {
            // Headers such as `Proc-Type:` belong to encrypted keys, which are not supported.
            if line.contains(':') {
                return Err(fail("encrypted or annotated blocks are not supported".to_owned()));
            }
            body.push_str(line);
        }
    }
    match open {
        Some((label, _)) => Err(fail(format!("block \"{label}\" has no end"))),
        None if found.is_empty() => Err(fail("no block found".to_owned())),
        None => Ok(found),
    }
}
