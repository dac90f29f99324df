//! The subresources of pods: eviction, which checks disruption budgets, and binding to a node.

use std::sync::Arc;

use http::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::builtin;
use crate::crds::registry::Custom;
use crate::error::{ApiError, Cause, Details};
use crate::http::body::{self, ApiBody};
use crate::http::context::RequestContext;
use crate::http::request::Query;
use crate::objects::convert::served;
use crate::objects::resource::Resource;
use crate::objects::stored;
use crate::verbs::delete::DeleteOptions;
use crate::verbs::mutation::Mutation;
use crate::verbs::options::{WriteOptions, WriteVerb};
use crate::verbs::read;
use windlass_objects::Part;
use windlass_objects::metadata::{is_deleting, meta, seconds, text};
use windlass_objects::selector::LabelSelector;
use windlass_store::Record;

/// The storage name of disruption budgets.
pub(crate) const BUDGETS: &str = "poddisruptionbudgets.policy";
/// The delay before a retry, in seconds, if the status of a budget is outdated.
const SOON: u32 = 10;

type Answer = Result<Response<ApiBody>, ApiError>;

fn success() -> Response<ApiBody> {
    body::json(
        201,
        &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    )
}

/// Evicts a pod: deletes it, unless a disruption budget forbids it.
pub(crate) async fn evict(asked: &RequestContext<'_>, resource: &Arc<Resource>, namespace: &str, name: &str) -> Answer {
    let (eviction, _) = asked.object()?;
    if !eviction.is_object() {
        return Err(ApiError::bad_request("the object must be an Eviction"));
    }
    let named = meta(&eviction, "name");
    if !named.is_empty() && named != name {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    let options = eviction.get("deleteOptions").cloned().unwrap_or(Value::Null);
    let mut delete = DeleteOptions::parse(&options, &Query::default())?;
    let write = WriteOptions::parse(&asked.query, WriteVerb::Create)?;
    delete.dry_run |= write.dry_run;
    let record = read::find(asked.server, resource, namespace, name)?;
    let pod = served(resource, &record)?;
    let call = asked.call(resource, namespace, &write);
    let mut warnings = Vec::new();
    if let Some(hooks) = call.webhooks() {
        Box::pin(call.ask_eviction(&hooks, name, eviction, delete.dry_run, &mut warnings)).await?;
        delete.admitted = true;
    }
    // What webhooks refuse spends nothing, as in kube-apiserver.
    if !is_free_to_go(&pod) {
        spend_budget(asked, namespace, &pod, &record.header.labels, delete.dry_run)
            .await
            .map_err(|e| e.warned(&mut warnings))?;
    }
    let done = call.delete(name, &delete).await.map_err(|e| e.warned(&mut warnings))?;
    warnings.extend(done.warnings);
    let mut response = success();
    for words in &warnings {
        crate::http::warnings::add(&mut response, words);
    }
    Ok(response)
}

/// Whether a pod is pending or finished, so that a budget does not protect it.
fn is_free_to_go(pod: &Value) -> bool {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or("");
    is_deleting(pod) || matches!(phase, "Succeeded" | "Failed" | "Pending")
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|c| text(c, "type") == "Ready" && text(c, "status") == "True")
}

/// Decreases the allowed disruptions of the budget that selects the pod.
async fn spend_budget(
    asked: &RequestContext<'_>,
    namespace: &str,
    pod: &Value,
    labels: &[(Box<str>, Box<str>)],
    dry_run: bool,
) -> Result<(), ApiError> {
    let mut budgets = Vec::new();
    for record in stored::all(&asked.server.store, BUDGETS, Some(namespace)) {
        let budget = Budget::of(&record)?;
        if budget.selects(labels) {
            budgets.push(budget);
        }
    }
    let budget = match budgets.as_slice() {
        [] => return Ok(()),
        [only] => only,
        _ => {
            return Err(ApiError::new(
                500,
                "",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
    };
    let Budget { metadata, spec, status } = budget;
    let number = |field: fn(&BudgetStatus) -> Option<i64>| status.as_ref().and_then(field).unwrap_or(0);
    let (healthy, wanted) = (number(|s| s.current_healthy), number(|s| s.desired_healthy));
    let allowed = number(|s| s.disruptions_allowed);
    if !is_ready(pod) {
        let policy = spec
            .as_ref()
            .and_then(|spec| spec.unhealthy_pod_eviction_policy.as_deref());
        if policy == Some("AlwaysAllow") || healthy >= wanted && wanted > 0 {
            return Ok(());
        }
    }
    let name = &metadata.name;
    if number(|s| s.observed_generation) < metadata.generation.unwrap_or(0) {
        let words = format!("The disruption budget {name} is still being processed by the server.");
        return Err(refused(words, Some(SOON)));
    }
    if allowed <= 0 {
        let words = format!("The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently");
        return Err(refused(words, None));
    }
    if dry_run {
        return Ok(());
    }
    let Some(resource) = Custom::default().find("policy", "v1", "poddisruptionbudgets") else {
        return Ok(());
    };
    let options = WriteOptions::default();
    let call = asked.call(&resource, namespace, &options);
    let change = json!({"status": {
        "disruptionsAllowed": allowed - 1,
        "disruptedPods": {meta(pod, "name"): seconds(asked.server.now())},
    }, "metadata": {"resourceVersion": metadata.resource_version}});
    call.change(name, &Mutation::Merge(change, Vec::new()), Part::Status)
        .await
        .map(|_| ())
}

/// What an eviction reads of a disruption budget. The rest, which may be large, is not decoded.
#[derive(Deserialize)]
struct Budget {
    metadata: BudgetMetadata,
    spec: Option<BudgetSpec>,
    status: Option<BudgetStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BudgetMetadata {
    name: String,
    generation: Option<i64>,
    resource_version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BudgetSpec {
    selector: Option<Value>,
    unhealthy_pod_eviction_policy: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BudgetStatus {
    observed_generation: Option<i64>,
    current_healthy: Option<i64>,
    desired_healthy: Option<i64>,
    disruptions_allowed: Option<i64>,
}

impl Budget {
    /// Decodes a stored budget. An eviction must not pass for want of one.
    fn of(record: &Record) -> Result<Self, ApiError> {
        serde_json::from_slice(&record.value)
            .map_err(|error| ApiError::internal(format!("stored object {:?} is unreadable: {error}", record.key)))
    }

    fn selects(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        let selector = self.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        selector.is_some_and(|selector| LabelSelector::from_object(selector).matches(labels))
    }
}

fn refused(words: String, retry_after: Option<u32>) -> ApiError {
    let mut error = ApiError::new(
        429,
        "TooManyRequests",
        "Cannot evict pod as it would violate the pod's disruption budget.",
    );
    error.details = Some(Box::new(Details {
        causes: vec![Cause {
            reason: "DisruptionBudget".to_owned(),
            message: words,
            field: String::new(),
        }],
        retry_after,
        ..Details::default()
    }));
    error
}

/// Binds a pod to the node of a Binding.
pub(crate) async fn bind(asked: &RequestContext<'_>, resource: &Arc<Resource>, namespace: &str, name: &str) -> Answer {
    let (binding, _) = asked.object()?;
    builtin::binding(name, &binding)?;
    let node = binding.pointer("/target/name").and_then(Value::as_str).unwrap_or("");
    let options = WriteOptions::parse(&asked.query, WriteVerb::Create)?;
    let call = asked.call(resource, namespace, &options);
    call.change(name, &Mutation::Bind(node.to_owned()), Part::Binding)
        .await?;
    Ok(success())
}

/// The bound pod.
pub(crate) fn bound(pod: &Value, node: &str, now: jiff::Timestamp) -> Result<Value, ApiError> {
    let name = meta(pod, "name");
    let refuse = |words: &str| ApiError::conflict("", "pods/binding", name, words);
    let at = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or("");
    if is_deleting(pod) {
        return Err(refuse(&format!(
            "pod {name} is being deleted, cannot be assigned to a host"
        )));
    }
    if !at.is_empty() {
        return Err(refuse(&format!("pod {name} is already assigned to node {at:?}")));
    }
    let mut out = pod.clone();
    out["spec"]["nodeName"] = node.into();
    let mut conditions = pod
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    conditions.retain(|c| text(c, "type") != "PodScheduled");
    conditions.push(json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": seconds(now),
    }));
    out["status"]["conditions"] = conditions.into();
    Ok(out)
}
