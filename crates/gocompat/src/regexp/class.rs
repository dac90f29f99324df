//! Classes of characters, and escapes.

use std::fmt::Write as _;

use super::{INVALID_ESCAPE, INVALID_RANGE, RegexpError};

/// The named classes of POSIX.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// Writes a character so that the engine takes it as nothing else, in a class and outside.
pub(super) fn write_char(c: char, out: &mut String) {
    if c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii() {
        out.push(c);
    } else {
        let _ = write!(out, "\\x{:02X}", u32::from(c));
    }
}

/// Writes a range of characters by their numbers. Surrogates are in no text.
fn write_range(low: u32, high: u32, out: &mut String) {
    let low = if (0xD800..0xE000).contains(&low) { 0xE000 } else { low };
    let high = if (0xD800..0xE000).contains(&high) { 0xD7FF } else { high };
    let (Some(low), Some(high)) = (char::from_u32(low), char::from_u32(high)) else {
        return;
    };
    if low > high {
        return;
    }
    write_char(low, out);
    if low < high {
        out.push('-');
        write_char(high, out);
    }
}

/// The class of an escape such as `\d`, as an item of a bracket.
fn perl(escape: Option<&u8>) -> Option<&'static str> {
    Some(match escape? {
        b'd' => "0-9",
        b'D' => "[^0-9]",
        b's' => r"\t\n\x0C\r\x20",
        b'S' => r"[^\t\n\x0C\r\x20]",
        b'w' => "0-9A-Za-z_",
        b'W' => "[^0-9A-Za-z_]",
        _ => return None,
    })
}

/// A class of Unicode that a text begins with, such as `\pL` or `\p{^Greek}`: for the engine, and its length.
fn unicode(text: &str) -> Option<Result<(String, usize), RegexpError>> {
    let sign = text.as_bytes().get(1).filter(|sign| matches!(sign, b'p' | b'P'))?;
    let after = &text[2..];
    let invalid = |length: usize| Some(Err(RegexpError::new(INVALID_RANGE, text.get(..length).unwrap_or(text))));
    let Some(first) = after.chars().next() else {
        return invalid(2);
    };
    let (name, length) = if first == '{' {
        let Some(end) = after.find('}') else {
            return invalid(text.len());
        };
        (&after[1..end], end + 3)
    } else {
        (&after[..first.len_utf8()], 2 + first.len_utf8())
    };
    let (bare, is_negated) = match name.strip_prefix('^') {
        Some(bare) => (bare, true),
        None => (name, false),
    };
    // Go has categories and scripts by their names alone; the engine has properties with values as well.
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b' ');
    if bare.is_empty() || !bare.bytes().all(is_name) {
        return invalid(length);
    }
    let sign = if is_negated == (*sign == b'p') { 'P' } else { 'p' };
    Some(Ok((format!("\\{sign}{{{bare}}}"), length)))
}

/// Writes what the escape at a place outside of brackets stands for; returns where it ends.
pub(super) fn escaped(pattern: &str, at: usize, out: &mut String) -> Result<usize, RegexpError> {
    let text = &pattern[at..];
    if let Some(class) = perl(text.as_bytes().get(1)) {
        let _ = write!(out, "[{class}]");
        return Ok(at + 2);
    }
    if let Some(found) = unicode(text) {
        let (class, length) = found?;
        out.push_str(&class);
        return Ok(at + length);
    }
    let (code, length) = number(text)?;
    match char::from_u32(code) {
        Some(c) => write_char(c, out),
        // A surrogate is in no text.
        None => out.push_str(r"[^\x00-\x{10FFFF}]"),
    }
    Ok(at + length)
}

/// The character that an escape stands for, by its number, and the length of the escape.
fn number(text: &str) -> Result<(u32, usize), RegexpError> {
    let invalid = |length: usize| RegexpError::new(INVALID_ESCAPE, text.get(..length).unwrap_or(text));
    let Some(c) = text[1..].chars().next() else {
        return Err(RegexpError::new("trailing backslash at end of expression", ""));
    };
    let after = &text[1 + c.len_utf8()..];
    let octal = |text: &str, most: usize| {
        text.bytes()
            .take(most)
            .take_while(|byte| matches!(byte, b'0'..=b'7'))
            .count()
    };
    let simple = |code: u8| Ok((u32::from(code), 2));
    match c {
        // A single digit would be what a group matched.
        '1'..='7' if octal(after, 1) == 0 => Err(invalid(2)),
        '0'..='7' => {
            let length = 1 + octal(after, 2);
            let digits = &text[1..=length];
            Ok((u32::from_str_radix(digits, 8).unwrap_or_default(), 1 + length))
        }
        'x' if after.starts_with('{') => {
            let mut code = 0;
            for (at, c) in after.char_indices().skip(1) {
                let end = 2 + at + c.len_utf8();
                match c.to_digit(16) {
                    Some(digit) if code * 16 + digit <= 0x10_FFFF => code = code * 16 + digit,
                    None if c == '}' && at > 1 => return Ok((code, end)),
                    _ => return Err(invalid(end)),
                }
            }
            Err(invalid(text.len()))
        }
        'x' => {
            let digits = after
                .get(..2)
                .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
            let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            code.map(|code| (code, 4)).ok_or_else(|| invalid(4.min(text.len())))
        }
        'a' => simple(7),
        'f' => simple(12),
        'n' => simple(b'\n'),
        'r' => simple(b'\r'),
        't' => simple(b'\t'),
        'v' => simple(11),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Ok((u32::from(c), 2)),
        c => Err(invalid(1 + c.len_utf8())),
    }
}

/// Writes the bracket at a place; returns where it ends. `last_end` is where the last `:]` of the pattern is.
pub(super) fn bracket(
    pattern: &str,
    begin: usize,
    last_end: Option<usize>,
    out: &mut String,
) -> Result<usize, RegexpError> {
    let unclosed = || RegexpError::new("missing closing ]", &pattern[begin..]);
    let mut at = begin + 1;
    let start = out.len();
    out.push('[');
    if pattern[at..].starts_with('^') {
        out.push('^');
        at += 1;
    }
    let items = out.len();
    let mut is_first = true;
    loop {
        let text = &pattern[at..];
        if text.is_empty() {
            return Err(unclosed());
        }
        if text.starts_with(']') && !is_first {
            break;
        }
        is_first = false;
        if text.starts_with("[:") && last_end.is_some_and(|end| end >= at + 2) {
            let end = text[2..].find(":]").map_or(text.len(), |length| length + 4);
            let name = text[2..end - 2].trim_start_matches('^');
            let is_known = POSIX.contains(&name) && end - 4 <= name.len() + 1;
            if !is_known {
                return Err(RegexpError::new(INVALID_RANGE, &text[..end]));
            }
            out.push_str(&text[..end]);
            at += end;
            continue;
        }
        if text.starts_with('\\') {
            if let Some(class) = perl(text.as_bytes().get(1)) {
                out.push_str(class);
                at += 2;
                continue;
            }
            if let Some(found) = unicode(text) {
                let (class, length) = found?;
                out.push_str(&class);
                at += length;
                continue;
            }
        }
        let (low, length) = one(text)?;
        let mut end = at + length;
        let mut high = low;
        let after = &pattern[end..];
        if after.len() >= 2 && after.starts_with('-') && !after[1..].starts_with(']') {
            let (code, length) = one(&after[1..])?;
            high = code;
            end += 1 + length;
            if high < low {
                return Err(RegexpError::new(INVALID_RANGE, &pattern[at..end]));
            }
        }
        write_range(low, high, out);
        at = end;
    }
    if out.len() == items {
        // Only surrogates: a class of nothing.
        let is_negated = items > start + 1;
        out.truncate(start);
        out.push_str(if is_negated {
            r"[\x00-\x{10FFFF}]"
        } else {
            r"[^\x00-\x{10FFFF}]"
        });
    } else {
        out.push(']');
    }
    Ok(at + 1)
}

/// One character of a bracket, and its length.
fn one(text: &str) -> Result<(u32, usize), RegexpError> {
    match text.chars().next() {
        Some('\\') => number(text),
        Some(c) => Ok((u32::from(c), c.len_utf8())),
        None => Ok((0, 0)),
    }
}
