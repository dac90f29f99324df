//! A whole request of a tenant: a line with method and path, lines with headers, an empty line, a body.

use http::{HeaderName, HeaderValue, Request, Uri};

use crate::served;

/// The largest document that the server has, and what it may add to what was sent.
const MOST: usize = 16 << 20;

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(data: &[u8]) {
    let mut lines = data.splitn(2, |byte| *byte == b'\n');
    let first = lines.next().and_then(|line| std::str::from_utf8(line).ok());
    let Some((method, path)) = first.and_then(|line| line.split_once(' ')) else {
        return;
    };
    let Ok(uri) = path.parse::<Uri>() else { return };
    let mut rest = lines.next().unwrap_or_default();
    let mut request = Request::builder().method(method).uri(uri);
    let mut impersonates = false;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        if line.is_empty() {
            break;
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            return;
        };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        let (Ok(name), Ok(value)) = (name, value) else { return };
        impersonates |= is_impersonation(name.as_str()) && !value.is_empty();
        request = request.header(name, value);
    }
    let Ok(request) = request.body(rest.to_vec()) else {
        return;
    };
    for answer in served::answers(vec![request]) {
        assert!(
            answer.bytes.len() <= MOST,
            "{} bytes for {}",
            answer.bytes.len(),
            data.len()
        );
        assert!(
            !impersonates || answer.code >= 400,
            "a user who may not act for others is answered with {}",
            answer.code
        );
    }
}

/// Whether a header names the user for whom a request is. Other headers with the prefix mean nothing.
fn is_impersonation(name: &str) -> bool {
    let kind = name.strip_prefix("impersonate-").unwrap_or_default();
    matches!(kind, "user" | "group" | "uid") || kind.starts_with("extra-")
}
