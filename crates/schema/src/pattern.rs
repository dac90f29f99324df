//! Translates regular expressions from the dialect of Kubernetes (RE2) to that of the engine.

use regex::Regex;

/// Compiles a pattern; the error is worded as Kubernetes does, as near as can be.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    Regex::new(&translate(pattern)).map_err(|error| problem(pattern, &error))
}

/// In the engine, classes like `\d` match Unicode, and brackets nest; in RE2 they match ASCII, and do not nest.
fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let used = match c {
            '\\' => escape(rest, false, &mut out),
            '[' => class(rest, &mut out),
            _ => {
                out.push(c);
                c.len_utf8()
            }
        };
        rest = &rest[used..];
    }
    out
}

/// Translates an escape; returns its length.
fn escape(text: &str, in_class: bool, out: &mut String) -> usize {
    let Some(next) = text[1..].chars().next() else {
        out.push('\\');
        return 1;
    };
    let replaced = match (next, in_class) {
        ('d', true) => "0-9",
        ('w', true) => "0-9A-Za-z_",
        ('s', true) => r"\t\n\x0c\r ",
        ('d', false) => "[0-9]",
        ('w', false) => "[0-9A-Za-z_]",
        ('s', false) => r"[\t\n\x0c\r ]",
        ('D', _) => "[^0-9]",
        ('W', _) => "[^0-9A-Za-z_]",
        ('S', _) => r"[^\t\n\x0c\r ]",
        ('b', false) => r"(?-u:\b)",
        ('C', false) => "(?s:.)",
        ('Q', false) => {
            let quoted = &text[2..];
            let (literal, end) = quoted
                .find("\\E")
                .map_or((quoted, text.len()), |at| (&quoted[..at], at + 4));
            out.push_str(&regex::escape(literal));
            return end;
        }
        _ => {
            out.push('\\');
            out.push(next);
            return 1 + next.len_utf8();
        }
    };
    out.push_str(replaced);
    1 + next.len_utf8()
}

/// Translates a bracket class; returns its length.
fn class(text: &str, out: &mut String) -> usize {
    out.push('[');
    let mut at = 1;
    if text[at..].starts_with('^') {
        out.push('^');
        at += 1;
    }
    let mut first = true;
    while let Some(c) = text[at..].chars().next() {
        match c {
            ']' if !first => {
                out.push(']');
                return at + 1;
            }
            '[' if text[at..].starts_with("[:") && text[at..].contains(":]") => {
                let end = at + text[at..].find(":]").unwrap_or(0) + 2;
                out.push_str(&text[at..end]);
                at = end;
            }
            '\\' => at += escape(&text[at..], true, out),
            // Characters with a meaning within brackets only in the engine.
            '[' | ']' | '&' | '~' => {
                out.push('\\');
                out.push(c);
                at += 1;
            }
            _ => {
                out.push(c);
                at += c.len_utf8();
            }
        }
        first = false;
    }
    at
}

fn problem(pattern: &str, error: &regex::Error) -> String {
    let text = error.to_string();
    let words = text
        .lines()
        .last()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .to_owned();
    let with = |what: &str, part: &str| format!("error parsing regexp: {what}: `{part}`");
    if words.contains("unclosed group") {
        return with("missing closing )", pattern);
    }
    if words.contains("unopened group") {
        return with("unexpected )", pattern);
    }
    if words.contains("unclosed character class") {
        let from = pattern.rfind('[').unwrap_or(0);
        return with("missing closing ]", &pattern[from..]);
    }
    if words.contains("repetition operator missing expression") {
        let at = pattern.find(['*', '+', '?', '{']).unwrap_or(0);
        return with("missing argument to repetition operator", &pattern[at..=at]);
    }
    if words.contains("look-around") {
        let at = pattern.find("(?").unwrap_or(0);
        let end = (at + 3).min(pattern.len());
        return with("invalid or unsupported Perl syntax", &pattern[at..end]);
    }
    format!("error parsing regexp: {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, fits: &[&str], not: &[&str]) {
        let regex = compile(pattern).unwrap();
        for text in fits {
            assert!(regex.is_match(text), "{pattern} {text}");
        }
        for text in not {
            assert!(!regex.is_match(text), "{pattern} {text}");
        }
    }

    #[test]
    fn classes_are_about_ascii() {
        check(r"^\d+$", &["1"], &["١", "x"]);
        check(r"^[\w.-]+$", &["a_B.9-"], &["é", " "]);
        check(r"^\W$", &["é", " "], &["a"]);
        check(r"^[^\s]+$", &["a"], &["a b"]);
    }

    #[test]
    fn brackets_do_not_nest() {
        check(r"^[a[b]+$", &["a[b"], &["]"]);
        check(r"^[]a]+$", &["]a"], &["b"]);
        check(r"^[a&&b]+$", &["a&b"], &["c"]);
        check(r"^[[:alpha:]]+$", &["a"], &["1"]);
        check(r"^\Qa.b\E$", &["a.b"], &["axb"]);
    }

    #[test]
    fn what_cannot_be_a_pattern_is_named() {
        let check = |pattern: &str, want: &str| assert_eq!(compile(pattern).unwrap_err(), want);
        check("(a", "error parsing regexp: missing closing ): `(a`");
        check("a)", "error parsing regexp: unexpected ): `a)`");
        check("a[b", "error parsing regexp: missing closing ]: `[b`");
        check(
            "*",
            "error parsing regexp: missing argument to repetition operator: `*`",
        );
        check(
            "(?!a)",
            "error parsing regexp: invalid or unsupported Perl syntax: `(?!`",
        );
    }
}
