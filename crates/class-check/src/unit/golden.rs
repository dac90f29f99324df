//! Golden files: all generated objects of a case, compared as a whole.

use serde_json::Value;
use windlass_gocompat::yaml;
use windlass_topology::model::{name_of, text};

use super::compare::{How, differences};
use super::shown;
use crate::source::options;

/// What stands for the end of a generated name.
const SUFFIX: &str = "xxxxx";
/// The characters of such an end.
const ALPHABET: &str = "bcdfghjklmnpqrstvwxz2456789";

/// The objects with the ends of their names replaced: those change with what a template contains.
pub(super) fn settled(objects: &[Value]) -> Vec<Value> {
    let names: Vec<(String, String)> = objects
        .iter()
        .map(|object| text(object, "/metadata/name"))
        .filter_map(|name| Some((name.to_owned(), format!("{}-{SUFFIX}", generated(name)?))))
        .collect();
    let settle = |object: &Value| {
        let mut object = object.clone();
        replace(&mut object, &names);
        object
    };
    objects.iter().map(settle).collect()
}

/// The beginning of a generated name, before its last characters.
fn generated(name: &str) -> Option<&str> {
    let (before, end) = name.rsplit_once('-')?;
    (end.len() == SUFFIX.len() && end.chars().all(|c| ALPHABET.contains(c))).then_some(before)
}

fn replace(value: &mut Value, names: &[(String, String)]) {
    match value {
        Value::String(text) => {
            if let Some((_, settled)) = names.iter().find(|(name, _)| name == text) {
                text.clone_from(settled);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, names)),
        Value::Object(map) => map.values_mut().for_each(|value| replace(value, names)),
        _ => {}
    }
}

/// The text of a golden file.
pub(super) fn text_of(objects: &[Value]) -> String {
    let documents: Vec<String> = objects.iter().map(shown).collect();
    documents.join("---\n")
}

/// The differences between a golden file and what is generated.
pub(super) fn compare(golden: &str, objects: &[Value]) -> Result<Vec<String>, String> {
    let documents = yaml::documents(golden).into_iter();
    let expected = documents.map(|document| {
        let problem = |error| {
            let problem = yaml::problem(&error);
            format!("line {}: {}", document.line + problem.line - 1, problem.text)
        };
        let mut value = yaml::read(document.text, options()).map_err(problem)?;
        windlass_schema::whole_numbers(&mut value);
        Ok(value)
    });
    let expected: Vec<Value> = expected.collect::<Result<_, String>>()?;
    let mut left: Vec<&Value> = objects.iter().collect();
    let mut out = Vec::new();
    for wanted in &expected {
        let name = name_of(wanted);
        // Of several with one name, the one that is equal, or the first.
        let same = left.iter().position(|object| *object == wanted);
        let named = || left.iter().position(|object| name_of(object) == name);
        let Some(index) = same.or_else(named) else {
            out.push(format!("{name}: expected, and not generated"));
            continue;
        };
        let got = left.remove(index);
        let found = differences(wanted, got, How::Exact, "").into_iter();
        out.extend(found.map(|difference| format!("{name}: {difference}")));
    }
    out.extend(
        left.iter()
            .map(|object| format!("{}: generated, and not expected", name_of(object))),
    );
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ends_of_names_are_settled_where_they_are_referred_to() {
        let object =
            |name: &str, reference: &str| json!({"kind": "A", "metadata": {"name": name}, "spec": {"ref": reference}});
        let settled = settled(&[
            object("a-bcdfg", "b-md-24567"),
            object("b-md-24567", "c-bcdfg"),
            object("plain", "x"),
        ]);
        let expect = [
            object("a-xxxxx", "b-md-xxxxx"),
            object("b-md-xxxxx", "c-bcdfg"),
            object("plain", "x"),
        ];
        assert_eq!(settled, expect);
        assert_eq!(compare(&text_of(&settled), &settled), Ok(Vec::new()));
    }

    #[test]
    fn missing_and_additional_objects_are_named() {
        let object = |name: &str, n: i64| json!({"kind": "A", "metadata": {"name": name}, "spec": {"n": n}});
        let golden = text_of(&[object("a", 1), object("b", 1)]);
        let found = compare(&golden, &[object("a", 2), object("c", 1)]).unwrap();
        assert_eq!(
            found,
            [
                "A a: spec.n: expected 1, got 2",
                "A b: expected, and not generated",
                "A c: generated, and not expected"
            ]
        );
        assert!(compare("a: [", &[]).unwrap_err().starts_with("line 1"));
    }
}
