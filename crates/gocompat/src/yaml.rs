//! Reading YAML, and YAML as `sigs.k8s.io/yaml` prints it: sorted keys, lists not indented, quotes only where YAML 1.1 needs them.
//!
//! kube-apiserver and kubeadm print this form, people compare it, and cloud-init reads YAML 1.1: a general serializer for YAML 1.2
//! would leave `yes` and `0644` bare.

mod documents;

use std::fmt::Write as _;

use serde_json::{Map, Value};
use serde_saphyr::{Error, Options};

pub use documents::{Document, Problem, documents, problem};

/// Reads one document. All crates read YAML here, as each generic use of the parser compiles it again.
pub fn read(text: &str, options: Options) -> Result<Value, Error> {
    serde_saphyr::from_str_with_options(text, options)
}

/// Reads one document of a known shape: a text is as it is written, also where it looks like a number.
pub fn read_as<T: serde::de::DeserializeOwned>(text: &str, options: Options) -> Result<T, Error> {
    serde_saphyr::from_str_with_options(text, options)
}

/// Limits what aliases can make of a document from an unknown author: reading takes no more time than its length explains.
pub fn bounded(mut options: Options) -> Options {
    options.budget = serde_saphyr::budget! {
        max_anchors: 256,
        max_aliases: 1_024,
        max_recorded_anchor_events: 20_000,
        max_merge_keys: 256,
        max_documents: 16,
    };
    options.alias_limits = serde_saphyr::alias_limits! {
        max_total_replayed_events: 20_000,
        max_replay_stack_depth: 16,
    };
    options
}

/// A file with manifests.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name in messages.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// Manifests of users as `kubectl` reads them: `0644` is octal, `yes` is true, the same key twice is an error. A document has at most so many
/// levels. Snippets are left out of errors, because they may have secrets.
pub fn manifest(levels: usize) -> Options {
    let mut options = bounded(serde_saphyr::options! {
        legacy_octal_numbers: true,
        strict_booleans: false,
        with_snippet: false,
    });
    if let Some(budget) = &mut options.budget {
        budget.max_depth = levels;
    }
    options
}

/// Reads one document as YAML 1.2: `yes` is a text.
pub fn read_plain(text: &str) -> Result<Value, Error> {
    read(text, Options::default())
}

/// A document, ending in a newline.
pub fn document(value: &Value) -> String {
    let mut out = Writer::new(usize::MAX);
    out.value(value);
    out.text
}

/// Writes a document of a limited size, part by part: a large one need not be in memory as a value.
#[derive(Debug)]
pub struct Writer {
    text: String,
    most: usize,
    is_over: bool,
}

impl Writer {
    /// A document of `most` bytes at most.
    pub fn new(most: usize) -> Self {
        Self {
            text: String::new(),
            most,
            is_over: false,
        }
    }

    /// The document; `None` if it would be larger.
    pub fn finish(self) -> Option<String> {
        (!self.is_over).then_some(self.text)
    }

    /// Whether the document would be larger than it may be. What is written from then on is lost.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Writes the whole document.
    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Object(map) if !map.is_empty() => mapping(self, map, 0, false),
            Value::Array(items) if !items.is_empty() => sequence(self, items, 0, false),
            other => {
                leaf(self, other, 0);
                self.push("\n");
            }
        }
    }

    /// Writes one field of a mapping. The caller sorts the fields.
    pub fn field(&mut self, key: &str, value: &Value) {
        field(self, key, value, 0);
    }

    /// Begins a field whose value is a list with items, which follow one by one.
    pub fn list(&mut self, key: &str) {
        name(self, key, 0);
        self.push("\n");
    }

    /// Writes the next item of the list.
    pub fn item(&mut self, value: &Value) {
        item(self, value, 0);
    }

    /// Appends a text. Once the document is too large, nothing is.
    fn push(&mut self, text: &str) {
        self.is_over = self.is_over || text.len() > self.most - self.text.len();
        if !self.is_over {
            self.text.push_str(text);
        }
    }

    fn indent(&mut self, depth: usize) {
        for _ in 0..depth {
            self.push("  ");
        }
    }
}

fn mapping(out: &mut Writer, map: &Map<String, Value>, depth: usize, inline_first: bool) {
    let mut keys: Vec<_> = map.iter().collect();
    keys.sort_by_key(|(key, _)| key.as_str());
    for (index, (key, value)) in keys.into_iter().enumerate() {
        if out.is_over {
            return;
        }
        if index > 0 || !inline_first {
            out.indent(depth);
        }
        field(out, key, value, depth);
    }
}

fn name(out: &mut Writer, key: &str, depth: usize) {
    // A key stands on one line.
    if key.contains('\n') {
        out.push(&double_quoted(key));
    } else {
        out.push(&scalar(key, depth));
    }
    out.push(":");
}

fn field(out: &mut Writer, key: &str, value: &Value, depth: usize) {
    name(out, key, depth);
    match value {
        Value::Object(inner) if !inner.is_empty() => {
            out.push("\n");
            mapping(out, inner, depth + 1, false);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push("\n");
            sequence(out, items, depth, false);
        }
        other => {
            out.push(" ");
            leaf(out, other, depth + 1);
            out.push("\n");
        }
    }
}

fn sequence(out: &mut Writer, items: &[Value], depth: usize, inline_first: bool) {
    for (index, value) in items.iter().enumerate() {
        if out.is_over {
            return;
        }
        if index > 0 || !inline_first {
            out.indent(depth);
        }
        item(out, value, depth);
    }
}

fn item(out: &mut Writer, value: &Value, depth: usize) {
    out.push("- ");
    match value {
        Value::Object(inner) if !inner.is_empty() => mapping(out, inner, depth + 1, true),
        Value::Array(inner) if !inner.is_empty() => sequence(out, inner, depth + 1, true),
        other => {
            leaf(out, other, depth + 1);
            out.push("\n");
        }
    }
}

fn leaf(out: &mut Writer, value: &Value, depth: usize) {
    match value {
        Value::Null => out.push("null"),
        Value::Bool(flag) => out.push(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push(&number.to_string()),
        Value::String(text) if indentation(text, depth) > out.most => out.is_over = true,
        Value::String(text) => out.push(&scalar(text, depth)),
        Value::Array(_) => out.push("[]"),
        Value::Object(_) => out.push("{}"),
    }
}

/// The bytes by which a text grows that stands on several lines.
fn indentation(text: &str, depth: usize) -> usize {
    if !text.contains('\n') {
        return 0;
    }
    let lines = text.split('\n').filter(|line| !line.is_empty());
    lines.count().saturating_mul(2 * depth)
}

/// A string as a scalar; `depth` is where its lines go if it needs several.
pub fn scalar(text: &str, depth: usize) -> String {
    if text.chars().any(|c| !printable(c)) || text.contains(" \n") {
        return double_quoted(text);
    }
    if text.contains('\n') {
        return literal(text, depth);
    }
    if reads_as_other_type(text) {
        return double_quoted(text);
    }
    if plain_allowed(text) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "''"))
}

fn printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// A string as a scalar in double quotes.
pub fn double_quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                // Writing to a String cannot fail.
                let _ = if code <= 0xff {
                    write!(out, "\\x{code:02X}")
                } else if code <= 0xffff {
                    write!(out, "\\u{code:04X}")
                } else {
                    write!(out, "\\U{code:08X}")
                };
            }
        }
    }
    out.push('"');
    out
}

fn literal(text: &str, depth: usize) -> String {
    let mut out = "|".to_owned();
    if text.starts_with([' ', '\n']) {
        out.push('2');
    }
    let body = if let Some(body) = text.strip_suffix('\n') {
        if body.is_empty() || body.ends_with('\n') {
            out.push('+');
        }
        body
    } else {
        out.push('-');
        text
    };
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            // A block at the top level is indented too.
            for _ in 0..depth.max(1) {
                out.push_str("  ");
            }
            out.push_str(line);
        }
    }
    out
}

/// Whether a bare word would be read as null, a boolean, a number, a time stamp or a merge key by a YAML 1.1 reader.
fn reads_as_other_type(text: &str) -> bool {
    const WORDS: [&str; 10] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "~"];
    if text.is_empty() || text == "<<" {
        return true;
    }
    let lower = text.to_ascii_lowercase();
    let title = text.chars().next().is_some_and(|c| c.is_ascii_uppercase()) && text[1..] == lower[1..];
    let one_case = text == lower || title || text.chars().all(|c| !c.is_ascii_lowercase());
    if one_case && WORDS.contains(&lower.as_str()) {
        return true;
    }
    if matches!(lower.trim_start_matches(['+', '-']), ".inf" | ".nan") {
        return true;
    }
    is_number(text) || is_timestamp(text) || is_sexagesimal(text)
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text).replace('_', "");
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return false;
    }
    let radix = |prefix: &str, radix: u32| {
        digits
            .strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_digit(radix)))
    };
    radix("0x", 16)
        || radix("0X", 16)
        || radix("0b", 2)
        || radix("0B", 2)
        || radix("0o", 8)
        || radix("0O", 8)
        || digits.parse::<f64>().is_ok()
}

/// `190:20:30`, which YAML 1.1 reads in base 60; `127.0.0.1:6443` and `10:6443` are not like that.
fn is_sexagesimal(text: &str) -> bool {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let Some((first, rest)) = body.split_once(':') else {
        return false;
    };
    let (rest, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit() || c == '_');
    first.starts_with(|c: char| c.is_ascii_digit())
        && digits(first)
        && digits(fraction)
        && rest
            .split(':')
            .all(|part| part.len() <= 2 && part.parse::<u8>().is_ok_and(|sixtieth| sixtieth < 60))
}

fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 8
        && bytes[..4].iter().all(u8::is_ascii_digit)
        && bytes[4] == b'-'
        && bytes[5].is_ascii_digit()
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '-' | ':' | '.' | 'T' | 't' | 'Z' | ' ' | '+'))
}

fn plain_allowed(text: &str) -> bool {
    const LEADING: &str = "#,[]{}&*!|>'\"%@`";
    if text.starts_with(' ') || text.ends_with(' ') || text.starts_with("---") || text.starts_with("...") {
        return false;
    }
    let mut previous = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let blank_follows = chars.peek().is_none_or(|next| *next == ' ');
        let indicator = match previous {
            None => LEADING.contains(c) || (matches!(c, '?' | ':' | '-') && blank_follows),
            Some(before) => (c == ':' && blank_follows) || (c == '#' && before == ' '),
        };
        if indicator {
            return false;
        }
        previous = Some(c);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn scalars_are_quoted_only_where_needed() {
        let check = |text: &str, want: &str| assert_eq!(scalar(text, 1), want, "{text:?}");
        check("v1.35.0", "v1.35.0");
        check("unix:///run/c.sock", "unix:///run/c.sock");
        check(
            "nodefs.available<0%,imagefs.available<0%",
            "nodefs.available<0%,imagefs.available<0%",
        );
        check("", "\"\"");
        check("yes", "\"yes\"");
        check("On", "\"On\"");
        check("oN", "oN");
        check("1.35", "\"1.35\"");
        check("0644", "\"0644\"");
        check("0x1F", "\"0x1F\"");
        check("1_000", "\"1_000\"");
        check("12:30:45", "\"12:30:45\"");
        check("127.0.0.1:20000", "127.0.0.1:20000");
        check("10:50", "\"10:50\"");
        check("2026-11-21", "\"2026-11-21\"");
        check("{{ ds.meta_data.hostname }}", "'{{ ds.meta_data.hostname }}'");
        check("a: b", "'a: b'");
        check("it's #1 # x", "'it''s #1 # x'");
        check("ALL=(ALL) NOPASSWD:ALL", "ALL=(ALL) NOPASSWD:ALL");
        check("-v", "-v");
        check("- v", "'- v'");
        check("tab\there", "\"tab\\there\"");
        check("a\nb", "|-\n  a\n  b");
        check("a\nb\n", "|\n  a\n  b");
    }

    #[test]
    fn structures_are_indented_as_go_does() {
        let value = json!({"b": [], "a": {"y": [{"k": 1, "j": null}, [1, "x"]], "x": {}}});
        assert_eq!(
            document(&value),
            "a:\n  x: {}\n  \"y\":\n  - j: null\n    k: 1\n  - - 1\n    - x\nb: []\n"
        );
    }

    #[test]
    fn parts_make_the_same_document_up_to_a_size() {
        let items = json!([{"k": "a\nb", "l": [1]}, [[2], {}], "x"]);
        let whole = document(&json!({"a": {"b": 1}, "items": items}));
        for (most, want) in [(whole.len(), Some(&whole)), (whole.len() - 1, None)] {
            let mut out = Writer::new(most);
            out.field("a", &json!({"b": 1}));
            out.list("items");
            for item in items.as_array().unwrap() {
                out.item(item);
            }
            assert_eq!(out.finish().as_ref(), want);
        }
    }

    /// Each line of a text is indented.
    #[test]
    fn a_text_of_many_lines_does_not_grow_beyond_the_size() {
        let deep = |value: Value| (0..50).fold(value, |value, _| json!({"k": value}));
        let mut out = Writer::new(100_000);
        out.value(&deep("\n".repeat(1_000).into()));
        assert!(out.finish().is_some_and(|text| text.len() < 10_000));
        let mut out = Writer::new(100_000);
        out.value(&deep("a\n".repeat(1_000).into()));
        assert_eq!(out.finish(), None);
    }

    /// Where the two writers that this one replaced did not agree.
    #[test]
    fn details_are_those_of_go() {
        let check = |text: &str, want: &str| assert_eq!(scalar(text, 1), want, "{text:?}");
        // A bare dash is an indicator, not a number.
        check("-", "'-'");
        check("12:30", "\"12:30\"");
        check("=", "=");
        check("a\tb\nc", "\"a\\tb\\nc\"");
        check("a \nb", "\"a \\nb\"");
        check("\u{7}", "\"\\x07\"");
        check("\u{feff}", "\"\\uFEFF\"");
        check("yEs", "yEs");
        check("--- a", "'--- a'");
        assert_eq!(document(&json!({"a\nb": 1})), "\"a\\nb\": 1\n");
    }

    #[test]
    fn scalars_are_read_back() {
        for text in [
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
            let value = json!({ "k": [text], text: text });
            let back: Value = serde_saphyr::from_str(&document(&value)).unwrap_or_else(|e| panic!("{text:?}: {e}"));
            assert_eq!(back, value, "{}", document(&value));
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            "[ -~]{0,12}",
            "[-a-z0-9:#'\"{}&*! \n]{0,8}",
            Just("null".to_owned()),
            Just("0o17".to_owned()),
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            text.prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(value in any_value()) {
            let text = document(&value);
            let read: Value = serde_saphyr::from_str(&text).map_err(|e| TestCaseError::fail(format!("{text}\n{e}")))?;
            prop_assert_eq!(read, value, "{}", text);
        }
    }
}
