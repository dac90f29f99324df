//! The example manifests, adapted to the command line.

use serde_json::{Value, json};
use windlass_api::annotations::MANAGED_BY;

use super::{external, kind};
use crate::error::DemoError;
use crate::options::Options;

/// Built-in manifests.
#[derive(Clone, Copy, Debug)]
struct Example {
    /// A ClusterClass and its templates.
    class: &'static str,
    /// A Cluster of that class.
    cluster: &'static str,
}

/// A cluster on infrastructure that its provider manages.
const QUICK_START: Example = Example {
    class: include_str!("../../../examples/clusterclass-quick-start.yaml"),
    cluster: include_str!("../../../examples/cluster-quick-start.yaml"),
};
/// A cluster on externally managed infrastructure.
const EXTERNALLY_MANAGED: Example = Example {
    class: include_str!("../../../examples/externally-managed/clusterclass.yaml"),
    cluster: include_str!("../../../examples/externally-managed/cluster-with-class.yaml"),
};
/// The Role of an external system.
const ROLE: &str = include_str!("../../../examples/externally-managed/role.yaml");
/// The namespace of the demo's objects.
pub(crate) const NAMESPACE: &str = "default";

/// The desired shape of the clusters.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// The number of clusters.
    pub(crate) clusters: u32,
    /// Control plane machines of each.
    pub(crate) control_plane: u32,
    /// Workers of each.
    pub(crate) workers: u32,
    /// The Kubernetes version.
    pub(crate) version: String,
}

impl Shape {
    /// The shape from the command line.
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            clusters: options.clusters,
            control_plane: options.control_plane_replicas,
            workers: options.workers,
            version: options.kubernetes_version.to_string(),
        }
    }
}

/// The manifests to create.
#[derive(Debug)]
pub(crate) struct Manifests {
    /// The ClusterClass and its templates.
    pub(crate) class: Vec<Value>,
    /// The Clusters.
    pub(crate) clusters: Vec<Value>,
    /// The class of the workers.
    pub(crate) worker_class: String,
}

impl Manifests {
    /// The manifests of the example, or of the file in the command line.
    pub(crate) fn read(options: &Options, shape: &Shape) -> Result<Self, DemoError> {
        let file = options.class.as_deref();
        let place = file.map_or_else(|| "the example".to_owned(), |file| file.display().to_string());
        let read = |file| {
            std::fs::read_to_string(file).map_err(|source| DemoError::failed(format!("cannot read {place}"), source))
        };
        let text = file.map(read).transpose()?;
        let broken = |why: String| DemoError::failed(format!("{place} cannot be used"), why);
        let example = if options.externally_managed {
            EXTERNALLY_MANAGED
        } else {
            QUICK_START
        };
        let mut class = class(example, text.as_deref()).map_err(broken)?;
        if options.externally_managed {
            hand_over(&mut class, external::SYSTEM).map_err(broken)?;
        }
        let clusters = clusters(example, shape, &class).map_err(broken)?;
        let is_unknown = |object: &&Value| kind(object["kind"].as_str().unwrap_or_default()).is_none();
        if let Some(object) = class.iter().find(is_unknown) {
            let (kind, name) = (&object["kind"], name(object));
            return Err(broken(format!("kind {kind} of {name} is not one of ours")));
        }
        Ok(Self {
            worker_class: worker_class(&class).map_err(broken)?,
            class,
            clusters,
        })
    }
}

fn documents(text: &str) -> Result<Vec<Value>, String> {
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| error.to_string())?;
    for (number, document) in (1..).zip(&mut documents) {
        let named = [
            &document["apiVersion"],
            &document["kind"],
            &document["metadata"]["name"],
        ];
        if named.iter().any(|field| field.as_str().is_none_or(str::is_empty)) {
            return Err(format!(
                "document {number}: apiVersion, kind and metadata.name are required"
            ));
        }
        document["metadata"]["namespace"] = json!(NAMESPACE);
    }
    Ok(documents)
}

/// A ClusterClass and its templates: the example's, or those in this text.
fn class(example: Example, text: Option<&str>) -> Result<Vec<Value>, String> {
    let documents = documents(text.unwrap_or(example.class))?;
    match documents
        .iter()
        .filter(|document| document["kind"] == "ClusterClass")
        .count()
    {
        1 => Ok(documents),
        found => Err(format!("expected one ClusterClass, found {found}")),
    }
}

/// The Role of an external system.
pub(crate) fn role() -> Result<Vec<Value>, String> {
    documents(ROLE)
}

/// Marks the infrastructure of all clusters of a class as externally managed, unless it is already.
fn hand_over(class: &mut [Value], system: &str) -> Result<(), String> {
    let of_class = |class: &[Value], pointer: &str| {
        let found = class.iter().find(|document| document["kind"] == "ClusterClass");
        found
            .and_then(|found| found.pointer(pointer))
            .cloned()
            .unwrap_or_default()
    };
    let reference = of_class(class, "/spec/infrastructure/templateRef");
    let template = class
        .iter_mut()
        .find(|document| document["kind"] == reference["kind"] && document["metadata"]["name"] == reference["name"]);
    let missing = || {
        format!(
            "{} {}, the template of the infrastructure, is not in the file",
            reference["kind"].as_str().unwrap_or_default(),
            reference["name"].as_str().unwrap_or_default()
        )
    };
    let metadata = &mut template.ok_or_else(missing)?["spec"]["template"]["metadata"];
    if metadata["annotations"].get(MANAGED_BY).is_none() {
        metadata["annotations"][MANAGED_BY] = json!(system);
    }
    Ok(())
}

/// The name of the first class of MachineDeployments among the documents of a class.
fn worker_class(class: &[Value]) -> Result<String, String> {
    let cluster_class = class
        .iter()
        .find(|document| document["kind"] == "ClusterClass")
        .unwrap_or(&Value::Null);
    let first = &cluster_class["spec"]["workers"]["machineDeployments"][0]["class"];
    let missing = || {
        format!(
            "ClusterClass {}: spec.workers.machineDeployments is empty",
            name(cluster_class)
        )
    };
    first.as_str().map(str::to_owned).ok_or_else(missing)
}

/// The Clusters of a class.
fn clusters(example: Example, shape: &Shape, class: &[Value]) -> Result<Vec<Value>, String> {
    let mut example = documents(example.cluster)?.pop().ok_or("the example has no Cluster")?;
    let cluster_class = class
        .iter()
        .find(|document| document["kind"] == "ClusterClass")
        .unwrap_or(&Value::Null);
    let topology = &mut example["spec"]["topology"];
    topology["classRef"]["name"] = json!(name(cluster_class));
    topology["workers"]["machineDeployments"][0]["class"] = json!(worker_class(class)?);
    // The example's variables are dropped if the class does not have them.
    let known = cluster_class["spec"]["variables"].as_array();
    let is_known =
        |variable: &Value| known.is_some_and(|known| known.iter().any(|other| other["name"] == variable["name"]));
    if let Some(variables) = topology.get_mut("variables").and_then(Value::as_array_mut) {
        variables.retain(is_known);
    }
    let width = shape.clusters.to_string().len();
    let made = (1..=shape.clusters).map(|number| {
        let mut cluster = example.clone();
        if shape.clusters > 1 {
            let name = cluster["metadata"]["name"].as_str().unwrap_or_default();
            cluster["metadata"]["name"] = json!(format!("{name}-{number:0width$}"));
        }
        let topology = &mut cluster["spec"]["topology"];
        topology["version"] = json!(shape.version);
        topology["controlPlane"]["replicas"] = json!(shape.control_plane);
        topology["workers"]["machineDeployments"][0]["replicas"] = json!(shape.workers);
        cluster
    });
    Ok(made.collect())
}

/// The name of an object.
pub(crate) fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(clusters: u32) -> Shape {
        Shape {
            clusters,
            control_plane: 1,
            workers: 7,
            version: "v1.36.0".to_owned(),
        }
    }

    #[test]
    fn the_class_is_whole() {
        let kinds: Vec<String> = class(QUICK_START, None)
            .unwrap()
            .iter()
            .map(|object| object["kind"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(kinds[0], "ClusterClass");
        assert_eq!(kinds.len(), 6, "{kinds:?}");
    }

    #[test]
    fn clusters_get_names_and_numbers() {
        let one = clusters(QUICK_START, &shape(1), &class(QUICK_START, None).unwrap()).unwrap();
        assert_eq!(name(&one[0]), "quick-start");
        let many = clusters(QUICK_START, &shape(10), &class(QUICK_START, None).unwrap()).unwrap();
        assert_eq!(
            (many.len(), name(&many[0]), name(&many[9])),
            (10, "quick-start-01".to_owned(), "quick-start-10".to_owned())
        );
        let topology = &many[3]["spec"]["topology"];
        assert_eq!(topology["version"], "v1.36.0");
        assert_eq!(topology["controlPlane"]["replicas"], 1);
        assert_eq!(topology["workers"]["machineDeployments"][0]["replicas"], 7);
        assert_eq!(topology["variables"][0]["name"], "startupDuration");
    }

    #[test]
    fn another_class_can_take_the_place_of_the_example() {
        let text = "apiVersion: cluster.x-k8s.io/v1beta2\nkind: ClusterClass\nmetadata: {name: mine}\n\
                    spec: {workers: {machineDeployments: [{class: small}, {class: large}]}}\n";
        let class = class(QUICK_START, Some(text)).unwrap();
        let made = clusters(QUICK_START, &shape(1), &class).unwrap();
        let topology = &made[0]["spec"]["topology"];
        assert_eq!(topology["classRef"]["name"], "mine");
        assert_eq!(topology["workers"]["machineDeployments"][0]["class"], "small");
        assert_eq!(topology["variables"], json!([]));
    }

    // EX-065
    #[test]
    fn the_infrastructure_of_a_class_can_be_handed_over() {
        let check = |text: Option<&str>, expect: &str| {
            let mut documents = class(EXTERNALLY_MANAGED, text).unwrap();
            hand_over(&mut documents, "another-system").unwrap();
            let held = documents
                .iter()
                .filter_map(|document| document.pointer("/spec/template/metadata/annotations")?.get(MANAGED_BY));
            assert_eq!(held.collect::<Vec<_>>(), [expect]);
        };
        // The example's infrastructure is externally managed already.
        check(None, "terraform");
        check(Some(QUICK_START.class), "another-system");
        let made = clusters(EXTERNALLY_MANAGED, &shape(1), &class(EXTERNALLY_MANAGED, None).unwrap()).unwrap();
        assert_eq!(made[0]["spec"]["topology"]["classRef"]["name"], "externally-managed");
        assert_eq!(made[0]["spec"]["topology"].get("variables"), None, "nulls are refused");
        let mut alone = class(
            QUICK_START,
            Some(
                "{apiVersion: a/v1, kind: ClusterClass, metadata: {name: a}, \
            spec: {infrastructure: {templateRef: {kind: DevClusterTemplate, name: gone}}}}",
            ),
        )
        .unwrap();
        let error = hand_over(&mut alone, "another-system").unwrap_err();
        assert_eq!(
            error,
            "DevClusterTemplate gone, the template of the infrastructure, is not in the file"
        );
    }

    #[test]
    fn a_file_that_is_no_class_says_what_it_lacks() {
        let check = |text: &str, expect: &str| {
            let error = class(QUICK_START, Some(text))
                .and_then(|class| worker_class(&class))
                .unwrap_err();
            assert!(error.contains(expect), "{error}");
        };
        check("a: [", "");
        check(
            "kind: ClusterClass\n",
            "document 1: apiVersion, kind and metadata.name are required",
        );
        check(
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
            "expected one ClusterClass, found 0",
        );
        let empty = "{apiVersion: cluster.x-k8s.io/v1beta2, kind: ClusterClass, metadata: {name: a}}";
        check(empty, "ClusterClass a: spec.workers.machineDeployments is empty");
        check(&format!("{empty}\n---\n{empty}"), "found 2");
    }
}
