//! URLs of contents: those that carry the content themselves, and a check of the others.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Schemes that Ignition downloads from.
const REMOTE: [&str; 4] = ["http", "https", "oem", "tftp"];

/// A URL that carries a content.
pub(super) fn data(content: &[u8]) -> String {
    let mut url = "data:,".to_owned();
    for byte in content {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(byte) {
            url.push(char::from(*byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(url, "%{byte:02X}");
        }
    }
    url
}

/// Why Ignition would refuse a URL. An empty one stands for an empty file.
pub(super) fn problem(url: &str) -> Option<&'static str> {
    if url.is_empty() {
        return None;
    }
    let Some((scheme, rest)) = url.split_once(':') else {
        return Some("a URL with a scheme is expected: http, https, tftp, oem, s3 or data");
    };
    let scheme = scheme.to_ascii_lowercase();
    if scheme == "data" {
        return data_problem(rest);
    }
    if scheme == "s3" && malformed(url).is_none() {
        let query = rest.split_once('?').map_or("", |(_, query)| query);
        let query = query.split('#').next().unwrap_or_default();
        let is_empty = |part: &str| {
            part.strip_prefix("versionId")
                .is_some_and(|rest| matches!(rest, "" | "="))
        };
        return query
            .split('&')
            .any(is_empty)
            .then_some("versionId of an s3 URL cannot be empty");
    }
    if !REMOTE.contains(&scheme.as_str()) && scheme != "s3" {
        return Some("the scheme of the URL is not supported; use http, https, tftp, oem, s3 or data");
    }
    malformed(url)
}

/// Why a text is no URL, of whatever scheme.
pub(super) fn malformed(url: &str) -> Option<&'static str> {
    if url.chars().any(|c| c.is_ascii_control()) {
        return Some("a URL cannot have control characters");
    }
    let rest = url.split_once(':').map_or(url, |(_, rest)| rest);
    let authority = rest.strip_prefix("//").unwrap_or_default();
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '}', '|']) {
        return Some("the host of the URL has characters that a host cannot have");
    }
    let host = authority.rsplit('@').next().unwrap_or_default();
    let port = match host.rsplit_once(']') {
        Some((_, rest)) => rest.strip_prefix(':'),
        None => host.split_once(':').map(|(_, port)| port),
    };
    if port.is_some_and(|port| !port.bytes().all(|byte| byte.is_ascii_digit())) {
        return Some("the port of the URL is not a number");
    }
    let path = rest.split('?').next().unwrap_or_default();
    (!has_good_escapes(path)).then_some("a % in the path of the URL is not followed by two hexadecimal digits")
}

/// A URL as Go prints it after reading it: what a path cannot have is escaped.
pub(super) fn printed(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once(':') else {
        return url.to_owned();
    };
    let scheme = scheme.to_ascii_lowercase();
    if !rest.starts_with('/') {
        return format!("{scheme}:{rest}");
    }
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (path, others) = rest.split_at(end);
    let mut out = format!("{scheme}:");
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:@/%[]".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out.push_str(others);
    out
}

fn data_problem(rest: &str) -> Option<&'static str> {
    const SHAPE: &str = "a data URL has the form data:[TYPE][;base64],CONTENT";
    let Some((header, content)) = rest.split_once(',') else {
        return Some(SHAPE);
    };
    let mut attributes = header.split(';');
    let kind = attributes.next().unwrap_or_default();
    let is_token = |text: &str| {
        let is_good = |byte: u8| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?=".contains(&byte);
        !text.is_empty() && text.bytes().all(is_good)
    };
    if !kind.is_empty() && !kind.split_once('/').is_some_and(|(a, b)| is_token(a) && is_token(b)) {
        return Some(SHAPE);
    }
    let mut is_base64 = false;
    for attribute in attributes {
        match attribute.split_once('=') {
            None if attribute == "base64" && !is_base64 => is_base64 = true,
            Some((name, value)) if is_token(name) && !value.is_empty() && !is_base64 => {}
            _ => return Some(SHAPE),
        }
    }
    if is_base64 {
        return STANDARD
            .decode(content)
            .is_err()
            .then_some("the content of the data URL is not base64");
    }
    let is_good = content.is_ascii() && !content.contains([' ', '"', '<', '>', '\\', '^', '`', '{', '|', '}']);
    (!is_good || !has_good_escapes(content)).then_some("the content of the data URL is not percent-encoded")
}

fn has_good_escapes(text: &str) -> bool {
    text.split('%').skip(1).all(|part| {
        let digits = part.as_bytes().get(..2).unwrap_or_default();
        digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_content_is_in_its_url() {
        assert_eq!(data(b""), "data:,");
        assert_eq!(data(b"a-Z_0.!~*'()"), "data:,a-Z_0.!~*'()");
        assert_eq!(data(b"a b\n=:/\xff"), "data:,a%20b%0A%3D%3A%2F%FF");
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(problem(&data(&all)), None);
    }

    #[test]
    fn urls_that_ignition_refuses_are_named() {
        for good in [
            "",
            "https://example.com/a b?x=%",
            "oem:///a",
            "tftp://h:69/a",
            "s3://bucket/key?versionId=1",
            "http://[::1]:80/",
            "data:text/plain;charset=utf-8,a",
            "data:;base64,Zm9v",
        ] {
            assert_eq!(problem(good), None, "{good}");
        }
        for bad in [
            "file",
            "ftp://h/a",
            "https://a\n",
            "https://h:x/",
            "https://h/%zz",
            "https://a b/",
            "s3://b/k?versionId=",
            "data:x",
            "data:a b,c",
            "data:;base64,%",
            "data:;base64=1;x,a",
            "data:,%4",
            "data:,é",
        ] {
            assert!(problem(bad).is_some(), "{bad}");
        }
        assert_eq!(printed("HTTPS://h/a b?c d"), "https://h/a%20b?c d");
    }
}
