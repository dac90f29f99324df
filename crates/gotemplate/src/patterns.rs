//! Translates regular expressions from Go's syntax to that of the regex crate. They differ in that Go's classes such as `\d` are
//! ASCII only, and Go has no set operations within brackets.

/// The expression for the regex crate.
pub(crate) fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut in_class = false;
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' => {
                let escaped = rest.chars().next();
                rest = &rest[escaped.map_or(0, char::len_utf8)..];
                escape(&mut out, escaped, in_class);
            }
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                // A closing bracket in first position is a character of the class.
                for first in ["^", "]"] {
                    if let Some(after) = rest.strip_prefix(first) {
                        out.push_str(if first == "]" { "\\]" } else { first });
                        rest = after;
                    }
                }
            }
            '[' => match rest.strip_prefix(':').and_then(|inner| inner.find(":]")) {
                // `[:alpha:]`
                Some(end) => {
                    let (name, after) = rest.split_at(end + 3);
                    out.push('[');
                    out.push_str(name);
                    rest = after;
                }
                None => out.push_str("\\["),
            },
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

fn escape(out: &mut String, escaped: Option<char>, in_class: bool) {
    let ascii = match escaped {
        Some('d') => "[0-9]",
        Some('D') => "[^0-9]",
        Some('w') => "[0-9A-Za-z_]",
        Some('W') => "[^0-9A-Za-z_]",
        Some('s') => "[\\t\\n\\f\\r ]",
        Some('S') => "[^\\t\\n\\f\\r ]",
        Some('b') if !in_class => "(?-u:\\b)",
        _ => {
            out.push('\\');
            out.extend(escaped);
            return;
        }
    };
    out.push_str(ascii);
}
