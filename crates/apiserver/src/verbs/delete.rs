//! delete and deletecollection.

mod options;

use std::sync::Arc;

use serde_json::{Value, json};
use windlass_store::{Change, CommitError, Expect, Record, Write};

use crate::error::ApiError;
use crate::objects::convert::{ANY_SIZE, bring_one, served, stored_form};
use crate::objects::resource::Resource;
use crate::verbs::call::Call;
use crate::verbs::call::holds;
use windlass_builtin_kinds::Special;
use windlass_objects::metadata::{finalizers, generation, is_deleting, meta, meta_value, seconds, set_meta, text};

pub(crate) use self::options::DeleteOptions;

/// The finalizer for orphaning dependents.
pub(crate) const ORPHAN: &str = "orphan";
/// The finalizer for deleting dependents first.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// A warning for clients that may not expect orphaned pods.
const KEPT_PODS: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";

/// What happens to dependents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    Orphan,
    Background,
    Foreground,
}

/// The outcome of a deletion.
pub(crate) struct Deleted {
    /// The object as it is now, or was last, in the served version.
    pub(crate) object: Value,
    pub(crate) gone: bool,
    pub(crate) warnings: Vec<String>,
}

/// The effect of a deletion on an object: with finalizers it is marked, otherwise deleted. Pure.
pub(crate) fn plan(
    special: Special,
    old: &Value,
    options: &DeleteOptions,
    now: jiff::Timestamp,
    graceful: bool,
) -> Option<Value> {
    if special == Special::Crd && !is_deleting(old) {
        return Some(plan_definition(old, now));
    }
    if special == Special::Namespace && is_deleting(old) && holds_namespace(old) {
        return Some(old.clone());
    }
    let mut new = old.clone();
    let list = propagated(old, options.propagation.or_else(|| by_default(old)));
    let grace = grace_seconds(special, old, options, graceful);
    // A namespace is always marked first, because the namespace controller must see it.
    let namespace_holds = special == Special::Namespace && (!is_deleting(old) || holds_namespace(old));
    set_meta(&mut new, "finalizers", (!list.is_empty()).then(|| json!(list)));
    if list.is_empty() && !namespace_holds && grace == 0 {
        return None;
    }
    if !is_deleting(old) {
        let at = now + jiff::SignedDuration::from_secs(grace);
        set_meta(&mut new, "deletionTimestamp", Some(seconds(at).into()));
        if special != Special::Namespace {
            set_meta(&mut new, "deletionGracePeriodSeconds", Some(grace.into()));
        }
        if generation(old) > 0 {
            set_meta(&mut new, "generation", Some((generation(old) + 1).into()));
        }
    } else if meta_value(old, "deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(0)
        > grace
    {
        let at = now + jiff::SignedDuration::from_secs(grace);
        set_meta(&mut new, "deletionTimestamp", Some(seconds(at).into()));
        set_meta(&mut new, "deletionGracePeriodSeconds", Some(grace.into()));
    }
    if special == Special::Namespace
        && let Some(map) = new.as_object_mut()
    {
        map.entry("status").or_insert_with(|| json!({}))["phase"] = "Terminating".into();
    }
    Some(new)
}

fn holds_namespace(namespace: &Value) -> bool {
    let held = namespace.pointer("/spec/finalizers").and_then(Value::as_array);
    held.is_some_and(|list| !list.is_empty())
}

/// The default propagation if neither the request nor a finalizer states one. The oldest kinds orphan their dependents, because
/// their clients expect that.
fn by_default(object: &Value) -> Option<Propagation> {
    let decided = finalizers(object).iter().any(|f| matches!(*f, ORPHAN | FOREGROUND));
    (leaves_dependents(object) && !decided).then_some(Propagation::Orphan)
}

fn leaves_dependents(object: &Value) -> bool {
    matches!(
        (text(object, "apiVersion"), text(object, "kind")),
        ("batch/v1", "Job") | ("v1", "ReplicationController")
    )
}

/// The finalizers of an object, with the one of a propagation.
fn propagated(object: &Value, propagation: Option<Propagation>) -> Vec<String> {
    let mut list: Vec<String> = finalizers(object).into_iter().map(str::to_owned).collect();
    let Some(propagation) = propagation else {
        return list;
    };
    // Events have no dependents.
    if text(object, "kind") == "Event" {
        return list;
    }
    list.retain(|f| f != ORPHAN && f != FOREGROUND);
    match propagation {
        Propagation::Orphan => list.push(ORPHAN.to_owned()),
        Propagation::Foreground => list.push(FOREGROUND.to_owned()),
        Propagation::Background => {}
    }
    list
}

/// Whether the response to a completed deletion shows the deleted object.
fn shows_deleted(resource: &Resource) -> bool {
    const KINDS: [&str; 11] = [
        "CSIDriver",
        "CSINode",
        "Namespace",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "ResourceQuota",
        "Service",
        "ServiceAccount",
        "StorageClass",
        "VolumeAttachment",
    ];
    !resource.is_custom() && KINDS.contains(&resource.kind.as_str())
}

/// A definition is always marked first: it is deleted after its objects, with any options.
fn plan_definition(old: &Value, now: jiff::Timestamp) -> Value {
    let mut new = old.clone();
    let mut list: Vec<&str> = finalizers(old);
    if !list.contains(&crate::crds::FINALIZER) {
        list.push(crate::crds::FINALIZER);
    }
    set_meta(&mut new, "finalizers", Some(json!(list)));
    set_meta(&mut new, "deletionTimestamp", Some(seconds(now).into()));
    crate::crds::set_terminating(&mut new, crate::crds::Deletion::Pending, &seconds(now));
    new
}

/// The grace period of a pod; other objects have none.
fn grace_seconds(special: Special, old: &Value, options: &DeleteOptions, graceful: bool) -> i64 {
    if special != Special::Pod || !graceful {
        return 0;
    }
    let field = |pointer: &str| old.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    let placed = !field("/spec/nodeName").is_empty();
    if !placed || matches!(field("/status/phase"), "Succeeded" | "Failed") {
        return 0;
    }
    options
        .grace
        .or_else(|| {
            old.pointer("/spec/terminationGracePeriodSeconds")
                .and_then(Value::as_i64)
        })
        .unwrap_or(30)
        .max(0)
}

impl Call<'_> {
    fn check_preconditions(&self, record: &Record, options: &DeleteOptions) -> Result<(), ApiError> {
        let conflict = |what: &str, wanted: &str, have: &str, then: &str| {
            let (words, kind) = if self.resource.special == Special::Namespace {
                let words =
                    format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {have}");
                (words, &self.resource.plural)
            } else {
                let words = format!(
                    "the {what} in the precondition ({wanted}) does not match the {what} in record ({have}). The object might have been {then}"
                );
                (words, &self.resource.kind)
            };
            ApiError::conflict(&self.resource.group, kind, record.key.name(), &words)
        };
        if let Some(uid) = options.uid.as_deref()
            && uid != record.header.uid.as_ref()
        {
            return Err(conflict("UID", uid, &record.header.uid, "deleted and then recreated"));
        }
        let have = record.revision.to_string();
        if let Some(revision) = options.revision.as_deref()
            && revision != have
        {
            return Err(conflict("ResourceVersion", revision, &have, "modified"));
        }
        Ok(())
    }

    /// Deletes one object.
    pub(crate) async fn delete(&self, name: &str, options: &DeleteOptions) -> Result<Deleted, ApiError> {
        const TRIES: usize = 20;
        if self.resource.special == Special::Namespace && matches!(name, "default" | "kube-system" | "kube-public") {
            return Err(ApiError::forbidden(
                "",
                "namespaces",
                name,
                "this namespace may not be deleted",
            ));
        }
        for _ in 0..TRIES {
            let record = crate::verbs::read::find_served(self.server, self.resource, self.namespace, name).await?;
            self.check_preconditions(&record, options)?;
            let old = served(self.resource, &record)?;
            let mut warnings = Vec::new();
            self.check_deletion(&old, options.dry_run, &mut warnings)?;
            if self.resource.kind == "Job" && leaves_dependents(&old) && options.propagation.is_none() {
                warnings.push(KEPT_PODS.to_owned());
            }
            if let Some(hooks) = self.webhooks().filter(|_| !options.admitted) {
                Box::pin(self.ask_deletion(&hooks, &old, options, &mut warnings)).await?;
            }
            let graceful = self.server.options.graceful_pods;
            let planned = plan(self.resource.special, &old, options, self.server.now(), graceful);
            if let Some(done) = self.carry_out(&record, old, planned, options.dry_run, warnings).await? {
                return Ok(done);
            }
        }
        Err(ApiError::modified(&self.resource.group, &self.resource.plural, name))
    }

    async fn carry_out(
        &self,
        record: &Arc<Record>,
        old: Value,
        planned: Option<Value>,
        dry_run: bool,
        warnings: Vec<String>,
    ) -> Result<Option<Deleted>, ApiError> {
        let name = record.key.name();
        let expect = Expect::Revision(record.revision);
        let key = record.key.clone();
        let gone = planned.is_none();
        if dry_run {
            return Ok(Some(Deleted {
                object: planned.unwrap_or(old),
                gone,
                warnings,
            }));
        }
        let change = match &planned {
            None => Change::Delete(None),
            Some(new) if !crate::objects::prepare::differs(&old, new) => {
                return Ok(Some(Deleted {
                    object: old,
                    gone: false,
                    warnings,
                }));
            }
            Some(new) => {
                let is_namespace = self.resource.special == Special::Namespace;
                debug_assert!(is_namespace || !finalizers(new).is_empty() || holds(self.resource, new));
                Change::Put(stored_form(self.server, self.resource, new, ANY_SIZE).await?)
            }
        };
        match self.commit(name, vec![Write { key, expect, change }]).await {
            Ok(records) => {
                self.settle().await;
                let object = match records.first() {
                    Some(record) => {
                        let record = bring_one(self.server, self.resource, Arc::clone(record)).await?;
                        served(self.resource, &record)?
                    }
                    None => old,
                };
                Ok(Some(Deleted { object, gone, warnings }))
            }
            Err(CommitError::Conflict { .. }) => Ok(None),
            Err(CommitError::Storage(error)) => Err(ApiError::storage(&error)),
        }
    }

    /// The response to a completed deletion.
    pub(crate) fn success(&self, object: &Value) -> Value {
        if shows_deleted(self.resource) {
            let mut last = object.clone();
            if self.resource.special == Special::Pod && !is_deleting(&last) {
                set_meta(&mut last, "deletionTimestamp", Some(seconds(self.server.now()).into()));
                set_meta(&mut last, "deletionGracePeriodSeconds", Some(0.into()));
            }
            return last;
        }
        let mut details = json!({
            "name": meta(object, "name"),
            "kind": self.resource.plural,
            "uid": meta(object, "uid"),
        });
        if !self.resource.group.is_empty() {
            details["group"] = self.resource.group.clone().into();
        }
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(special: Special, old: &Value, options: &DeleteOptions, want: Option<&Value>) {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        assert_eq!(plan(special, old, options, now, true).as_ref(), want);
    }

    #[test]
    fn what_has_no_finalizer_goes() {
        let object = json!({"metadata": {"name": "a"}});
        check(Special::None, &object, &DeleteOptions::default(), None);
    }

    #[test]
    fn what_has_a_finalizer_is_marked() {
        let object = json!({"metadata": {"name": "a", "generation": 2, "finalizers": ["x/y"]}});
        check(
            Special::None,
            &object,
            &DeleteOptions::default(),
            Some(
                &json!({"metadata": {"name": "a", "generation": 3, "finalizers": ["x/y"],
                "deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 0}}),
            ),
        );
    }

    #[test]
    fn propagation_becomes_a_finalizer() {
        let options = DeleteOptions {
            propagation: Some(Propagation::Foreground),
            ..DeleteOptions::default()
        };
        let object = json!({"metadata": {"name": "a", "finalizers": ["orphan"]}});
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let new = plan(Special::None, &object, &options, now, false).unwrap();
        assert_eq!(finalizers(&new), [FOREGROUND]);
        // A background deletion cancels a waiting foreground deletion.
        let options = DeleteOptions {
            propagation: Some(Propagation::Background),
            ..DeleteOptions::default()
        };
        assert!(plan(Special::None, &new, &options, now, false).is_none());
    }

    #[test]
    fn a_running_pod_gets_time() {
        let pod = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30}});
        check(
            Special::Pod,
            &pod,
            &DeleteOptions::default(),
            Some(
                &json!({"metadata": {"name": "a", "deletionTimestamp": "2026-01-02T03:04:35Z", "deletionGracePeriodSeconds": 30},
                "spec": {"nodeName": "n", "terminationGracePeriodSeconds": 30}}),
            ),
        );
        let now_please = DeleteOptions {
            grace: Some(0),
            ..DeleteOptions::default()
        };
        check(Special::Pod, &pod, &now_please, None);
    }
}
