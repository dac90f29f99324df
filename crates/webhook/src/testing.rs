//! A rule for tests.

use windlass_schema::FieldError;

use crate::rule::{Change, Operation, Rule, Verdict};

/// A size may not shrink.
pub(crate) fn rule() -> Rule {
    Rule {
        group: "infra.example.com",
        versions: vec!["v1".to_owned(), "v1beta1".to_owned()],
        kind: "TestCluster",
        resource: "testclusters",
        operations: &[Operation::Update],
        check: |change: &Change<'_>| {
            let size = |object: &serde_json::Value| object["spec"]["size"].as_i64().unwrap_or_default();
            if size(change.new) >= size(change.old) {
                return Verdict::default();
            }
            Verdict {
                errors: vec![FieldError::forbidden("spec.size", "never smaller")],
                warnings: vec![format!("{} shrinks", change.resource)],
            }
        },
        refers: None,
        condition: None,
    }
}
