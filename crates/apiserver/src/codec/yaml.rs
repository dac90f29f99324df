//! Writing YAML as kube-apiserver does: block style, keys in order, lists not indented below their key.

use serde_json::Value;

/// Writes a value.
pub(crate) fn write(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => object(map, 0, &mut out),
        Value::Array(items) if !items.is_empty() => array(items, 0, &mut out),
        other => {
            scalar(other, 0, &mut out);
            out.push('\n');
        }
    }
    out
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', depth));
}

fn object(map: &serde_json::Map<String, Value>, depth: usize, out: &mut String) {
    let mut keys: Vec<&String> = map.keys().collect();
    keys.sort();
    for (i, key) in keys.into_iter().enumerate() {
        if i > 0 {
            indent(depth, out);
        }
        if key.contains('\n') {
            out.push_str(&Value::from(key.as_str()).to_string());
        } else {
            text(key, depth, out);
        }
        out.push(':');
        match &map[key] {
            Value::Object(inner) if !inner.is_empty() => {
                out.push('\n');
                indent(depth + 2, out);
                object(inner, depth + 2, out);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                indent(depth, out);
                array(items, depth, out);
            }
            other => {
                out.push(' ');
                scalar(other, depth + 2, out);
                out.push('\n');
            }
        }
    }
}

fn array(items: &[Value], depth: usize, out: &mut String) {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            indent(depth, out);
        }
        out.push_str("- ");
        match item {
            Value::Object(inner) if !inner.is_empty() => object(inner, depth + 2, out),
            Value::Array(inner) if !inner.is_empty() => array(inner, depth + 2, out),
            other => {
                scalar(other, depth + 2, out);
                out.push('\n');
            }
        }
    }
}

fn scalar(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::String(words) => text(words, depth, out),
        // What is empty here looks the same in JSON.
        other => out.push_str(&other.to_string()),
    }
}

/// Whether a text would be read as something else, or not at all, without quotes.
fn needs_quotes(words: &str) -> bool {
    let first = words.chars().next().unwrap_or(' ');
    let looks_other = matches!(
        words.to_ascii_lowercase().as_str(),
        "" | "~"
            | "null"
            | "true"
            | "false"
            | "yes"
            | "no"
            | "on"
            | "off"
            | "y"
            | "n"
            | "="
            | "<<"
            | ".nan"
            | ".inf"
            | "-.inf"
            | "+.inf"
    );
    looks_other
        || words.replace('_', "").parse::<f64>().is_ok()
        || looks_like_number(words)
        || looks_like_time(words)
        || "-?:,[]{}#&*!|>'\"%@` ".contains(first) && !is_plain_start(words)
        || words.ends_with([' ', ':'])
        || words.contains(": ")
        || words.contains(" #")
}

fn is_plain_start(words: &str) -> bool {
    let mut chars = words.chars();
    matches!(chars.next(), Some('-' | '?' | ':')) && chars.next().is_some_and(|c| c != ' ')
}

fn looks_like_number(words: &str) -> bool {
    let digits = words.trim_start_matches(['+', '-']);
    ["0x", "0o", "0b"].iter().any(|p| {
        digits
            .strip_prefix(p)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_hexdigit() || b == b'_'))
    })
}

/// Dates are a type of their own.
fn looks_like_time(words: &str) -> bool {
    let bytes = words.as_bytes();
    let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
    (0..4).all(digit) && bytes.get(4) == Some(&b'-') && digit(5)
}

fn text(words: &str, depth: usize, out: &mut String) {
    let printable = words.chars().all(|c| c == '\n' || c == '\t' || !c.is_control());
    if !printable || (words.contains('\t') && !words.contains('\n')) {
        out.push_str(&Value::from(words).to_string());
    } else if words.contains('\n') {
        block(words, depth, out);
    } else if needs_quotes(words) {
        let ambiguous = matches!(words.chars().next(), Some(c) if c.is_ascii_alphanumeric() || "+-.~=<".contains(c))
            || words.is_empty();
        if ambiguous && !words.contains(": ") && !words.contains(" #") && !words.ends_with(':') {
            out.push_str(&Value::from(words).to_string());
        } else {
            out.push('\'');
            out.push_str(&words.replace('\'', "''"));
            out.push('\'');
        }
    } else {
        out.push_str(words);
    }
}

fn block(words: &str, depth: usize, out: &mut String) {
    out.push('|');
    if words.starts_with([' ', '\n']) {
        out.push('2');
    }
    let body = if let Some(body) = words.strip_suffix('\n') {
        if body.ends_with('\n') || body.is_empty() {
            out.push('+');
        }
        body
    } else {
        out.push('-');
        words
    };
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            indent(depth, out);
            out.push_str(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn writes_blocks_in_order() {
        let value = json!({"b": [{"x": 1, "a": []}, "two"], "a": {"n": null, "t": "true", "w": "v1", "e": {}}});
        assert_eq!(
            write(&value),
            "a:\n  e: {}\n  \"n\": null\n  t: \"true\"\n  w: v1\nb:\n- a: []\n  x: 1\n- two\n"
        );
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        for words in [
            "",
            "a b",
            "-",
            "- a",
            "-a",
            "1",
            "1e3",
            "0x1f",
            "2026-01-01T00:00:00Z",
            "a: b",
            "a #b",
            "#",
            "a\nb",
            "a\nb\n",
            "a\n\n",
            "\n a",
            " lead",
            "tail ",
            "it's",
            "\"q\"",
            "{a}",
            "*x",
            "null",
            "y",
            "\u{7}",
            "tab\tbed",
            "%",
            "@a",
            "a:",
            "~",
            "multi\n  deep\n",
        ] {
            let value = json!({ "k": [words], words: words });
            let back: Value = serde_saphyr::from_str(&write(&value)).unwrap_or_else(|e| panic!("{words:?}: {e}"));
            assert_eq!(back, value, "{}", write(&value));
        }
    }
}
