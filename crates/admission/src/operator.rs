//! Declarations of providers that Windlass has built in.

use windlass_api_operator::{BUILT_IN, ProviderType};
use windlass_schema::FieldErrors;

use crate::field::Field;
use crate::{Change, Unread, Verdict};

/// Checks the declaration of a provider: another version or name than that of the built-in one cannot be had. What is declared already
/// may be changed in other fields, as a newer Windlass has another version.
pub fn check_provider(change: &Change<'_>) -> Result<Verdict, Unread> {
    let (new, old) = (Field::of(change.new), Field::of(change.old));
    let (name, version) = (new.child("metadata.name"), new.child("spec.version"));
    let mut errors = FieldErrors::new();
    let type_ = ProviderType::from_inventory(new.child("kind").text());
    let built_in = BUILT_IN
        .iter()
        .find(|built_in| type_.is_some_and(|type_| built_in.is(type_, name.text())));
    let is_new = !change.is_update() || old.child("spec.version").text() != version.text();
    if let Some(built_in) = built_in.filter(|_| is_new)
        && let Some((field, why)) = built_in.refuses(name.text(), Some(version.text()).filter(|text| !text.is_empty()))
    {
        errors.add(|| new.child(field).forbidden(why));
    }
    Ok(errors.into())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Operation;
    use crate::view::Nothing;

    #[test]
    fn another_version_of_what_is_built_in_is_refused() {
        let provider = |kind: &str, name: &str, version: Value| json!({"kind": kind, "metadata": {"name": name}, "spec": {"version": version}});
        let check = |old: &Value, new: &Value, expect: &[&str]| {
            let change = Change {
                resource: "",
                operation: if old.is_null() {
                    Operation::Create
                } else {
                    Operation::Update
                },
                dry_run: false,
                old,
                new,
                view: &Nothing,
            };
            let verdict = check_provider(&change).unwrap();
            let paths: Vec<&str> = verdict.errors.iter().map(|error| error.path.as_str()).collect();
            assert_eq!(paths, expect, "{old} {new}");
        };
        let none = &Value::Null;
        let core = |version: &str| provider("CoreProvider", "cluster-api", json!(version));
        check(none, &provider("CoreProvider", "cluster-api", Value::Null), &[]);
        check(
            none,
            &json!({"kind": "CoreProvider", "metadata": {"name": "cluster-api"}}),
            &[],
        );
        check(none, &core("v1.14.0"), &[]);
        check(none, &core("v1.13.0"), &["spec.version"]);
        check(
            none,
            &provider("CoreProvider", "mine", json!("v1.14.0")),
            &["metadata.name"],
        );
        check(
            none,
            &provider("AddonProvider", "helm", json!("v1.14.0")),
            &["spec.version"],
        );
        check(none, &provider("BootstrapProvider", "talos", json!("v0.6.9")), &[]);
        check(none, &provider("IPAMProvider", "in-cluster", json!("v1.0.0")), &[]);
        check(&core("v1.14.0"), &core("v1.15.0"), &["spec.version"]);
        // Declared with an older Windlass: labels and finalizers must not be refused.
        check(&core("v1.13.0"), &core("v1.13.0"), &[]);
    }
}
