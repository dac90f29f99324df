//! The example manifests, with what the command line asks for put in.

use serde_json::{Value, json};

/// The ClusterClass and its templates.
const CLASS: &str = include_str!("../../../../examples/clusterclass-quick-start.yaml");
/// The Cluster.
const CLUSTER: &str = include_str!("../../../../examples/cluster-quick-start.yaml");
/// Where the demo's objects live.
pub(crate) const NAMESPACE: &str = "default";

/// How the clusters shall be.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// How many.
    pub(crate) clusters: u32,
    /// Control plane machines of each.
    pub(crate) control_plane: u32,
    /// Workers of each.
    pub(crate) workers: u32,
    /// The Kubernetes version.
    pub(crate) version: String,
}

fn documents(text: &str) -> Result<Vec<Value>, String> {
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| error.to_string())?;
    for document in &mut documents {
        document["metadata"]["namespace"] = json!(NAMESPACE);
    }
    Ok(documents)
}

/// The ClusterClass and its templates.
pub(crate) fn class() -> Result<Vec<Value>, String> {
    documents(CLASS)
}

/// The Clusters.
pub(crate) fn clusters(shape: &Shape) -> Result<Vec<Value>, String> {
    let example = documents(CLUSTER)?.pop().ok_or("the example has no Cluster")?;
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
        let kinds: Vec<String> = class()
            .unwrap()
            .iter()
            .map(|object| object["kind"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(kinds[0], "ClusterClass");
        assert_eq!(kinds.len(), 6, "{kinds:?}");
    }

    #[test]
    fn clusters_get_names_and_numbers() {
        let one = clusters(&shape(1)).unwrap();
        assert_eq!(name(&one[0]), "quick-start");
        let many = clusters(&shape(10)).unwrap();
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
}
