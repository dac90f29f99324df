//! `path=value`: sets a field of an object.

use serde_json::{Map, Value};

/// Where a step of a path leads.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
    Item(String, String),
}

/// Sets a field. Items of lists are chosen by position, `[0]`, or by a field, `[name=x]`. The value is YAML.
pub(super) fn set(object: &mut Value, text: &str) -> Result<(), String> {
    let split = split(text).ok_or("it should be path=value")?;
    let (path, value) = (&text[..split], &text[split + 1..]);
    let value = windlass_gocompat::yaml::read_plain(value).map_err(|error| {
        let why = error.to_string();
        format!("the value is no YAML: {}", why.lines().next().unwrap_or_default())
    })?;
    let steps = steps(path)?;
    let mut at = object;
    for step in &steps {
        at = go(at, step)?;
    }
    *at = value;
    Ok(())
}

/// The `=` between path and value: the first one outside of brackets.
fn split(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.char_indices().find_map(|(index, c)| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '=' if depth == 0 => return Some(index),
            _ => {}
        }
        None
    })
}

fn steps(path: &str) -> Result<Vec<Step>, String> {
    let mut out = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (inside, after) = inner.split_once(']').ok_or("a [ has no ]")?;
            out.push(match (inside.parse::<usize>(), inside.split_once('=')) {
                (Ok(index), _) => Step::Index(index),
                (Err(_), Some((key, value))) => Step::Item(key.to_owned(), value.to_owned()),
                (Err(_), None) => Step::Field(inside.to_owned()),
            });
            rest = after.strip_prefix('.').unwrap_or(after);
            continue;
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (field, after) = rest.split_at(end);
        if field.is_empty() {
            return Err("the path has an empty part".to_owned());
        }
        out.push(Step::Field(field.to_owned()));
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    match out.first() {
        Some(Step::Field(first)) if first == "spec" => Ok(out),
        Some(_) => Err("the path should begin with spec".to_owned()),
        None => Err("the path is empty".to_owned()),
    }
}

fn go<'a>(at: &'a mut Value, step: &Step) -> Result<&'a mut Value, String> {
    match step {
        Step::Field(name) => {
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
            let fields = at
                .as_object_mut()
                .ok_or_else(|| format!("{name} would be a field of no object"))?;
            Ok(fields.entry(name.clone()).or_insert(Value::Null))
        }
        Step::Index(index) => {
            let items = at
                .as_array_mut()
                .ok_or_else(|| format!("[{index}] would be an item of no list"))?;
            let length = items.len();
            items
                .get_mut(*index)
                .ok_or_else(|| format!("there is no item [{index}]: the list has {length}"))
        }
        Step::Item(key, value) => {
            let items = at
                .as_array_mut()
                .ok_or_else(|| format!("[{key}={value}] would be an item of no list"))?;
            let known: Vec<String> = items
                .iter()
                .filter_map(|item| Some(item[key].as_str()?.to_owned()))
                .collect();
            let found = items.iter_mut().find(|item| item[key] == value.as_str());
            found.ok_or_else(|| format!("there is no item with {key} {value}: there are {}", known.join(", ")))
        }
    }
}

/// The merge patch that makes one value of another.
pub(super) fn patch_between(before: &Value, after: &Value) -> Value {
    let (Some(have), Some(want)) = (before.as_object(), after.as_object()) else {
        return after.clone();
    };
    let mut patch = Map::new();
    for (key, value) in want {
        match have.get(key) {
            Some(old) if old == value => {}
            Some(old) => {
                patch.insert(key.clone(), patch_between(old, value));
            }
            None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    for key in have.keys().filter(|key| !want.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    patch.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_set_by_path() {
        let before = json!({"spec": {"variables": [{"name": "a", "value": 1}], "x": {"y": 1, "z": 1}}});
        let mut object = before.clone();
        set(&mut object, "spec.variables[name=a].value={b: 2}").unwrap();
        set(&mut object, "spec.x.y=v=1").unwrap();
        set(&mut object, "spec.new[a.b/c]=true").unwrap();
        assert_eq!(
            object,
            json!({"spec": {"variables": [{"name": "a", "value": {"b": 2}}], "x": {"y": "v=1", "z": 1}, "new": {"a.b/c": true}}})
        );
        assert_eq!(
            patch_between(&before, &object),
            json!({"spec": {"variables": [{"name": "a", "value": {"b": 2}}], "x": {"y": "v=1"}, "new": {"a.b/c": true}}})
        );
    }

    #[test]
    fn wrong_paths_say_what_is_wrong() {
        let check = |text: &str, part: &str| {
            let why = set(&mut json!({"spec": {"l": [{"name": "a"}], "t": "x"}}), text).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        };
        check("spec.l", "path=value");
        check("spec.l[name=b].x=1", "there are a");
        check("spec.l[3]=1", "the list has 1");
        check("spec.t.x=1", "no object");
        check("spec..x=1", "empty part");
        check("metadata.name=1", "begin with spec");
        check("=1", "empty");
        check("spec.x={a", "no YAML");
    }
}
