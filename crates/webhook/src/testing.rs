//! A rule for tests.

use windlass_admission::{Admission, Change, Operation, Rule, Verdict};
use windlass_schema::FieldError;

/// A size may not shrink.
pub(crate) fn rule() -> Rule {
    let check = |change: &Change<'_>| {
        let size = |object: &serde_json::Value| object["spec"]["size"].as_i64().unwrap_or_default();
        if size(change.new) >= size(change.old) {
            return Ok(Verdict::default());
        }
        Ok(Verdict {
            errors: vec![FieldError::forbidden("spec.size", "never smaller")],
            warnings: vec![format!("{} shrinks", change.resource)],
            ..Verdict::default()
        })
    };
    Rule {
        group: "infra.example.com",
        version: "v1",
        kind: "TestCluster",
        resource: "testclusters",
        admission: Admission::checking(&[Operation::Update], check),
        decode: None,
        closed: Vec::new(),
    }
}
