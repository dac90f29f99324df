//! One object, as an API server with our admission would take it: schema, defaults, names, admission.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_admission::{Change, Operation, Rule, Verdict, View};
use windlass_api_older::{ConversionError, OlderVersion};
use windlass_cel::Validator;
use windlass_meta::distance;
use windlass_objects::names::{check_annotations, check_labels};
use windlass_schema::{FieldError, FieldErrors, Node};
use windlass_topology::model::text;

use crate::finding::{Check, Problem};
use crate::kinds::{Kind, Kinds, split};
use crate::library::is_within;

/// An object after the checks.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    /// What is wrong with it.
    pub(crate) problems: Vec<Problem>,
    /// The object with all defaults.
    pub(crate) completed: Value,
    /// Whether its kind is known.
    pub(crate) is_known: bool,
}

/// What the schema of its kind, and that of metadata, has against an object; nothing if the kind or its version is not known.
pub(crate) fn by_schema(kinds: &Kinds, object: &Value) -> Vec<Problem> {
    let (_, version) = split(text(object, "/apiVersion"));
    let Some(validator) = kinds.of(object).and_then(|kind| kind.validator(version)) else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    unknown_fields(kinds, validator, object, &mut problems);
    let mut completed = object.clone();
    windlass_schema::prune(validator.schema(), &mut completed);
    windlass_schema::default(validator.schema(), &mut completed);
    add(validator.validate(&completed, None), Check::Schema, &mut problems);
    problems
}

/// Checks the creation of an object. `view` has the other objects that admission looks at.
pub(crate) fn check(kinds: &Kinds, object: &Value, view: &dyn View) -> Checked {
    let mut checked = Checked {
        problems: Vec::new(),
        completed: object.clone(),
        is_known: false,
    };
    let Some(kind) = kinds.of(object) else {
        return checked;
    };
    checked.is_known = true;
    let (group, version) = split(text(object, "/apiVersion"));
    let Some(validator) = kind.validator(version) else {
        let message = format!("version {version:?} of {} is not served", text(object, "/kind"));
        let hint = format!("write the object in a version that is: {}", kind.served());
        checked
            .problems
            .push(Problem::error(Check::Version, "apiVersion", message).hint(hint));
        return checked;
    };
    if let Some(older) = windlass_api_older::older(text(object, "/apiVersion"), text(object, "/kind")) {
        check_older(kinds, validator, older, object, view, &mut checked);
        return checked;
    }
    let problems = &mut checked.problems;
    unknown_fields(kinds, validator, object, problems);
    let completed = &mut checked.completed;
    windlass_schema::prune(validator.schema(), completed);
    windlass_schema::default(validator.schema(), completed);
    let resource = kind.resource(group);
    let mut judged = Vec::new();
    if let Some(rule) = kinds.rule(object) {
        let change = change(&resource, &Value::Null, view);
        judged.push(rule.complete(&change, completed));
    }
    let mut errors = FieldErrors::new();
    names(object, &mut errors);
    add(errors.into_vec(), Check::Metadata, problems);
    add(validator.validate(completed, None), Check::Schema, problems);
    if let Some(rule) = kinds.rule(object) {
        judged.push(admitted(rule, &resource, completed, view));
    }
    let known: BTreeSet<String> = problems.iter().map(|problem| problem.field.clone()).collect();
    for verdict in judged {
        match verdict {
            Ok(verdict) => {
                let new = verdict.errors.into_iter().filter(|error| !is_repeated(error, &known));
                add(new, Check::Admission, problems);
                let warnings = verdict.warnings.into_iter();
                problems.extend(warnings.map(|words| Problem::warning(Check::AdmissionWarning, "", words)));
            }
            Err(unread) => problems.push(Problem::warning(Check::AdmissionWarning, "", unread.why)),
        }
    }
    unreplaced(object, problems);
    checked
}

/// Checks the creation of an object in an older version: by the schema of this version and then, as servers do, in the version that is
/// stored. What is found there names the fields of that version.
fn check_older(
    kinds: &Kinds,
    validator: &Validator,
    older: &OlderVersion,
    object: &Value,
    view: &dyn View,
    checked: &mut Checked,
) {
    let problems = &mut checked.problems;
    unknown_fields(kinds, validator, object, problems);
    let completed = &mut checked.completed;
    windlass_schema::prune(validator.schema(), completed);
    windlass_schema::default(validator.schema(), completed);
    add(validator.validate(completed, None), Check::Schema, problems);
    unreplaced(object, problems);
    if problems.iter().any(Problem::is_error) {
        return;
    }
    let hub = older.hub_form(completed.to_string().as_bytes());
    let hub = hub.and_then(|encoded| {
        serde_json::from_slice::<Value>(&encoded).map_err(|error| ConversionError::new("", error.to_string()))
    });
    match hub {
        Ok(hub) => {
            let stored = check(kinds, &hub, view);
            problems.extend(stored.problems);
            *completed = stored.completed;
        }
        Err(error) => {
            let message = format!("cannot be converted to {}: {}", older.hub_version, error.message);
            problems.push(Problem::error(Check::Version, error.field, message));
        }
    }
}

/// Whether a rule repeats what the schema says of a field or of what is below it.
fn is_repeated(error: &FieldError, known: &BTreeSet<String>) -> bool {
    let is_decoding = ["missing field", "invalid type", "unknown variant"]
        .iter()
        .any(|words| error.detail.contains(words));
    known
        .iter()
        .any(|field| is_within(&error.path, field) || (is_decoding && is_within(field, &error.path)))
}

/// Variables of clusterctl such as `${NAME}` are no values. What is wrong with them is reported once.
fn unreplaced(object: &Value, problems: &mut Vec<Problem>) {
    let mut first = None;
    problems.retain(|problem| {
        let value = value_at(object, &problem.field).and_then(Value::as_str);
        let Some(value) = value.filter(|value| value.contains("${")) else {
            return true;
        };
        first.get_or_insert_with(|| (problem.field.clone(), value.to_owned()));
        false
    });
    if let Some((field, value)) = first {
        let message = format!("{value:?} has a variable that clusterctl replaces: it cannot be applied like this");
        let hint = "check what `clusterctl generate yaml` makes of the file";
        problems.insert(0, Problem::error(Check::UnreplacedVariable, field, message).hint(hint));
    }
}

/// The value at a path without points in names.
fn value_at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut parts = path.split(['.', '[', ']']).filter(|part| !part.is_empty());
    parts.try_fold(object, |value, part| match value {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        value => value.get(part),
    })
}

fn change<'a>(resource: &'a str, new: &'a Value, view: &'a dyn View) -> Change<'a> {
    Change {
        resource,
        operation: Operation::Create,
        dry_run: false,
        old: &Value::Null,
        new,
        view,
    }
}

fn admitted(
    rule: &Rule,
    resource: &str,
    object: &Value,
    view: &dyn View,
) -> Result<Verdict, windlass_admission::Unread> {
    rule.check(&change(resource, object, view))
}

fn add(errors: impl IntoIterator<Item = FieldError>, check: Check, problems: &mut Vec<Problem>) {
    // It follows from the other errors.
    let own = errors
        .into_iter()
        .filter(|error| !error.detail.starts_with("some validation rules were not checked"));
    problems.extend(own.map(|error| {
        // The path is said already.
        let message = error.body().replacen(&format!("{} in body ", error.path), "", 1);
        Problem::error(check, error.path, message)
    }));
}

fn names(object: &Value, errors: &mut FieldErrors) {
    let metadata = &object["metadata"];
    let name = text(metadata, "/name");
    for problem in Kind::name_problems(name) {
        errors.push(FieldError::invalid("metadata.name", name.into(), problem));
    }
    if metadata["labels"].is_object() {
        check_labels(&metadata["labels"], "metadata.labels", errors);
    }
    if metadata["annotations"].is_object() {
        check_annotations(&metadata["annotations"], "metadata.annotations", errors);
    }
}

/// Fields that a server would drop, or refuse with strict validation.
fn unknown_fields(kinds: &Kinds, validator: &Validator, object: &Value, problems: &mut Vec<Problem>) {
    let schema = validator.schema();
    for path in windlass_schema::unknown_fields(schema, object) {
        problems.push(unknown(path, schema.root()));
    }
    if let Some(schema) = kinds.metadata() {
        let metadata = &object["metadata"];
        for path in windlass_schema::unknown_fields(schema, metadata) {
            problems.push(unknown(format!("metadata.{path}"), schema.root()));
        }
        // Creation times and the like are null in what kubectl prints.
        let mut metadata = metadata.clone();
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.retain(|_, value| !value.is_null());
        }
        let wrong = windlass_schema::validate_at(schema, "metadata", &metadata, None);
        add(wrong, Check::Schema, problems);
    }
}

fn unknown(path: String, root: &Node) -> Problem {
    let below = path
        .strip_prefix("metadata.")
        .filter(|_| !root.properties.contains_key("spec"));
    let close = closest(root, below.unwrap_or(&path));
    let hint = close.map_or_else(
        || "remove it: a server drops it, or refuses it with strict validation".to_owned(),
        |name| format!("is {name:?} meant?"),
    );
    Problem::error(Check::Schema, path, "unknown field").hint(hint)
}

/// The known field beside an unknown one whose name is nearly the same.
fn closest<'a>(root: &'a Node, path: &str) -> Option<&'a str> {
    let mut node = root;
    let mut parts = path.split('.').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            let allowed = (part.len() / 3).max(1);
            let names = node.properties.keys().map(|name| (distance(name, part), name.as_str()));
            let near = names.filter(|(distance, _)| *distance <= allowed).min();
            return near.map(|(_, name)| name);
        }
        let (name, indexes) = part
            .split_once('[')
            .map_or((part, 0), |(name, rest)| (name, 1 + rest.matches('[').count()));
        node = node.field(name)?;
        for _ in 0..indexes {
            node = node.items.as_deref()?;
        }
    }
    None
}
