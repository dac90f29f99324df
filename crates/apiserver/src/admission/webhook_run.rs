//! Calls the webhooks that match a write: mutating webhooks one after the other, validating webhooks concurrently.

mod permissions;

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;
use windlass_cel::{Budget, Facts, Permission};
use windlass_smd::PatchError;

use self::permissions::UserPermissions;
use crate::admission::webhook::Hooks;
use crate::admission::webhook::hook::Hook;
use crate::admission::webhook::matching::{Operation, is_exempt, seen_as};
use crate::admission::webhook::review::{KindName, Question, ResourceName, Unusable, Verdict, body, denied, read};
use crate::error::ApiError;
use crate::objects::convert::across;
use crate::objects::prepare::other_kind;
use crate::objects::resource::Resource;
use crate::state::Inner;
use windlass_objects::metadata::meta_value;
use windlass_rbac::user::UserInfo;
use windlass_rbac::user::user_value;

/// A write that webhooks review.
pub(crate) struct Occasion<'a> {
    pub(crate) server: &'a Inner,
    /// The resource, in the version of the request.
    pub(crate) resource: &'a Arc<Resource>,
    pub(crate) subresource: &'a str,
    /// The kind of the object, if a subresource has its own.
    pub(crate) kind: Option<KindName<'static>>,
    /// For a namespace, its own name.
    pub(crate) namespace: &'a str,
    /// The name in the request; empty until the server has chosen it.
    pub(crate) name: &'a str,
    pub(crate) operation: Operation,
    pub(crate) user: &'a UserInfo,
    pub(crate) dry_run: bool,
    /// CreateOptions, UpdateOptions or DeleteOptions.
    pub(crate) options: Value,
}

/// How the server processes an object after a webhook has changed it.
pub(crate) trait Again: Sync {
    /// Checks that it still has the name and namespace of the request.
    fn place(&self, object: &Value) -> Result<(), ApiError>;
    /// Completes and validates it.
    fn settle(&self, object: &mut Value) -> Result<(), ApiError>;
    /// Passes it to the in-process hooks again.
    fn admit(&self, object: &mut Value, warnings: &mut Vec<String>) -> Result<(), ApiError>;
}

/// Why a webhook has no usable decision.
enum Failure {
    /// The call failed: the failure policy decides.
    Call(String),
    /// The request fails regardless of the policy.
    Refused(ApiError),
}

/// A write in the version that a webhook sees.
struct Seen<'o> {
    /// The resource in that version.
    resource: Arc<Resource>,
    object: Option<Cow<'o, Value>>,
    old: Option<Cow<'o, Value>>,
}

impl Occasion<'_> {
    /// Whether webhooks may be called for the resource.
    pub(crate) fn concerns(resource: &Resource) -> bool {
        !is_exempt(resource)
    }

    /// Calls the mutating webhooks in order. Those with a reinvocation policy are called again after later webhooks have changed
    /// the object.
    pub(crate) async fn mutate(
        &self,
        hooks: &Hooks,
        mut object: Option<&mut Value>,
        old: Option<&Value>,
        again: &dyn Again,
        warnings: &mut Vec<String>,
    ) -> Result<bool, ApiError> {
        let mut changed = false;
        let mut asked = vec![false; hooks.mutating.len()];
        let mut wanted = asked.clone();
        for first in [true, false] {
            for (index, hook) in hooks.mutating.iter().enumerate() {
                if !first && !wanted[index] {
                    continue;
                }
                let Some(seen) = self.wants(hook, object.as_deref(), old, true).await? else {
                    continue;
                };
                let made = self.change(hook, seen, again, warnings).await?;
                if let (Some(made), Some(object)) = (made, object.as_deref_mut())
                    && made != *object
                {
                    *object = made;
                    changed = true;
                    // Earlier webhooks have not seen this change.
                    wanted.clone_from(&asked);
                }
                asked[index] |= hook.again;
            }
            let Some(object) = object.as_deref_mut().filter(|_| first && changed) else {
                break;
            };
            let before = object.clone();
            again.admit(object, warnings)?;
            if *object != before {
                wanted.clone_from(&asked);
            }
        }
        Ok(changed)
    }

    /// Calls the validating webhooks concurrently. The first refusal, in the order of the webhooks, is the response.
    pub(crate) async fn validate(
        &self,
        hooks: &Hooks,
        object: Option<&Value>,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let mut calls = Vec::new();
        for hook in &hooks.validating {
            if let Some(seen) = self.wants(hook, object, old, false).await? {
                calls.push(async move {
                    let mut words = Vec::new();
                    let answer = self.ask(hook, &seen, false, &mut words).await;
                    (words, answer.map_or_else(|e| self.judge(hook, e), |_| Ok(())))
                });
            }
        }
        let mut result = Ok(());
        for (words, answer) in futures::future::join_all(calls).await {
            add(warnings, words);
            result = result.and(answer);
        }
        result
    }

    /// Whether a webhook matches this write, and the write in the version that it sees.
    async fn wants<'o>(
        &self,
        hook: &Hook,
        object: Option<&'o Value>,
        old: Option<&'o Value>,
        mutating: bool,
    ) -> Result<Option<Seen<'o>>, ApiError> {
        let is_namespace = self.resource.group.is_empty() && self.resource.plural == "namespaces";
        let versions = || self.server.registry().versions(self.resource);
        let namespaced = !is_namespace && !self.namespace.is_empty();
        let Some(resource) = seen_as(
            hook,
            self.resource,
            versions,
            self.subresource,
            self.operation,
            namespaced,
        ) else {
            return Ok(None);
        };
        if !hook.objects.is_empty() {
            let selected = |object: Option<&Value>| {
                object.is_some_and(|object| hook.objects.matches_map(meta_value(object, "labels")))
            };
            if !selected(object) && !selected(old) {
                return Ok(None);
            }
        }
        if !hook.namespaces.is_empty() && !self.namespace.is_empty() {
            let namespace = object.filter(|_| is_namespace && self.subresource.is_empty());
            let selected = if let Some(namespace) = namespace {
                hook.namespaces.matches_map(meta_value(namespace, "labels"))
            } else {
                let storage = self.server.storage_name("namespaces");
                let found = self.server.store.get(&storage, "", self.namespace);
                let Some(record) = found else {
                    return Err(ApiError::not_found("", "namespaces", self.namespace));
                };
                hook.namespaces.matches(&record.header.labels)
            };
            if !selected {
                return Ok(None);
            }
        }
        let unconverted = |error: ApiError| {
            let error = ApiError::internal(error);
            // kube-apiserver wraps this error twice for mutating webhooks.
            if mutating { ApiError::internal(error) } else { error }
        };
        let seen = Seen {
            object: self.view(&resource, object).await.map_err(unconverted)?,
            old: self.view(&resource, old).await.map_err(unconverted)?,
            resource,
        };
        let holds = hook.conditions.is_empty() || self.conditions_hold(hook, &seen)?;
        Ok(holds.then_some(seen))
    }

    /// Whether all match conditions hold. One that is false is enough to skip the webhook; one that fails to evaluate is a
    /// failure.
    fn conditions_hold(&self, hook: &Hook, seen: &Seen<'_>) -> Result<bool, ApiError> {
        let uses = |variable| hook.conditions.iter().flatten().any(|c| c.uses(variable));
        let mut facts = Facts::new();
        for (name, value) in [("object", &seen.object), ("oldObject", &seen.old)] {
            if uses(name) {
                facts.set(name, value.as_deref());
            }
        }
        if uses("request") {
            facts.set("request", Some(&self.facts(&seen.resource)));
        }
        if uses("authorizer") {
            let asked = UserPermissions {
                authorizer: Arc::clone(&self.server.authorizer),
                user: self.user.clone(),
            };
            facts.set_authorizer(Arc::new(asked), self.permission());
        }
        let mut errors = Vec::new();
        let mut budget = Budget::default();
        for condition in &hook.conditions {
            let condition = condition.as_ref().map_err(String::clone);
            match condition.and_then(|condition| condition.holds(&facts, &mut budget)) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(why) => errors.push(why),
            }
            if budget.is_spent() {
                break;
            }
        }
        if errors.is_empty() {
            return Ok(true);
        }
        let words = match errors.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        if hook.ignore_failures {
            if let Some(repeated) = self.said(hook, &words) {
                tracing::warn!(
                    webhook = hook.name,
                    repeated,
                    "its conditions cannot be evaluated, it is passed over: {words}"
                );
            }
            return Ok(false);
        }
        let resource = self.resource;
        Err(ApiError::forbidden(
            &resource.group,
            &resource.plural,
            self.name,
            &words,
        ))
    }

    /// The permission that the request needs.
    fn permission(&self) -> Permission {
        Permission {
            group: self.resource.group.clone(),
            resource: self.resource.plural.clone(),
            subresource: self.subresource.to_owned(),
            namespace: self.namespace.to_owned(),
            name: self.name.to_owned(),
            ..Permission::default()
        }
    }

    /// The variable `request` of match conditions, without the objects, which are separate variables.
    fn facts(&self, seen: &Resource) -> Value {
        let user = user_value(self.user);
        let question = self.question(seen, None, None, String::new(), &user);
        let mut facts = serde_json::to_value(question).unwrap_or_default();
        if let Some(map) = facts.as_object_mut() {
            map.retain(|key, _| !matches!(key.as_str(), "uid" | "object" | "oldObject"));
        }
        facts
    }

    /// Calls a mutating webhook. Returns the changed object, if it was changed.
    async fn change(
        &self,
        hook: &Hook,
        seen: Seen<'_>,
        again: &dyn Again,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Value>, ApiError> {
        let mut words = Vec::new();
        let answer = self.ask(hook, &seen, true, &mut words).await;
        add(warnings, words);
        let patch = answer.and_then(|verdict| match verdict.patch {
            Some(encoded) => serde_json::from_slice::<Value>(&encoded)
                .map(Some)
                .map_err(|e| undecodable(&e)),
            None => Ok(None),
        });
        let patch = match patch {
            Ok(Some(Value::Array(steps))) if steps.is_empty() => return Ok(None),
            Ok(None) => return Ok(None),
            Ok(Some(patch @ Value::Array(_))) => patch,
            Ok(Some(other)) => {
                let what = if other.is_object() { "object" } else { "value" };
                let why = format!("json: cannot unmarshal {what} into Go value of type jsonpatch.Patch");
                return self.judge(hook, undecodable(&why)).map(|()| None);
            }
            Err(failure) => return self.judge(hook, failure).map(|()| None),
        };
        let Some(object) = seen.object else {
            return Err(ApiError::internal(format!(
                "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
                hook.name
            )));
        };
        let kind = ["apiVersion", "kind"].map(|key| (key, object.get(key).cloned()));
        let mut patched = object.into_owned();
        match windlass_smd::json_patch(&mut patched, &patch) {
            Ok(()) => {}
            Err(
                PatchError::BadPatch(why)
                | PatchError::Unprocessable(why)
                | PatchError::TooLarge(why)
                | PatchError::Unnamed(why),
            ) => return Err(ApiError::internal(why)),
        }
        let broken = |why: &str| {
            ApiError::internal(format!(
                "the patch of admission webhook {:?} breaks the object: {why}",
                hook.name
            ))
        };
        for (key, value) in kind {
            if patched.get(key) != value.as_ref() {
                if key == "kind" && self.resource.is_custom() {
                    return Err(other_kind(self.resource, &patched));
                }
                let value = value.unwrap_or_default();
                return Err(broken(&format!("{key} must stay {value}")));
            }
        }
        let mut patched = self.back(&seen.resource, patched).await?;
        again.place(&patched)?;
        again.settle(&mut patched).map_err(|error| broken(&error.message))?;
        Ok(Some(patched))
    }

    fn is_converted(&self, seen: &Arc<Resource>) -> bool {
        self.kind.is_none() && !Arc::ptr_eq(seen, self.resource) && seen.api_version() != self.resource.api_version()
    }

    /// An object in the version that a webhook sees.
    async fn view<'o>(
        &self,
        seen: &Arc<Resource>,
        object: Option<&'o Value>,
    ) -> Result<Option<Cow<'o, Value>>, ApiError> {
        let Some(object) = object.filter(|_| self.is_converted(seen)) else {
            return Ok(object.map(Cow::Borrowed));
        };
        let converted = across(self.server, self.resource, seen, object.clone()).await;
        converted.map(|object| Some(Cow::Owned(object)))
    }

    /// A changed object in the version of the request.
    async fn back(&self, seen: &Arc<Resource>, mut object: Value) -> Result<Value, ApiError> {
        if !self.is_converted(seen) {
            return Ok(object);
        }
        if let Some(schema) = seen.schema().filter(|_| seen.is_custom()) {
            windlass_schema::default(schema, &mut object);
        }
        across(self.server, seen, self.resource, object).await
    }

    async fn ask(
        &self,
        hook: &Hook,
        seen: &Seen<'_>,
        mutating: bool,
        warnings: &mut Vec<String>,
    ) -> Result<Verdict, Failure> {
        if self.dry_run && !hook.dry_run {
            return Err(Failure::Refused(ApiError::bad_request(format!(
                "admission webhook {:?} does not support dry run",
                hook.name
            ))));
        }
        let uid = uuid::Uuid::new_v4().to_string();
        let body = {
            let user = user_value(self.user);
            let (object, old) = (seen.object.as_deref(), seen.old.as_deref());
            let question = self.question(&seen.resource, object, old, uid.clone(), &user);
            body(hook.version, &question)
        };
        let services = &self.server.options.webhook_services;
        let answer = hook
            .endpoint
            .post(services, hook.timeout, body)
            .await
            .map_err(|unanswered| Failure::Call(unanswered.of_admission()))?;
        let verdict = read(&answer, hook.version, &uid, mutating).map_err(|unusable| {
            Failure::Call(match unusable {
                Unusable::Unreadable(why) => format!("failed to call webhook: {why}"),
                Unusable::Invalid(why) => format!("received invalid webhook response: {why}"),
            })
        })?;
        warnings.extend(verdict.warnings.iter().cloned());
        if verdict.allowed {
            return Ok(verdict);
        }
        tracing::debug!(
            webhook = hook.name,
            configuration = hook.configuration,
            "a webhook denied a request"
        );
        Err(Failure::Refused(denied(&hook.name, verdict.status.as_ref())))
    }

    fn question<'q>(
        &'q self,
        seen: &'q Resource,
        object: Option<&'q Value>,
        old_object: Option<&'q Value>,
        uid: String,
        user_info: &'q Value,
    ) -> Question<'q> {
        Question {
            uid,
            kind: self.kind_of(seen),
            resource: resource_of(seen),
            sub_resource: self.subresource,
            request_kind: self.kind_of(self.resource),
            request_resource: resource_of(self.resource),
            request_sub_resource: self.subresource,
            name: self.name,
            namespace: self.namespace,
            operation: self.operation,
            user_info,
            object,
            old_object,
            dry_run: self.dry_run,
            options: &self.options,
        }
    }

    fn kind_of<'r>(&self, resource: &'r Resource) -> KindName<'r> {
        self.kind.clone().unwrap_or(KindName {
            group: &resource.group,
            version: &resource.version,
            kind: &resource.kind,
        })
    }

    /// Applies the failure policy of a webhook.
    fn judge(&self, hook: &Hook, failure: Failure) -> Result<(), ApiError> {
        match failure {
            Failure::Refused(error) => Err(error),
            Failure::Call(why) => {
                let words = format!("failed calling webhook {:?}: {why}", hook.name);
                let (resource, operation) = (&self.resource.plural, self.operation.text());
                let configuration = &hook.configuration;
                if let Some(repeated) = self.said(hook, &words) {
                    let what = if hook.ignore_failures {
                        "it is passed over"
                    } else {
                        "the request fails"
                    };
                    tracing::warn!(resource, operation, configuration, repeated, "{words}; {what}");
                }
                if hook.ignore_failures {
                    return Ok(());
                }
                Err(ApiError::internal(words))
            }
        }
    }

    /// Whether a failure of a webhook is to be logged: how often it was left out before.
    fn said(&self, hook: &Hook, words: &str) -> Option<u64> {
        let about = format!("{}/{} {}", hook.configuration, hook.name, self.resource.plural);
        self.server.said.line(&about, words, std::time::Instant::now())
    }
}

fn resource_of(resource: &Resource) -> ResourceName<'_> {
    ResourceName {
        group: &resource.group,
        version: &resource.version,
        resource: &resource.plural,
    }
}

fn undecodable(why: &dyn std::fmt::Display) -> Failure {
    Failure::Call(format!("received undecodable patch in webhook response: {why}"))
}

/// Adds warnings that are not in the list yet.
fn add(warnings: &mut Vec<String>, words: Vec<String>) {
    let mut known: HashSet<String> = warnings.iter().cloned().collect();
    warnings.extend(words.into_iter().filter(|word| known.insert(word.clone())));
}
