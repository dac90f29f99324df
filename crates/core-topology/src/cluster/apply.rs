//! Applies the steps. The only writer.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::{Value, json};
use windlass_api::core::Cluster;
use windlass_api::kind::ApiKind as _;
use windlass_api::meta::MetaExt as _;
use windlass_controller_runtime::{Cx, Dynamic, ErrorKind, EventType, ReconcileError, Repeats, WriteError};
use windlass_topology::model::text;
use windlass_topology::plan::{Action, Step, Verb};
use windlass_topology::{Target, keys};

use super::memory::Memory;
use super::observe::{Managed, Observed};
use super::plan::Plan;
use super::status;

/// The manager of the Cluster's labels and references, which are no generated object.
const CLUSTER_MANAGER: &str = "capi-manager";

/// How many failures are reported: the message of a condition has a limit.
const SHOWN: usize = 3;

/// What became of the steps.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// The steps that failed. Those that depend on them were not tried.
    pub(super) failed: Option<ReconcileError>,
    /// Whether one has changed something, or may have.
    pub(super) changed: bool,
}

pub(super) async fn apply(cx: &Cx, seen: &Observed, plan: &Plan, memory: &Memory) -> Done {
    let Observed::Managed(managed) = seen else {
        return Done::default();
    };
    let done = carry_out_all(cx, managed, plan, memory).await;
    if let Some(identity) = managed.identity.as_ref().filter(|_| plan.is_settled && !done.changed)
        && let Some(status) = status::status(seen, plan, &done, cx.now())
        && done.failed.is_none()
        && status::is_shown(&managed.value, &status)
    {
        memory.settled(managed.cluster.metadata.uid(), identity);
    }
    done
}

async fn carry_out_all(cx: &Cx, seen: &Managed, plan: &Plan, memory: &Memory) -> Done {
    let mut changed = false;
    let mut errors = Vec::new();
    let mut stopped = BTreeSet::new();
    let mut parts = Vec::new();
    for step in &plan.actions {
        if step.worker_set.as_ref().is_some_and(|name| stopped.contains(name)) {
            continue;
        }
        if let Some(rotation) = &step.rotation {
            memory.rotated(text(&seen.value, "/metadata/uid"), rotation, cx.now());
        }
        let result = carry_out(cx, seen, &step.action).await;
        changed |= !matches!(result, Ok(None));
        match result {
            Ok(made) if step.is_part => parts.extend(made.map(|made| (step, made))),
            Ok(made) => {
                // With the step that refers to them, its parts are there to stay.
                let parts = std::mem::take(&mut parts).into_iter().map(|(part, _)| part);
                for step in parts.chain(made.map(|_| step)) {
                    tracing::info!("{}", step.note);
                    report(cx, seen, step);
                }
            }
            Err(error) => {
                take_back(cx, std::mem::take(&mut parts), &error).await;
                if errors.len() < SHOWN {
                    errors.push(ReconcileError::from(&error));
                }
                // Worker sets do not depend on each other. A server that does not answer is not asked about each of them.
                match &step.worker_set {
                    Some(name) if error.kind() != ErrorKind::Transport => stopped.insert(name),
                    _ => break,
                };
            }
        }
    }
    Done {
        failed: ReconcileError::join(&errors),
        changed,
    }
}

/// Deletes what was made for a step that was refused: nothing refers to it. The next attempt makes it again, and the change that asked for it
/// may be gone by then. It stays when the step may have happened without an answer.
async fn take_back(cx: &Cx, parts: Vec<(&Step, Changed)>, error: &WriteError) {
    static SAID: Repeats = Repeats::new();
    if error.kind().is_ambiguous() {
        return;
    }
    for (part, made) in parts.iter().rev().filter(|(part, _)| part.verb == Verb::Create) {
        let Changed::Object(made) = made else { continue };
        match cx.writer().delete_value(made).await {
            Ok(_) => tracing::info!("taken back: {}", part.note),
            Err(error) => {
                let why = error.to_string();
                // The step fails again with each attempt.
                if let Some(repeated) = SAID.line(&part.note, &why, Instant::now()) {
                    tracing::warn!(
                        why,
                        repeated,
                        "what was made for a step that failed stays: {}",
                        part.note
                    );
                }
            }
        }
    }
}

/// What a step has changed.
enum Changed {
    /// The object that was applied.
    Object(Arc<Dynamic>),
    /// Something that is there already, or is there no more.
    Other,
}

/// None if nothing changed.
async fn carry_out(cx: &Cx, seen: &Managed, action: &Action) -> Result<Option<Changed>, WriteError> {
    match action {
        Action::PatchCluster(patch) => {
            let key = seen.cluster.key();
            // Refused when another Cluster has taken the name.
            let mut patch = patch.clone();
            patch["metadata"]["uid"] = text(&seen.value, "/metadata/uid").into();
            cx.writer()
                .merge_patch::<Cluster>(CLUSTER_MANAGER, &key, &patch)
                .await?;
            Ok(Some(Changed::Other))
        }
        Action::Apply(intent) => {
            let changed = cx.writer().apply_changed(keys::FIELD_MANAGER, intent).await?;
            Ok(changed.map(Changed::Object))
        }
        Action::Delete(target) => {
            let Ok(object) = Dynamic::new(stub(target)) else {
                return Ok(None);
            };
            cx.writer().delete_value(&object).await?;
            Ok(Some(Changed::Other))
        }
    }
}

fn stub(target: &Target) -> Value {
    json!({
        "apiVersion": target.api_version,
        "kind": target.kind,
        "metadata": {"namespace": target.namespace, "name": target.name, "uid": target.uid},
    })
}

/// Emits the event of a step that changed something: about the health check itself, else about the Cluster.
fn report(cx: &Cx, seen: &Managed, step: &Step) {
    let reason = match step.verb {
        Verb::Create => "TopologyCreate",
        Verb::Update => "TopologyUpdate",
        Verb::Delete => "TopologyDelete",
    };
    match &step.action {
        Action::Apply(object) if text(object, "/kind") == "MachineHealthCheck" => {
            let owned = |pointer: &str| Some(text(object, pointer).to_owned());
            let about = ObjectReference {
                api_version: owned("/apiVersion"),
                kind: owned("/kind"),
                namespace: owned("/metadata/namespace"),
                name: owned("/metadata/name"),
                ..ObjectReference::default()
            };
            cx.event_about(about, EventType::Normal, reason, step.event.clone());
        }
        _ => cx.event(&*seen.cluster, EventType::Normal, reason, step.event.clone()),
    }
}

impl windlass_controller_runtime::Done for Done {
    fn failed(&self) -> Option<&ReconcileError> {
        self.failed.as_ref()
    }
}
