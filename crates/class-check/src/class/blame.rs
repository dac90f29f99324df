//! Which operation of a patch, or which template, a field of a generated object comes from.

use serde_json::Value;
use windlass_topology::keys::{CLONED_FROM_GROUP_KIND, CLONED_FROM_NAME};
use windlass_topology::model::{ClassSpec, text};

use super::usage::operations;
use crate::kinds::split;
use crate::library::{Entry, Library};

/// The field of the operation that has written a part of a generated object last, as far as paths tell.
pub(super) fn operation(spec: &ClassSpec, object: &Value, field: &str) -> Option<String> {
    let kind = text(object, "/kind");
    let (group, _) = split(text(object, "/apiVersion"));
    let of_template = if kind.ends_with("Template") {
        kind.to_owned()
    } else {
        format!("{kind}Template")
    };
    let wanted = in_template(kind, field);
    let mut best: Option<(usize, String)> = None;
    for (index, patch) in spec.patches.iter().enumerate() {
        let selects = |definition: usize| {
            let selector = patch.definitions.get(definition).map(|definition| &definition.selector);
            selector.is_some_and(|selector| selector.kind == of_template && split(&selector.api_version).0 == group)
        };
        let mut place = 0;
        let mut last = None;
        for (at, operation) in operations(index, patch) {
            let definition = number(&at, "definitions[");
            if last != definition {
                (place, last) = (definition.unwrap_or_default(), definition);
            }
            let length = common(&wanted, &operation.path).filter(|_| selects(place));
            if let Some(length) = length
                && best.as_ref().is_none_or(|(longest, _)| length >= *longest)
            {
                best = Some((length, at));
            }
        }
    }
    best.map(|(_, at)| at)
}

/// The first number in brackets after a word in a path.
pub(super) fn number(path: &str, word: &str) -> Option<usize> {
    path.split_once(word)?.1.split(']').next()?.parse().ok()
}

/// The path of a generated object's field in its template, in parts.
fn in_template(kind: &str, field: &str) -> Vec<String> {
    let mut parts: Vec<String> = field
        .split(['.', '[', ']'])
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect();
    if !kind.ends_with("Template") {
        parts.splice(0..0, ["spec".to_owned(), "template".to_owned()]);
    }
    parts
}

/// How many parts the path of an operation has in common with a field, if one is above the other.
fn common(field: &[String], path: &str) -> Option<usize> {
    let parts: Vec<String> = path
        .split('/')
        .skip(1)
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
        .collect();
    let same =
        |(have, want): (&String, &String)| have == want || want == "-" || (want == "0" && have.parse::<u32>().is_ok());
    field
        .iter()
        .zip(&parts)
        .all(same)
        .then_some(field.len().min(parts.len()))
}

/// The template that an object was made from, and the path of a field in it.
pub(super) fn template<'a>(library: &'a Library, object: &Value, field: &str) -> Option<(&'a Entry, String)> {
    let annotations = &object["metadata"]["annotations"];
    let name = annotations[CLONED_FROM_NAME].as_str()?;
    let (kind, group) = annotations[CLONED_FROM_GROUP_KIND].as_str()?.split_once('.')?;
    let entry = library.entries.iter().find(|entry| {
        entry.object.group() == group
            && text(&entry.stored, "/kind") == kind
            && text(&entry.stored, "/metadata/name") == name
    })?;
    let field = if text(object, "/kind").ends_with("Template") {
        field.to_owned()
    } else {
        format!("spec.template.{field}")
    };
    Some((entry, field))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_operation_on_a_field_is_found() {
        let operation_at = |path: &str| json!({"op": "add", "path": path, "value": 1});
        let spec: ClassSpec = serde_json::from_value(json!({"patches": [
            {"name": "a", "definitions": [
                {"selector": {"apiVersion": "g/v1", "kind": "ATemplate"}, "jsonPatches": [
                    operation_at("/spec/template/spec/list/-"), operation_at("/spec/template/spec/other"),
                ]},
                {"selector": {"apiVersion": "g/v1", "kind": "BTemplate"}, "jsonPatches": [operation_at("/spec/template/spec/list")]},
            ]},
        ]}))
        .unwrap();
        let check = |kind: &str, field: &str, expect: Option<&str>| {
            let object = json!({"apiVersion": "g/v2", "kind": kind});
            let at = operation(&spec, &object, field);
            let expect = expect.map(|rest| format!("spec.patches[0].{rest}"));
            assert_eq!(at, expect, "{kind} {field}");
        };
        check("A", "spec.list[3].name", Some("definitions[0].jsonPatches[0]"));
        check("A", "spec.other", Some("definitions[0].jsonPatches[1]"));
        check("A", "spec.none", None);
        check(
            "BTemplate",
            "spec.template.spec.list[0]",
            Some("definitions[1].jsonPatches[0]"),
        );
        check("C", "spec.list", None);
    }
}
