//! What all that convert objects say of conversions that fail.

use serde::Deserialize;
use windlass_meta::GroupKind;

use crate::convert::ConversionError;

/// The names in an object, as far as it has them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    kind: String,
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    namespace: String,
}

/// The error with the object: `Machine default/a cannot be converted to cluster.x-k8s.io/v1beta1: spec.x: ...`.
pub fn failure(object: &[u8], wanted: &str, error: &ConversionError) -> String {
    let named: Named = serde_json::from_slice(object).unwrap_or_default();
    let kind = if named.kind.is_empty() { "object" } else { &named.kind };
    let slash = if named.metadata.namespace.is_empty() { "" } else { "/" };
    let (namespace, mut name) = (named.metadata.namespace, named.metadata.name);
    if name.is_empty() {
        "without a name".clone_into(&mut name);
    }
    format!("{kind} {namespace}{slash}{name} cannot be converted to {wanted}: {error}")
}

/// The error of a reference to a kind without a definition.
pub fn undefined(kind: &GroupKind) -> String {
    format!("there is no CustomResourceDefinition of {kind}; install the provider of the kind")
}

/// The error of a reference to a kind whose definition names no contract.
pub fn without_contract(kind: &GroupKind) -> String {
    format!(
        "the CustomResourceDefinition of {kind} has no label cluster.x-k8s.io/v1beta2 or cluster.x-k8s.io/v1beta1 that names a served \
         version; install a provider whose definitions have it"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_object_and_field() {
        let check = |object: &str, expect: &str| {
            let error = ConversionError::new("spec.a", "expected a string");
            assert_eq!(failure(object.as_bytes(), "g.io/v1", &error), expect);
        };
        check(
            r#"{"kind":"A","metadata":{"name":"n","namespace":"ns"}}"#,
            "A ns/n cannot be converted to g.io/v1: spec.a: expected a string",
        );
        check(
            r#"{"kind":"A","metadata":{"name":"n"}}"#,
            "A n cannot be converted to g.io/v1: spec.a: expected a string",
        );
        check(
            "[",
            "object without a name cannot be converted to g.io/v1: spec.a: expected a string",
        );
    }
}
