//! The values for Clusters. A template is parsed once. The values for a Cluster are rendered again only when an object that the template uses
//! has changed: with hundreds of Clusters an event is mostly about one of them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use windlass_addon_values::{Objects, Template};
use windlass_api::core::{Cluster, ContractVersionedObjectReference};
use windlass_api::kind::ApiKind;
use windlass_controller_runtime::{Cx, Dynamic, ObjectKey, Seen, Stored as _};

use super::observed::Values;

/// The templates of all HelmChartProxies.
#[derive(Debug, Default)]
pub(super) struct Memo(Mutex<HashMap<ObjectKey, Arc<Chart>>>);

/// The template of one HelmChartProxy.
pub(super) struct Chart {
    text: String,
    template: Result<Template, String>,
    rendered: Mutex<HashMap<String, Rendered>>,
}

impl std::fmt::Debug for Chart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chart").finish_non_exhaustive()
    }
}

/// The values for one Cluster, and the versions of the objects that they were computed from.
struct Rendered {
    versions: [Option<String>; 3],
    values: Values,
}

impl Memo {
    /// The template of a HelmChartProxy, parsed.
    pub(super) fn chart(&self, key: &ObjectKey, text: &str) -> Arc<Chart> {
        let mut charts = self.0.lock();
        if let Some(chart) = charts.get(key).filter(|chart| chart.text == text) {
            return chart.clone();
        }
        let chart = Arc::new(Chart::new(text));
        charts.insert(key.clone(), chart.clone());
        chart
    }

    /// Forgets a HelmChartProxy.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }
}

impl Chart {
    fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            template: Template::parse(text).map_err(|error| error.to_string()),
            rendered: Mutex::default(),
        }
    }

    /// Why the template cannot be read.
    pub(super) fn problem(&self) -> Option<&str> {
        self.template.as_ref().err().map(String::as_str)
    }

    /// Forgets all other Clusters than these.
    pub(super) fn keep(&self, clusters: &[String]) {
        self.rendered.lock().retain(|name, _| clusters.contains(name));
    }

    /// The values for a Cluster, from the objects that it refers to as they are now.
    pub(super) async fn values(&self, cx: &Cx, cluster: &Cluster) -> Values {
        let Ok(template) = &self.template else {
            return Values::NotNeeded;
        };
        let refers = template.refers_to();
        let spec = &cluster.spec;
        // A kind that the template does not use is not even watched.
        let control_plane = spec.control_plane_ref.as_ref().filter(|_| refers.control_plane);
        let infra_cluster = spec.infrastructure_ref.as_ref().filter(|_| refers.infra_cluster);
        let control_plane = referred(cx, cluster, ".ControlPlane", control_plane).await;
        let infra_cluster = referred(cx, cluster, ".InfraCluster", infra_cluster).await;
        let (control_plane, infra_cluster) = match (control_plane, infra_cluster) {
            (Ok(control_plane), Ok(infra_cluster)) => (control_plane, infra_cluster),
            (Err(failed), _) | (_, Err(failed)) => return failed,
        };
        let of = |object: &Option<Arc<Dynamic>>| object.as_ref()?.metadata().resource_version.clone();
        let versions = [
            cluster.metadata.resource_version.clone(),
            of(&control_plane),
            of(&infra_cluster),
        ];
        let name = cluster.key().name;
        if let Some(known) = self
            .rendered
            .lock()
            .get(&name)
            .filter(|known| known.versions == versions)
        {
            return known.values.clone();
        }
        // A rendering may take long, and there is one for each Cluster: others run in between.
        tokio::task::yield_now().await;
        let values = render(template, cluster, control_plane.as_deref(), infra_cluster.as_deref());
        let rendered = Rendered {
            versions,
            values: values.clone(),
        };
        self.rendered.lock().insert(name, rendered);
        values
    }
}

/// An object that the template uses and the Cluster refers to.
async fn referred(
    cx: &Cx,
    cluster: &Cluster,
    name: &str,
    reference: Option<&ContractVersionedObjectReference>,
) -> Result<Option<Arc<Dynamic>>, Values> {
    let failed = |why: String, may_pass| Err(Values::Failed { why, may_pass });
    let Some(reference) = reference else { return Ok(None) };
    let key = ObjectKey::new(cluster.key().namespace, reference.name.as_str());
    let what = format!("{} {key}, which the template uses as {name},", reference.kind);
    match cx.dynamic_get(&reference.group_kind(), &key).await {
        Seen::Found(object) => Ok(Some(object)),
        Seen::NotFound => failed(format!("{what} does not exist"), false),
        Seen::Failed(why) => failed(format!("{what} cannot be read: {why}"), true),
    }
}

fn render(template: &Template, cluster: &Cluster, control_plane: Option<&Dynamic>, infra: Option<&Dynamic>) -> Values {
    let cluster = without_version(cluster.to_json());
    let of = |object: Option<&Dynamic>| object.map(|object| without_version(object.value().clone()));
    let (control_plane, infra_cluster) = (of(control_plane), of(infra));
    let objects = Objects {
        cluster: &cluster,
        control_plane: control_plane.as_ref(),
        infra_cluster: infra_cluster.as_ref(),
    };
    match template.render(&objects) {
        Ok(text) => Values::Rendered(text.into()),
        Err(error) => Values::Failed {
            why: error.to_string(),
            may_pass: false,
        },
    }
}

/// Removes the fields that every write changes: with them every event would be a new revision of the release.
fn without_version(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
        metadata.remove("managedFields");
    }
    object
}
