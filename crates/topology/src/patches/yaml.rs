//! YAML that templates of patches give, as Go's Kubernetes tools read it: `0644` is octal, `yes` is true, an empty text is null.

use serde_json::{Map, Value};
use windlass_gocompat::yaml;

/// The longest text that is read without the parser, in bytes.
const LONGEST_PLAIN: usize = 1_000;

/// Reads a text. Most are conditions, single values, or a few fields with values: the parser, with its buffers, costs many times what they have.
pub(super) fn read(text: &str) -> Result<Value, String> {
    match plain(text) {
        Some(value) => Ok(value),
        None => parsed(text),
    }
}

fn parsed(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        strict_booleans: false,
    };
    yaml::read(text, yaml::bounded(options)).map_err(|e| e.to_string())
}

/// The value of a text without nesting, comments or anything that has two meanings: a scalar, or scalars as a list or as the fields of a mapping, one
/// a line. `None` for all others, wrong ones among them. Where there is a value, the parser gives the same.
fn plain(text: &str) -> Option<Value> {
    if text.len() > LONGEST_PLAIN {
        return None;
    }
    let mut lines = text.split('\n').filter(|line| !line.is_empty());
    let Some(first) = lines.clone().next() else {
        return Some(Value::Null);
    };
    if first.starts_with("- ") {
        let items = lines.map(|line| scalar(line.strip_prefix("- ")?));
        return Some(Value::Array(items.collect::<Option<_>>()?));
    }
    if field(first).is_none() {
        let only = lines.next().and_then(scalar);
        return only.filter(|_| lines.next().is_none());
    }
    let mut fields = Map::new();
    for line in lines {
        let (name, value) = field(line)?;
        if fields.insert(name.to_owned(), scalar(value)?).is_some() {
            return None;
        }
    }
    Some(fields.into())
}

/// The name of a field and the text of its value.
fn field(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(": ")?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.bytes().all(is_name);
    (is_plain && !is_reserved(name)).then_some((name, value))
}

fn scalar(text: &str) -> Option<Value> {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote) {
            let inner = inner.strip_suffix(quote)?;
            let is_itself = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\'' | b'\\');
            return inner.bytes().all(is_itself).then(|| inner.into());
        }
    }
    match text {
        "true" => return Some(true.into()),
        "false" => return Some(false.into()),
        _ => {}
    }
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits {
        let has_one_form = text == "0" || !text.starts_with('0');
        return text.parse::<u64>().ok().filter(|_| has_one_form).map(Value::from);
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _-./:=".contains(&byte);
    let begins = text.starts_with(|c: char| c == '/' || c.is_ascii_alphabetic())
        // An address range is no number, though it begins with a digit.
        || (text.starts_with(|c: char| c.is_ascii_digit()) && text.contains('/'));
    let has_ends = text.ends_with([' ', ':']) || text.contains(": ");
    (begins && !has_ends && text.bytes().all(is_plain) && !is_reserved(text)).then(|| text.into())
}

/// Whether a text may be a truth value, null or a number, though it begins with a letter.
fn is_reserved(text: &str) -> bool {
    const WORDS: [&str; 12] = [
        "y", "yes", "true", "on", "n", "no", "false", "off", "null", "nan", "inf", "infinity",
    ];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn simple_texts_need_no_parser() {
        for (text, expect) in [
            ("", json!(null)),
            ("\n\n", json!(null)),
            ("true\n", json!(true)),
            ("registry.k8s.io/pause:3.10", json!("registry.k8s.io/pause:3.10")),
            ("v1.35.0", json!("v1.35.0")),
            ("\"1.35\"\n", json!("1.35")),
            ("3", json!(3)),
            ("name: a\nvalue: b=c\n", json!({"name": "a", "value": "b=c"})),
            (
                "\npath: /etc/a b\n\nmode: '0644'\n",
                json!({"path": "/etc/a b", "mode": "0644"}),
            ),
            (
                "- 10.0.0.0/16\n- \"x: #\"\n- false",
                json!(["10.0.0.0/16", "x: #", false]),
            ),
        ] {
            assert_eq!(plain(text), Some(expect.clone()), "{text:?}");
            assert_eq!(parsed(text), Ok(expect), "{text:?}");
        }
    }

    #[test]
    fn texts_with_more_meanings_are_parsed() {
        for (text, expect) in [
            ("0644", json!(0o644)),
            ("yes", json!(true)),
            ("a: No", json!({"a": false})),
            ("1e3", json!(1000.0)),
            ("~", json!(null)),
            ("a: Null", json!({"a": null})),
            ("a: b # c", json!({"a": "b"})),
            ("a:\n  b: c", json!({"a": {"b": "c"}})),
            ("- a: b", json!([{"a": "b"}])),
            ("a\nb", json!("a b")),
            ("\"a\\n\"", json!("a\n")),
            ("'it''s'", json!("it's")),
            ("{a: b}", json!({"a": "b"})),
        ] {
            assert_eq!(plain(text), None, "{text:?}");
            assert_eq!(read(text), Ok(expect), "{text:?}");
        }
        for wrong in ["a: b\na: c", "a: b\nc", "- a\nb: c", "a: b: c", "\"a"] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    /// Texts close to those that are read without the parser.
    fn documents() -> impl Strategy<Value = String> {
        let word = prop_oneof![
            4 => "[a-zA-Z/][a-zA-Z0-9_./:=-]{0,6}",
            2 => "[0-9]{1,3}[0-9./:eExo_m-]{0,4}",
            2 => "(true|True|false|yes|No|on|off|y|N|null|Null|~|nan|inf|Infinity|0x1f|0o7|0b1|017|08|1_0|1:30|\\.5|\\.nan|<<|---|\\.\\.\\.)",
            1 => "[\"'][ -~]{0,5}[\"']",
            1 => "[ -~\t]{0,6}",
            1 => "\\PC{0,3}",
        ];
        let words = prop_oneof![
            6 => word.clone(),
            1 => (word.clone(), word.clone()).prop_map(|(a, b)| format!("{a} {b}")),
        ];
        let line = prop_oneof![
            4 => (word, words.clone()).prop_map(|(a, b)| format!("{a}: {b}")),
            2 => words.clone().prop_map(|a| format!("- {a}")),
            3 => words,
            1 => "[ \t\r]{0,2}",
        ];
        prop::collection::vec(line, 0..4).prop_map(|lines| lines.join("\n"))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]
        #[test]
        fn what_needs_no_parser_is_what_it_gives(text in documents()) {
            if let Some(value) = plain(&text) {
                prop_assert_eq!(parsed(&text), Ok(value));
            }
        }
    }
}
