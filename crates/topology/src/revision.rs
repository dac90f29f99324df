//! A class and its templates as they were at one time: what is kept of them, and how it is read.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::blueprint::{Class, references};
use crate::error::Error;
use crate::keys;
use crate::model::{ClassSpec, Patch, TemplateRef, text};
use crate::names::fingerprint;

/// The longest name of an object.
const MAX_NAME: usize = 253;
/// Characters of the digest in a name: with so many, no two revisions of a class have the same.
const DIGEST: usize = 10;

/// What is kept of a class and its templates.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents {
    /// The spec of the class.
    pub class: Value,
    /// Its status.variables.
    pub variables: Vec<Value>,
    /// The templates, without what the API server adds.
    pub templates: Vec<Value>,
}

impl Contents {
    /// What is kept of a class with these templates, in the order in which the class names them.
    pub fn of<'a>(class: &Value, templates: impl IntoIterator<Item = &'a Value>) -> Self {
        let variables = class.pointer("/status/variables").and_then(Value::as_array);
        Self {
            class: class["spec"].clone(),
            variables: variables.cloned().unwrap_or_default(),
            templates: templates.into_iter().map(kept).collect(),
        }
    }

    /// The name of the revision of a class: the same for the same contents.
    pub fn name(&self, class: &str) -> String {
        let digest = fingerprint(&json!([self.class, self.variables, self.templates]));
        let digest = &digest[..DIGEST];
        let kept: String = class.chars().take(MAX_NAME - DIGEST - 1).collect();
        format!("{kept}-{digest}")
    }

    /// Reads it: the class as its Clusters use it, and the templates by reference. Errors name the class and the revision.
    pub fn read(&self, namespace: &str, class: &str, revision: &str) -> Result<Read, Error> {
        let object = json!({
            "kind": "ClusterClass",
            "metadata": {"namespace": namespace, "name": class},
            "spec": self.class,
            "status": {"variables": self.variables},
        });
        let mut class = Class::read(&object)?;
        class.name = format!("{} (revision {revision})", class.name);
        let mut templates = BTreeMap::new();
        for reference in references(&class.spec) {
            let wanted = reference.template;
            let is_it = |template: &&Value| {
                let group = text(template, "/apiVersion")
                    .split_once('/')
                    .map_or("", |(group, _)| group);
                group == wanted.group()
                    && text(template, "/kind") == wanted.kind
                    && text(template, "/metadata/name") == wanted.name
            };
            if let Some(template) = self.templates.iter().find(is_it) {
                templates.insert(wanted.clone(), Arc::new(template.clone()));
            }
        }
        Ok(Read {
            class: Arc::new(class),
            templates: Arc::new(templates),
        })
    }
}

/// Whether a name is that of a revision of a class.
pub fn is_of(class: &str, revision: &str) -> bool {
    let kept: String = class.chars().take(MAX_NAME - DIGEST - 1).collect();
    let digest = revision.strip_prefix(&kept).and_then(|rest| rest.strip_prefix('-'));
    digest.is_some_and(|digest| digest.len() == DIGEST && digest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// A revision that was read.
#[derive(Debug, Clone)]
pub struct Read {
    /// The class.
    pub class: Arc<Class>,
    /// The templates that it names.
    pub templates: Arc<BTreeMap<TemplateRef, Arc<Value>>>,
}

/// What counts of a template for the Clusters of a class; none if all of it may.
///
/// What the API server and other clients add to it reaches no generated object. Its own labels and annotations reach copies of it, not what is made
/// from it. Patches may ask for them, and extensions see all of it.
pub fn relevant(class: &ClassSpec, reference: &TemplateRef, template: &Value) -> Option<Value> {
    let of_metadata = |patch: &Patch| {
        let paths = patch.definitions.iter().flat_map(|one| &one.json_patches);
        patch.external.is_some() || paths.clone().any(|one| !one.path.starts_with("/spec/"))
    };
    if class.patches.iter().any(of_metadata) {
        return None;
    }
    let machines = class.control_plane.machine_infrastructure.as_ref();
    let of_workers = class.workers.machine_deployments.iter();
    let of_workers = of_workers.flat_map(|worker| [&worker.bootstrap, &worker.infrastructure]);
    let is_copied = machines
        .into_iter()
        .chain(of_workers)
        .any(|templated| templated.template_ref == *reference);
    let mut out = kept(template);
    if !is_copied && let Some(metadata) = out["metadata"].as_object_mut() {
        metadata.retain(|field, _| !matches!(field.as_str(), "labels" | "annotations"));
    }
    Some(out)
}

/// A template without what the API server and other clients add to it.
fn kept(template: &Value) -> Value {
    let mut metadata = json!({
        "namespace": template["metadata"]["namespace"],
        "name": template["metadata"]["name"],
    });
    for part in ["labels", "annotations"] {
        let Some(mut values) = template["metadata"].get(part).cloned() else {
            continue;
        };
        if let Some(values) = values.as_object_mut() {
            for of_tools in [keys::LAST_APPLIED, keys::CONVERSION_DATA] {
                values.remove(of_tools);
            }
            if values.is_empty() {
                continue;
            }
        }
        metadata[part] = values;
    }
    json!({
        "apiVersion": template["apiVersion"],
        "kind": template["kind"],
        "metadata": metadata,
        "spec": template["spec"],
    })
}

/// The Cluster without values for variables that are `unknown` to its revision of the class but not to the class: they count when it gets a newer one.
pub fn without_variables(cluster: &Value, unknown: impl Fn(&str) -> bool) -> Value {
    let mut cluster = cluster.clone();
    let prune = |list: Option<&mut Value>| {
        if let Some(list) = list.and_then(Value::as_array_mut) {
            list.retain(|variable| !unknown(text(variable, "/name")));
        }
    };
    prune(cluster.pointer_mut("/spec/topology/variables"));
    prune(cluster.pointer_mut("/spec/topology/controlPlane/variables/overrides"));
    for sets in ["machineDeployments", "machinePools"] {
        let sets = cluster.pointer_mut(&format!("/spec/topology/workers/{sets}"));
        for set in sets.and_then(Value::as_array_mut).into_iter().flatten() {
            prune(set.pointer_mut("/variables/overrides"));
        }
    }
    cluster
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn class() -> Value {
        let template =
            |kind: &str, name: &str| json!({"templateRef": {"apiVersion": "g/v1", "kind": kind, "name": name}});
        json!({
            "metadata": {"namespace": "n", "name": "c", "resourceVersion": "7"},
            "spec": {"infrastructure": template("ITemplate", "i"), "controlPlane": template("PTemplate", "p")},
            "status": {"variables": [{"name": "v", "definitions": []}], "observedGeneration": 3},
        })
    }

    fn template(kind: &str, name: &str, size: u8) -> Value {
        json!({
            "apiVersion": "g/v1", "kind": kind,
            "metadata": {
                "namespace": "n", "name": name, "uid": "u", "resourceVersion": "9", "labels": {"a": "b"},
                "annotations": {keys::LAST_APPLIED: "{}"},
            },
            "spec": {"template": {"spec": {"size": size}}},
        })
    }

    #[test]
    fn the_name_stands_for_what_clusters_are_made_from() {
        let templates = [template("ITemplate", "i", 1), template("PTemplate", "p", 1)];
        let contents = Contents::of(&class(), &templates);
        let name = contents.name("c");
        let mut touched = class();
        touched["metadata"]["resourceVersion"] = "8".into();
        touched["status"]["observedGeneration"] = 4.into();
        let mut seen = templates.clone();
        seen[0]["metadata"]["resourceVersion"] = "10".into();
        seen[0]["metadata"]["annotations"] = json!({});
        assert_eq!(Contents::of(&touched, &seen).name("c"), name);
        seen[0]["spec"]["template"]["spec"]["size"] = 2.into();
        assert_ne!(Contents::of(&class(), &seen).name("c"), name);
        touched["status"]["variables"] = json!([]);
        assert_ne!(Contents::of(&touched, &templates).name("c"), name);
        assert!(contents.name(&"c".repeat(253)).len() == 253);
        assert!(is_of("c", &name) && is_of(&"c".repeat(253), &contents.name(&"c".repeat(253))));
        assert!(!is_of("d", &name) && !is_of("c", "c-none") && !is_of("c", &format!("c-{name}")));
    }

    #[test]
    fn what_does_not_count_of_a_template_reaches_no_object() {
        use crate::testing::World;
        // Each template with what does not count, and without.
        let touched = |world: &World, index: usize| {
            let mut world = world.clone();
            let metadata = &mut world.templates[index]["metadata"];
            metadata["resourceVersion"] = "99".into();
            metadata["generation"] = 7.into();
            metadata["finalizers"] = json!(["f"]);
            metadata["ownerReferences"] = json!([{"kind": "ClusterClass", "name": "x"}]);
            metadata["managedFields"] = json!([{"manager": "m"}]);
            metadata["annotations"] = json!({keys::LAST_APPLIED: "{}"});
            world.templates[index]["status"] = json!({"capacity": {"cpu": "1"}});
            world
        };
        let plan = |world: &World| format!("{:?}", world.plan().unwrap().steps);
        let world = World::in_memory();
        let spec: ClassSpec = crate::model::read(&world.class, "/spec").unwrap();
        let mut kinds = BTreeSet::new();
        for index in 0..world.templates.len() {
            let template = &world.templates[index];
            let mut named = references(&spec).into_iter().map(|one| one.template.clone());
            let is_it =
                |one: &TemplateRef| one.kind == text(template, "/kind") && one.name == text(template, "/metadata/name");
            let Some(reference) = named.find(is_it) else { continue };
            kinds.insert(reference.kind.clone());
            let after = touched(&world, index);
            let relevant = |world: &World| relevant(&spec, &reference, &world.templates[index]).unwrap();
            assert_eq!(relevant(&after), relevant(&world), "{}", reference.kind);
            assert_eq!(plan(&after), plan(&world), "{}", reference.kind);
            // Own labels count exactly where they reach an object.
            let mut labelled = world.clone();
            labelled.templates[index]["metadata"]["labels"] = json!({"own": "label"});
            labelled.templates[index]["metadata"]["annotations"] = json!({"own": "annotation"});
            assert_eq!(
                relevant(&labelled) == relevant(&world),
                plan(&labelled) == plan(&world),
                "{}",
                reference.kind
            );
            let mut reduced = labelled.clone();
            reduced.templates[index] = relevant(&labelled);
            assert_eq!(plan(&reduced), plan(&labelled), "{}", reference.kind);
            let mut changed = world.clone();
            changed.templates[index]["spec"]["template"]["spec"]["own"] = "field".into();
            assert_ne!(relevant(&changed), relevant(&world), "{}", reference.kind);
        }
        assert_eq!(kinds.len(), 4, "{kinds:?}");
    }

    #[test]
    fn all_of_a_template_counts_where_patches_or_extensions_may_ask_for_it() {
        let template = template("ITemplate", "i", 1);
        let reference = TemplateRef {
            api_version: "g/v1".to_owned(),
            kind: "ITemplate".to_owned(),
            name: "i".to_owned(),
        };
        let with = |patches: Value| {
            let mut class = class();
            class["spec"]["patches"] = patches;
            let spec: ClassSpec = crate::model::read(&class, "/spec").unwrap();
            relevant(&spec, &reference, &template)
        };
        let inline = |path: &str| {
            json!([{"name": "p", "definitions": [{
                "selector": {"apiVersion": "g/v1", "kind": "ITemplate", "matchResources": {"infrastructureCluster": true}},
                "jsonPatches": [{"op": "replace", "path": path, "value": "x"}],
            }]}])
        };
        assert!(with(json!([])).is_some() && with(inline("/spec/template/spec/a")).is_some());
        assert_eq!(with(inline("/metadata/labels/a")), None);
        assert_eq!(
            with(json!([{"name": "p", "external": {"generatePatchesExtension": "e"}}])),
            None
        );
    }

    #[test]
    fn a_revision_is_read_as_the_class_was() {
        let templates = [template("ITemplate", "i", 1), template("PTemplate", "p", 1)];
        let read = Contents::of(&class(), &templates).read("n", "c", "c-1").unwrap();
        assert_eq!(read.class.name, "ClusterClass n/c (revision c-1)");
        assert_eq!(read.class.variables.len(), 1);
        let found: Vec<&str> = read.templates.values().map(|t| text(t, "/metadata/name")).collect();
        assert_eq!(found, ["i", "p"]);
        assert!(read.templates.values().all(|t| t["metadata"]["labels"]["a"] == "b"));
    }

    #[test]
    fn values_of_variables_that_are_too_new_are_left_out() {
        let values = json!([{"name": "old", "value": 1}, {"name": "new", "value": 2}]);
        let cluster = json!({"spec": {"topology": {
            "variables": values,
            "controlPlane": {"variables": {"overrides": values}},
            "workers": {
                "machineDeployments": [{"name": "a", "variables": {"overrides": values}}, {"name": "b"}],
                "machinePools": [{"name": "a", "variables": {"overrides": values}}],
            },
        }}});
        let pruned = without_variables(&cluster, |name| name == "new").to_string();
        assert!(
            !pruned.contains("new") && pruned.matches("old").count() == 4,
            "{pruned}"
        );
    }
}
