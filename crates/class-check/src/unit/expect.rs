//! What a case expects, compared with what is generated.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_topology::keys::{CONTROL_PLANE, DEPLOYMENT_NAME, POOL_NAME};
use windlass_topology::model::{name_of, text};

use super::compare::{How, differences};
use super::format::{Expect, Expected, Refusal, Selector};
use super::golden;

/// A generated object, and its place in the topology.
#[derive(Clone, Debug)]
pub(super) struct Generated {
    pub(super) place: String,
    pub(super) object: Value,
}

/// What an API server would refuse, or why nothing can be generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// `Kind namespace/name`.
    pub(super) object: String,
    pub(super) field: String,
    pub(super) message: String,
}

impl Generated {
    /// The place of an object, from its labels and from the reference of its Cluster.
    pub(super) fn of(object: Value, cluster: &Value) -> Self {
        let selected = &object["spec"]["selector"]["matchLabels"];
        let label = |name: &str| {
            let labels = [&object["metadata"]["labels"], selected];
            labels.iter().find_map(|labels| labels[name].as_str())
        };
        let infrastructure = &cluster["spec"]["infrastructureRef"];
        let is_infrastructure = object["kind"] == infrastructure["kind"]
            && object["metadata"]["name"] == infrastructure["name"]
            && infrastructure.is_object();
        let place = match (label(DEPLOYMENT_NAME), label(POOL_NAME)) {
            (Some(name), _) => format!("machineDeployments/{name}"),
            (None, Some(name)) => format!("machinePools/{name}"),
            (None, None) if object["kind"] == "Cluster" => "cluster".to_owned(),
            (None, None) if is_infrastructure && label(CONTROL_PLANE).is_none() => "infrastructureCluster".to_owned(),
            (None, None) => "controlPlane".to_owned(),
        };
        Self { place, object }
    }

    fn says(&self) -> String {
        format!("{} at {}", name_of(&self.object), self.place)
    }
}

impl Selector {
    fn selects(&self, generated: &Generated) -> bool {
        let is = |wanted: Option<&String>, have: &str| wanted.is_none_or(|wanted| wanted == have);
        let object = &generated.object;
        text(object, "/kind") == self.kind
            && is(self.api_version.as_ref(), text(object, "/apiVersion"))
            && is(self.place.as_ref(), &generated.place)
            && is(self.name.as_ref(), text(object, "/metadata/name"))
    }

    fn says(&self) -> String {
        let mut out = self.kind.clone();
        for (word, part) in [("of", &self.api_version), ("at", &self.place), ("named", &self.name)] {
            if let Some(part) = part {
                out = format!("{out} {word} {part}");
            }
        }
        out
    }
}

/// What is wrong with a case, each as some lines; and the golden file that it should have.
pub(super) fn failures(
    expect: &Expect,
    result: &Result<Vec<Generated>, Vec<Refused>>,
    goldens: &BTreeMap<String, String>,
) -> (Vec<String>, Option<(String, String)>) {
    let objects = match result {
        Ok(objects) if expect.refused.is_empty() => objects,
        Ok(_) => {
            return (
                vec!["the Cluster is accepted, and a refusal is expected".to_owned()],
                None,
            );
        }
        Err(refused) => return (refusals(&expect.refused, refused), None),
    };
    let mut failures = Vec::new();
    for expected in &expect.objects {
        failures.extend(expected_object(expected, objects));
    }
    for selector in &expect.absent {
        let found = objects.iter().filter(|object| selector.selects(object));
        failures.extend(found.map(|object| format!("{} is generated, and expected to be absent", object.says())));
    }
    let golden = expect.golden.as_ref().map(|path| {
        let generated: Vec<Value> = objects
            .iter()
            .filter(|generated| generated.place != "cluster")
            .map(|generated| generated.object.clone())
            .collect();
        let settled = golden::settled(&generated);
        match goldens.get(path).map(|golden| golden::compare(golden, &settled)) {
            None => failures.push(format!("golden file {path} does not exist; --update writes it")),
            Some(Err(why)) => failures.push(format!("golden file {path} cannot be read: {why}")),
            Some(Ok(found)) => {
                failures.extend(
                    found
                        .into_iter()
                        .map(|difference| format!("golden file {path}: {difference}")),
                );
            }
        }
        (path.clone(), golden::text_of(&settled))
    });
    (failures, golden)
}

fn expected_object(expected: &Expected, objects: &[Generated]) -> Vec<String> {
    let selector = expected.selector();
    let found: Vec<&Generated> = objects.iter().filter(|object| selector.selects(object)).collect();
    let object = match found.as_slice() {
        [one] => *one,
        [] => {
            let all: Vec<String> = objects.iter().map(|object| format!("\n  {}", object.says())).collect();
            return vec![format!(
                "{} is not generated; generated are:{}",
                selector.says(),
                all.concat()
            )];
        }
        several => {
            let all: Vec<String> = several.iter().map(|object| format!("\n  {}", object.says())).collect();
            return vec![format!(
                "{} is ambiguous; give its place or name:{}",
                selector.says(),
                all.concat()
            )];
        }
    };
    let wanted = json!({"metadata": expected.metadata, "spec": expected.spec});
    let parts = ["metadata", "spec"].into_iter().filter(|part| !wanted[*part].is_null());
    let found = parts.flat_map(|part| {
        let got = object.object.get(part).cloned().unwrap_or_default();
        differences(&wanted[part], &got, How::Subset, part)
    });
    found
        .map(|difference| format!("{}: {difference}", object.says()))
        .collect()
}

/// Compares refusals: each that is expected must be there, and no other.
fn refusals(expected: &[Refusal], refused: &[Refused]) -> Vec<String> {
    let is = |expected: &Refusal, refused: &Refused| {
        let field = expected.field.as_ref().is_none_or(|field| *field == refused.field);
        field
            && expected
                .message
                .as_ref()
                .is_none_or(|part| refused.message.contains(part.as_str()))
    };
    let mut failures = Vec::new();
    let missing = expected
        .iter()
        .filter(|expected| !refused.iter().any(|refused| is(expected, refused)));
    failures.extend(missing.map(|expected| {
        let part = |name: &str, part: &Option<String>| part.as_ref().map(|part| format!("{name} {part:?}"));
        let parts = [part("field", &expected.field), part("message", &expected.message)];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("a refusal with {} is expected, and not found", parts.join(" and "))
    }));
    let more = refused
        .iter()
        .filter(|refused| !expected.iter().any(|expected| is(expected, refused)));
    let words = if expected.is_empty() { "refused" } else { "also refused" };
    failures.extend(more.map(|refused| {
        let Refused { object, field, message } = refused;
        let field = if field.is_empty() {
            String::new()
        } else {
            format!("{field}: ")
        };
        format!("{words}: {object}: {field}{message}")
    }));
    failures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(field: &str, message: &str) -> Refused {
        Refused {
            object: "Cluster a/b".to_owned(),
            field: field.to_owned(),
            message: message.to_owned(),
        }
    }

    #[test]
    fn all_refusals_must_be_expected() {
        let expected = |field: Option<&str>, message: Option<&str>| Refusal {
            field: field.map(str::to_owned),
            message: message.map(str::to_owned),
        };
        let found = [refused("spec.a", "is too long"), refused("spec.b", "must be set")];
        assert_eq!(
            refusals(&[expected(Some("spec.a"), None), expected(None, Some("must"))], &found),
            Vec::<String>::new()
        );
        let failures = refusals(&[expected(Some("spec.a"), Some("too short"))], &found);
        assert_eq!(
            failures,
            [
                "a refusal with field \"spec.a\" and message \"too short\" is expected, and not found",
                "also refused: Cluster a/b: spec.a: is too long",
                "also refused: Cluster a/b: spec.b: must be set",
            ]
        );
        assert!(refusals(&[], &found)[0].starts_with("refused: "));
    }

    #[test]
    fn places_come_from_labels_and_from_the_reference_of_the_cluster() {
        let cluster = json!({"spec": {"infrastructureRef": {"kind": "DevCluster", "name": "a"}}});
        let check = |object: Value, expect: &str| assert_eq!(Generated::of(object, &cluster).place, expect);
        check(
            json!({"kind": "DevCluster", "metadata": {"name": "a"}}),
            "infrastructureCluster",
        );
        check(json!({"kind": "DevCluster", "metadata": {"name": "b"}}), "controlPlane");
        check(json!({"kind": "Cluster"}), "cluster");
        check(
            json!({"kind": "X", "metadata": {"labels": {DEPLOYMENT_NAME: "md"}}}),
            "machineDeployments/md",
        );
        check(
            json!({"kind": "X", "metadata": {"labels": {POOL_NAME: "mp"}}}),
            "machinePools/mp",
        );
        check(
            json!({"kind": "MachineHealthCheck", "spec": {"selector": {"matchLabels": {DEPLOYMENT_NAME: "md"}}}}),
            "machineDeployments/md",
        );
    }
}
