//! Encodings and digests.

use std::fmt::Write as _;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use super::text;
use crate::functions::{Function, f};
use crate::machine::Machine;
use crate::number;
use crate::value::{Numbers, Out, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    f("b64enc", "s", |m, a| m.heap.new_text(STANDARD.encode(&*text(&a[0])))),
    f("b64dec", "s", |m, a| {
        let digits = text(&a[0]).replace(['\r', '\n'], "");
        let bytes = STANDARD
            .decode(digits)
            .map_err(|_| "the text is no base64".to_owned())?;
        decoded(m, bytes)
    }),
    f("b32enc", "s", |m, a| m.heap.new_text(base32(text(&a[0]).as_bytes()))),
    f("b32dec", "s", |m, a| {
        let bytes = from_base32(&text(&a[0])).ok_or("the text is no base32")?;
        decoded(m, bytes)
    }),
    f("toJson", ".", |m, a| written(m, &a[0], Style::Escaped)),
    f("mustToJson", ".", |m, a| written(m, &a[0], Style::Escaped)),
    f("toRawJson", ".", |m, a| written(m, &a[0], Style::Raw)),
    f("mustToRawJson", ".", |m, a| written(m, &a[0], Style::Raw)),
    f("toPrettyJson", ".", |m, a| written(m, &a[0], Style::Pretty)),
    f("mustToPrettyJson", ".", |m, a| written(m, &a[0], Style::Pretty)),
    f("fromJson", "s", |m, a| read(m, &a[0])),
    f("mustFromJson", "s", |m, a| read(m, &a[0])),
    f("sha1sum", "s", |m, a| sum(m, &a[0], &digest::SHA1_FOR_LEGACY_USE_ONLY)),
    f("sha256sum", "s", |m, a| sum(m, &a[0], &digest::SHA256)),
    f("sha512sum", "s", |m, a| sum(m, &a[0], &digest::SHA512)),
    f("adler32sum", "s", |m, a| {
        let (low, high) = text(&a[0]).bytes().fold((1u32, 0u32), |(low, high), byte| {
            let low = (low + u32::from(byte)) % 65_521;
            (low, (high + low) % 65_521)
        });
        m.heap.new_text(((high << 16) | low).to_string())
    }),
];

fn decoded(m: &mut Machine<'_>, bytes: Vec<u8>) -> Out {
    let text = String::from_utf8(bytes).map_err(|_| "what was decoded is not UTF-8".to_owned())?;
    m.heap.new_text(text)
}

fn sum(m: &mut Machine<'_>, value: &Value, algorithm: &'static digest::Algorithm) -> Out {
    let digest = digest::digest(algorithm, text(value).as_bytes());
    let mut out = String::new();
    for byte in digest.as_ref() {
        let _ = write!(out, "{byte:02x}");
    }
    m.heap.new_text(out)
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn base32(bytes: &[u8]) -> String {
    let mut out = String::new();
    for group in bytes.chunks(5) {
        let mut whole = [0u8; 8];
        whole[3..3 + group.len()].copy_from_slice(group);
        let bits = u64::from_be_bytes(whole);
        let digits = (group.len() * 8).div_ceil(5);
        for at in 0..8 {
            if at < digits {
                let digit = (bits >> (35 - 5 * at)) & 31;
                out.push(char::from(BASE32[usize::try_from(digit).unwrap_or_default()]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

fn from_base32(text: &str) -> Option<Vec<u8>> {
    let text = text.replace(['\r', '\n'], "");
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(8) || text.len() - digits.len() > 6 {
        return None;
    }
    let mut out = Vec::new();
    for group in digits.as_bytes().chunks(8) {
        let mut bits = 0u64;
        for at in 0..8 {
            let digit = match group.get(at) {
                Some(byte) => BASE32.iter().position(|d| d == byte)?,
                None => 0,
            };
            bits = (bits << 5) | u64::try_from(digit).ok()?;
        }
        if matches!(group.len(), 1 | 3 | 6) {
            return None;
        }
        out.extend_from_slice(&bits.to_be_bytes()[3..3 + group.len() * 5 / 8]);
    }
    Some(out)
}

#[derive(Clone, Copy, PartialEq)]
enum Style {
    Escaped,
    Raw,
    Pretty,
}

fn written(m: &mut Machine<'_>, value: &Value, style: Style) -> Out {
    let json = m.heap.json(value)?;
    let mut out = String::new();
    write_json(&mut out, &json, style, 0);
    m.heap.new_text(out)
}

/// Writes JSON as Go does: numbers, escapes, blanks.
fn write_json(out: &mut String, json: &Json, style: Style, depth: usize) {
    let line = |out: &mut String, depth: usize| {
        if style == Style::Pretty {
            out.push('\n');
            out.push_str(&"  ".repeat(depth));
        }
    };
    match json {
        Json::Null => out.push_str("null"),
        Json::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Json::Number(n) => match n.as_i64() {
            Some(whole) => {
                let _ = write!(out, "{whole}");
            }
            None => out.push_str(&json_float(n.as_f64().unwrap_or_default())),
        },
        Json::String(text) => write_string(out, text, style),
        Json::Array(items) if items.is_empty() => out.push_str("[]"),
        Json::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                out.push(if at == 0 { '[' } else { ',' });
                line(out, depth + 1);
                write_json(out, item, style, depth + 1);
            }
            line(out, depth);
            out.push(']');
        }
        Json::Object(fields) if fields.is_empty() => out.push_str("{}"),
        Json::Object(fields) => {
            // Go sorts keys.
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| key.as_str());
            for (at, (key, item)) in fields.into_iter().enumerate() {
                out.push(if at == 0 { '{' } else { ',' });
                line(out, depth + 1);
                write_string(out, key, style);
                out.push_str(if style == Style::Pretty { ": " } else { ":" });
                write_json(out, item, style, depth + 1);
            }
            line(out, depth);
            out.push('}');
        }
    }
}

/// A float in JSON: with an exponent only if it is very large or very small.
fn json_float(f: f64) -> String {
    let size = f.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return number::format(f, 'f', None);
    }
    let text = number::format(f, 'e', None);
    // A negative exponent has no leading zero.
    text.replace("e-0", "e-")
}

fn write_string(out: &mut String, text: &str, style: Style) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' if style != Style::Raw => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

fn read(m: &mut Machine<'_>, value: &Value) -> Out {
    let json: Json = serde_json::from_str(&text(value)).map_err(|why| format!("the text is no JSON: {why}"))?;
    m.heap.load(&json, Numbers::Floats)
}
