use serde_json::json;
use windlass_fake_providers::{Flaw, LookAlike};

use super::*;

const A: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";
const B: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n  namespace: ns\n";

fn names(text: &str) -> Vec<String> {
    let objects = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    objects.iter().map(|object| Identity::of(object).to_string()).collect()
}

#[track_caller]
fn refuse(text: &str, expect: &str) {
    match parse(text) {
        Ok(objects) => panic!("read: {objects:?}\n{text}"),
        Err(error) => assert_eq!(error.to_string(), expect, "{text}"),
    }
}

#[test]
fn all_documents_are_read_in_order() {
    let both = ["ConfigMap a", "ConfigMap ns/b"];
    assert_eq!(names(&format!("{A}---\n{B}")), both);
    assert_eq!(names(&format!("---\n---\n# x\n---\n{A}--- # next\n\n{B}---\n")), both);
    assert_eq!(
        names(
            &format!("\u{feff}{A}---\r\n{B}")
                .replace('\n', "\r\n")
                .replace("\r\r", "\r")
        ),
        both
    );
    assert_eq!(names(&format!("%YAML 1.2\n---\n{A}...\n---\n{B}...\n")), both);
    assert_eq!(names(&format!("{A}data:\n  x: |\n    ---\n    y\n")), ["ConfigMap a"]);
}

#[test]
fn a_list_is_its_items() {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t"}},
    ]});
    assert_eq!(names(&list.to_string()), ["Secret s", "Secret t"]);
}

#[test]
fn values_are_what_go_reads() {
    let check = |yaml: &str, expect: Value| {
        let objects = parse(&format!("{A}data: {yaml}\n")).unwrap();
        assert_eq!(objects[0]["data"], expect, "{yaml}");
    };
    check("0644", json!(420));
    check("0o17", json!(15));
    check("yes", json!(true));
    check("n", json!(false));
    check("Off", json!(false));
    check("\"yes\"", json!("yes"));
    check("1_000", json!(1000));
    check("0x1F", json!(31));
    check("~", json!(null));
    check("2024-01-02", json!("2024-01-02"));
    check("12:30:45", json!("12:30:45"));
    check("1.20", json!(1.2));
    for (yaml, expect) in [
        ("1e3", "1000"),
        ("1.0", "1"),
        ("08", "8"),
        ("-0.0", "0"),
        ("1e300", "1e300"),
        ("[2.0]", "[2]"),
    ] {
        let objects = parse(&format!("{A}data: {yaml}\n")).unwrap();
        assert_eq!(objects[0]["data"].to_string().replace('+', ""), expect, "{yaml}");
    }
    check("{a: 1, a: 2}", json!({"a": 2}));
    check("{<<: {x: 1}, y: 2}", json!({"x": 1, "y": 2}));
}

#[test]
fn files_that_are_not_yaml_are_distinguished() {
    refuse("", "there is no object in it: it is empty or has comments only");
    refuse(
        "# a\n---\n\n# b\n",
        "there is no object in it: it is empty or has comments only",
    );
    let page = "it is a web page, not YAML: the address answers with a page for people, a login or an error";
    refuse("\n <!DOCTYPE HTML>\n<html></html>", page);
    refuse("<html>", page);
    refuse(
        "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>",
        "it is XML, not YAML: the address answers with a page for people, a login or an error",
    );
    refuse(
        "PK\0\u{3}",
        "it is not text: it may be compressed or an archive, which is not unpacked",
    );
}

#[test]
fn tabs_are_named_with_their_line() {
    let words = |line: usize| {
        format!("document 2, line {line}: the line is indented with a tab, which YAML forbids; use blanks")
    };
    refuse(&format!("{A}---\n{}", B.replace("  name: b", "\tname: b")), &words(9));
    refuse(&format!("{A}---\n{}", B.replace("kind", "\tkind")), &words(7));
    // In multi-line texts they are valid.
    assert_eq!(names(&format!("{A}data:\n  x: |\n    a\n    \tb\n")), ["ConfigMap a"]);
}

#[test]
fn a_truncated_text_is_reported() {
    let words = |document: usize, line: usize| {
        format!("document {document}, line {line}: the text ends in the middle of an object; it is not whole")
    };
    refuse(&format!("{A}---\n{A}data:\n  x: \"abc"), &words(2, 11));
    refuse(&format!("{A}---\napiVersion: v1\nkind: Conf"), &words(2, 7));
    refuse(&format!("{A}---\napiVersion: v1\nkind: ConfigMap\nmeta"), &words(2, 8));
    refuse(&format!("{A}data: {{a: b,\n"), &words(1, 5));
}

#[test]
fn other_mistakes_are_reported_with_their_line() {
    refuse(
        &format!("{A}---\n{A}data:\n  a: b: c\n---\n{B}"),
        "document 2, line 11: mapping values are not allowed in this context",
    );
    refuse(
        &format!("{A}---\n# x\n- a\n"),
        "document 2, line 7: it is a list, not an object with apiVersion, kind and metadata",
    );
    refuse(
        "Not Found\n",
        "document 1, line 1: it is a text, not an object with apiVersion, kind and metadata",
    );
    let check = |drop: &str, expect: &str| {
        refuse(
            &format!("{B}---\n{}", A.replace(drop, "")),
            &format!("document 2, line 7: {expect}, which must be a text"),
        );
    };
    check("apiVersion: v1\n", "ConfigMap a has no apiVersion");
    check("kind: ConfigMap\n", "the object \"a\" has no kind");
    check("  name: a\n", "a ConfigMap has no metadata.name");
    refuse(
        &A.replace("name: a", "name: 1"),
        "document 1, line 1: a ConfigMap has no metadata.name, which must be a text",
    );
    // Go reads `n` as false.
    refuse(
        &B.replace("space: ns", "space: n"),
        "document 1, line 1: ConfigMap b has no metadata.namespace, which must be a text",
    );
    refuse(
        "{\"message\": \"Not Found\"}\n",
        "document 1, line 1: an object has no apiVersion, which must be a text",
    );
    refuse(
        &format!("{A}---\n{B}---\n{A}"),
        "line 12: ConfigMap a is there twice, first in line 1",
    );
}

#[test]
fn the_flaws_of_look_alikes_are_found() {
    let check = |flaw: Flaw| {
        let file = LookAlike::infrastructure("rig")
            .without_required_variables()
            .with_flaw(flaw)
            .components();
        let text = crate::envsubst::Template::parse(&file)
            .unwrap()
            .render(|_| None)
            .unwrap();
        parse(&text).unwrap_err()
    };
    assert!(matches!(check(Flaw::Html), ManifestError::Html { what: "a web page" }));
    assert!(matches!(check(Flaw::Tab), ManifestError::Tab { .. }));
    assert!(matches!(check(Flaw::Truncated), ManifestError::Truncated { .. }));
    assert!(matches!(
        check(Flaw::NoKind),
        ManifestError::Missing { field: "kind", .. }
    ));
    assert!(matches!(check(Flaw::TwinDeployments), ManifestError::Twice { .. }));
}

// OP-224
#[test]
fn values_are_not_told() {
    let check = |value: &str| {
        let text = format!("{A}data:\n  a: {value}\nb: c\n---\n{B}");
        let error = parse(&text).unwrap_err().to_string();
        assert!(!error.contains("hush") && !error.contains("12e999"), "{error}");
        assert!(error.starts_with("document 1, line "), "{error}");
    };
    for value in [
        "*hush",
        "%hush",
        "@hush",
        "\"hush",
        "'hush",
        "hush: x",
        "[hush",
        "{hush",
        "hush\nhush",
        "!!int hush",
        "!<hush x",
        "!e!hush x",
        "\"\\hush\"",
        "|hush",
        "12e999",
        "\"hush\" hush",
    ] {
        check(value);
    }
}
