//! Splits and joins URLs.

use std::fmt::Write as _;

use super::text;
use crate::functions::{Function, f};
use crate::machine::Machine;
use crate::value::{Entries, Out, Value};

pub(super) const FUNCTIONS: &[Function] = &[f("urlParse", "s", parse), f("urlJoin", "m", join)];

fn parse(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let url = text(&args[0]);
    let bad = |why: &str| format!("the text is no URL: {why}");
    if url.chars().any(|c| c.is_ascii_control()) {
        return Err(bad("it holds control characters").into());
    }
    let (rest, fragment) = url.split_once('#').unwrap_or((&url, ""));
    let (rest, scheme) = match rest.split_once(':') {
        Some((scheme, after)) if is_scheme(scheme) => (after, scheme.to_ascii_lowercase()),
        Some(("", _)) => return Err(bad("its scheme is missing").into()),
        _ => (rest, String::new()),
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut parts = Parts::default();
    if !scheme.is_empty() && !rest.starts_with('/') && !rest.is_empty() {
        rest.clone_into(&mut parts.opaque);
    } else if let Some(after) = rest.strip_prefix("//") {
        let end = after.find('/').unwrap_or(after.len());
        let (authority, path) = after.split_at(end);
        let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        if host.contains(' ') || !port_is_good(host) {
            return Err(bad("its host or port is none").into());
        }
        user.clone_into(&mut parts.user);
        host.clone_into(&mut parts.host);
        parts.path = unescaped(path).ok_or_else(|| bad("its path has a bad escape"))?;
    } else {
        let first = rest.split('/').next().unwrap_or_default();
        if scheme.is_empty() && first.contains(':') {
            return Err(bad("its first part has a colon").into());
        }
        parts.path = unescaped(rest).ok_or_else(|| bad("its path has a bad escape"))?;
    }
    let fragment = unescaped(fragment).ok_or_else(|| bad("its fragment has a bad escape"))?;
    let hostname = hostname(&parts.host).to_owned();
    let fields = [
        ("scheme", scheme),
        ("host", parts.host),
        ("hostname", hostname),
        ("path", parts.path),
        ("query", query.to_owned()),
        ("opaque", parts.opaque),
        ("fragment", fragment),
        ("userinfo", parts.user),
    ];
    let mut entries = Entries::new();
    for (key, value) in fields {
        entries.insert(key.into(), m.heap.new_text(value)?);
    }
    m.heap.new_map(entries)
}

#[derive(Default)]
struct Parts {
    opaque: String,
    user: String,
    host: String,
    path: String,
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// A host without its port and brackets.
fn hostname(host: &str) -> &str {
    if let Some(inside) = host.strip_prefix('[') {
        return inside.split(']').next().unwrap_or_default();
    }
    host.split(':').next().unwrap_or_default()
}

fn port_is_good(host: &str) -> bool {
    let after = match host.strip_prefix('[') {
        Some(inside) => match inside.split_once(']') {
            Some((_, after)) => after,
            None => return false,
        },
        None => host.find(':').map_or("", |at| &host[at..]),
    };
    after.is_empty()
        || after
            .strip_prefix(':')
            .is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
}

/// Decodes percent escapes; `None` if one is invalid or the result is not UTF-8.
fn unescaped(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let digits = rest.get(at + 1..at + 3)?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        out.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[at + 3..];
    }
    out.extend_from_slice(rest.as_bytes());
    String::from_utf8(out).ok()
}

fn join(m: &mut Machine<'_>, args: &[Value]) -> Out {
    let Value::Map(map) = &args[0] else {
        return m.heap.new_text("");
    };
    let get = |key: &str| -> Out<String> {
        match m.heap.map(*map).entries.get(key) {
            None => Ok(String::new()),
            Some(Value::Text(text)) => Ok(text.to_string()),
            Some(other) => Err(format!("{key} must be a text, not a {}", other.type_name(&m.heap)).into()),
        }
    };
    let (scheme, host, path, query) = (get("scheme")?, get("host")?, get("path")?, get("query")?);
    let (opaque, fragment, user) = (get("opaque")?, get("fragment")?, get("userinfo")?);
    let mut out = String::new();
    if !scheme.is_empty() {
        let _ = write!(out, "{scheme}:");
    }
    if opaque.is_empty() {
        if !host.is_empty() || !user.is_empty() {
            out.push_str("//");
            if !user.is_empty() {
                let _ = write!(out, "{user}@");
            }
            out.push_str(&host);
        }
        let escaped = escaped(&path);
        if !path.is_empty() && !path.starts_with('/') && !host.is_empty() {
            out.push('/');
        }
        out.push_str(&escaped);
    } else {
        out.push_str(&opaque);
    }
    if !query.is_empty() {
        let _ = write!(out, "?{query}");
    }
    if !fragment.is_empty() {
        let _ = write!(out, "#{}", escaped(&fragment));
    }
    m.heap.new_text(out)
}

/// Escapes the characters that are not allowed in a path.
fn escaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            _ if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@!'()*".contains(&byte) => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}
