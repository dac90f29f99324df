//! What Go's `%q` prints.

use std::fmt::Write as _;

/// A text in double quotes, as `%q` prints it.
pub fn quoted(text: &str) -> String {
    in_double_quotes(text, false)
}

/// A text in double quotes with every character outside ASCII escaped, as `%+q` prints it.
pub fn quoted_ascii(text: &str) -> String {
    in_double_quotes(text, true)
}

/// A character in single quotes, as `%q` (with `only_ascii`, `%+q`) prints it.
pub fn quoted_char(c: char, only_ascii: bool) -> String {
    let mut out = String::from("'");
    escape(&mut out, c, '\'', only_ascii);
    out.push('\'');
    out
}

fn in_double_quotes(text: &str, only_ascii: bool) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        escape(&mut out, c, '"', only_ascii);
    }
    out.push('"');
    out
}

fn escape(out: &mut String, c: char, quote: char, only_ascii: bool) {
    match c {
        _ if c == quote || c == '\\' => {
            out.push('\\');
            out.push(c);
        }
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        _ if is_printable(c) && (c.is_ascii() || !only_ascii) => out.push(c),
        _ => {
            let code = u32::from(c);
            let _ = match code {
                ..0x20 | 0x7f => write!(out, "\\x{code:02x}"),
                ..0x1_0000 => write!(out, "\\u{code:04x}"),
                _ => write!(out, "\\U{code:08x}"),
            };
        }
    }
}

/// Characters newer than Unicode 15.0, which is what Go knows; Rust knows more.
const NEWER: &[(u32, u32)] = &[
    (0x88f, 0x88f),
    (0x897, 0x897),
    (0xc5c, 0xc5c),
    (0xcdc, 0xcdc),
    (0x1acf, 0x1add),
    (0x1ae0, 0x1aeb),
    (0x1b4e, 0x1b4f),
    (0x1b7f, 0x1b7f),
    (0x1c89, 0x1c8a),
    (0x20c1, 0x20c1),
    (0x2427, 0x2429),
    (0x2b96, 0x2b96),
    (0x2ffc, 0x2fff),
    (0x31e4, 0x31e5),
    (0x31ef, 0x31ef),
    (0xa7cb, 0xa7cf),
    (0xa7d2, 0xa7d2),
    (0xa7d4, 0xa7d4),
    (0xa7da, 0xa7dc),
    (0xa7f1, 0xa7f1),
    (0xfbc3, 0xfbd2),
    (0xfd90, 0xfd91),
    (0xfdc8, 0xfdce),
    (0x105c0, 0x105f3),
    (0x10940, 0x10959),
    (0x10d40, 0x10d65),
    (0x10d69, 0x10d85),
    (0x10d8e, 0x10d8f),
    (0x10ec2, 0x10ec7),
    (0x10ed0, 0x10ed8),
    (0x10efa, 0x10efc),
    (0x11380, 0x11389),
    (0x1138b, 0x1138b),
    (0x1138e, 0x1138e),
    (0x11390, 0x113b5),
    (0x113b7, 0x113c0),
    (0x113c2, 0x113c2),
    (0x113c5, 0x113c5),
    (0x113c7, 0x113ca),
    (0x113cc, 0x113d5),
    (0x113d7, 0x113d8),
    (0x113e1, 0x113e2),
    (0x116d0, 0x116e3),
    (0x11b60, 0x11b67),
    (0x11bc0, 0x11be1),
    (0x11bf0, 0x11bf9),
    (0x11db0, 0x11ddb),
    (0x11de0, 0x11de9),
    (0x11f5a, 0x11f5a),
    (0x13460, 0x143fa),
    (0x16100, 0x16139),
    (0x16d40, 0x16d79),
    (0x16ea0, 0x16eb8),
    (0x16ebb, 0x16ed3),
    (0x16ff2, 0x16ff6),
    (0x187f8, 0x187ff),
    (0x18cff, 0x18cff),
    (0x18d09, 0x18d1e),
    (0x18d80, 0x18df2),
    (0x1cc00, 0x1ccfc),
    (0x1cd00, 0x1ceb3),
    (0x1ceba, 0x1ced0),
    (0x1cee0, 0x1cef0),
    (0x1e5d0, 0x1e5fa),
    (0x1e5ff, 0x1e5ff),
    (0x1e6c0, 0x1e6de),
    (0x1e6e0, 0x1e6f5),
    (0x1e6fe, 0x1e6ff),
    (0x1f6d8, 0x1f6d8),
    (0x1f777, 0x1f77a),
    (0x1f8b2, 0x1f8bb),
    (0x1f8c0, 0x1f8c1),
    (0x1f8d0, 0x1f8d8),
    (0x1fa54, 0x1fa57),
    (0x1fa89, 0x1fa8a),
    (0x1fa8e, 0x1fa8f),
    (0x1fabe, 0x1fabe),
    (0x1fac6, 0x1fac6),
    (0x1fac8, 0x1fac8),
    (0x1facd, 0x1facd),
    (0x1fadc, 0x1fadc),
    (0x1fadf, 0x1fadf),
    (0x1fae9, 0x1faea),
    (0x1faef, 0x1faef),
    (0x1fbcb, 0x1fbef),
    (0x1fbfa, 0x1fbfa),
    (0x2b73a, 0x2b73f),
    (0x2cea2, 0x2cead),
    (0x2ebf0, 0x2ee5d),
    (0x323b0, 0x33479),
];

/// Whether Go prints a character as it is: letters, marks, numbers, punctuation, symbols and the ordinary blank.
pub fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    let code = u32::from(c);
    let at = NEWER.partition_point(|(_, last)| *last < code);
    if NEWER.get(at).is_some_and(|(first, _)| *first <= code) {
        return false;
    }
    // Of the others Rust escapes the same, but for marks at the beginning of a text.
    let mut buffer = [b'a'; 5];
    let end = 1 + c.encode_utf8(&mut buffer[1..]).len();
    std::str::from_utf8(&buffer[..end]).is_ok_and(|text| text.escape_debug().eq(text.chars()))
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    #[test]
    fn quotes_as_go_does() {
        let check = |text: &str, want: &str| assert_eq!(quoted(text), want, "{text:?}");
        check("plain", r#""plain""#);
        check("a\"b\\c", r#""a\"b\\c""#);
        check("\u{7}\u{8}\t\n\u{b}\u{c}\r", r#""\a\b\t\n\v\f\r""#);
        check("\0\u{1f}\u{7f}", r#""\x00\x1f\x7f""#);
        check("é日😀", "\"é日😀\"");
        check("it's", "\"it's\"");
        // Not printed: controls, format characters, blanks other than the ordinary one, private use.
        check(
            "\u{80}\u{a0}\u{ad}\u{200b}\u{2028}\u{feff}\u{e000}",
            r#""\u0080\u00a0\u00ad\u200b\u2028\ufeff\ue000""#,
        );
        check("\u{e0001}", r#""\U000e0001""#);
        // A mark has no need of a letter before it.
        check("\u{301}a\u{301}", "\"\u{301}a\u{301}\"");
    }

    #[test]
    fn other_forms() {
        assert_eq!(quoted_ascii("é😀"), r#""\u00e9\U0001f600""#);
        assert_eq!(quoted_char('\'', false), r"'\''");
        assert_eq!(quoted_char('"', false), "'\"'");
        assert_eq!(quoted_char('é', true), r"'\u00e9'");
    }

    /// When a newer compiler knows more characters, those go to the table.
    #[test]
    fn printable_is_what_go_says_by_category() {
        let category = Regex::new(r"^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$").unwrap();
        let known = Regex::new(r"^\p{Age=15.0}$").unwrap();
        let is = |regex: &Regex, c: char| regex.is_match(c.encode_utf8(&mut [0; 4]));
        let differ = |c: &char| (is(&category, *c) && is(&known, *c)) != is_printable(*c);
        let found: Vec<char> = ('\0'..=char::MAX).filter(differ).collect();
        assert!(
            found.is_empty(),
            "{} characters: {:?}",
            found.len(),
            found.iter().take(40)
        );
        // Assigned by Unicode 15.1 and 16.0.
        assert_eq!(quoted("\u{2ebf0}\u{1c89}"), r#""\U0002ebf0\u1c89""#);
    }
}
