//! Admission in the process of the embedded server: calls the functions of the webhooks directly.

use std::sync::Arc;

use crate::registry::admission;
use crate::{BuiltIns, FeatureGates};
use futures::FutureExt as _;
use serde_json::Value;
use windlass_admission::{
    Asker, Change, Found, Operation, Read, Reference, Refusal, Right, Rule, Unread, Verdict, View, decide,
};
use windlass_api::core::Cluster;
use windlass_api::kind::ApiKind as _;
use windlass_apiserver::{
    AdmissionHook, AdmissionRequest, AdmissionVerb, ApiError, Attributes, Lookup, Target, UserInfo,
};

/// Admission of writes of all kinds.
#[derive(Debug)]
pub struct InProcess {
    rules: Vec<Rule>,
}

impl Default for InProcess {
    /// With the rules of all kinds.
    fn default() -> Self {
        Self {
            rules: admission::rules(&FeatureGates::default()),
        }
    }
}

impl InProcess {
    /// With the rules of all kinds behind these feature gates, where these providers are built in.
    pub fn new(gates: &FeatureGates, built_ins: &BuiltIns) -> Self {
        Self {
            rules: admission::rules_of(gates, built_ins),
        }
    }

    fn rule(&self, request: &AdmissionRequest<'_>) -> Option<&Rule> {
        let asked = (request.group, request.resource);
        self.rules.iter().find(|rule| (rule.group, rule.resource) == asked)
    }
}

static NOTHING: Value = Value::Null;

/// A write as rules see it.
fn change<'a>(
    request: &'a AdmissionRequest<'a>,
    resource: &'a str,
    new: &'a Value,
    view: &'a Objects<'a>,
) -> Change<'a> {
    let old = request.old.unwrap_or(&NOTHING);
    let (operation, old, new) = match request.verb {
        AdmissionVerb::Create => (Operation::Create, &NOTHING, new),
        AdmissionVerb::Update => (Operation::Update, old, new),
        AdmissionVerb::Delete => (Operation::Delete, old, &NOTHING),
    };
    Change {
        resource,
        operation,
        dry_run: request.dry_run,
        old,
        new,
        view,
    }
}

/// What a verdict means for a request.
fn settled(
    request: &AdmissionRequest<'_>,
    verdict: Result<Verdict, Unread>,
    warnings: &mut Vec<String>,
) -> Result<(), ApiError> {
    let verdict = verdict.map_err(|unread| ApiError::internal(unread.why))?;
    warnings.extend(verdict.warnings);
    if let Some(why) = verdict.forbidden {
        return Err(ApiError::new(403, "Forbidden", why));
    }
    if verdict.errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(
        request.group,
        request.kind,
        request.name,
        &verdict.errors,
    ))
}

impl AdmissionHook for InProcess {
    fn complete(
        &self,
        request: &AdmissionRequest<'_>,
        object: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<bool, ApiError> {
        let Some(rule) = self.rule(request).filter(|rule| rule.admission.complete.is_some()) else {
            return Ok(false);
        };
        if !request.subresource.is_empty() {
            return Ok(false);
        }
        let (resource, view) = (rule.qualified(), Objects(request.server));
        let before = object.clone();
        // What a rule says of an object that it looks at, it says only to users who may refer to it.
        if let Some(reference) = rule.reference(&change(request, &resource, &before, &view)) {
            may_refer(request, &reference)?;
        }
        let change = change(request, &resource, &NOTHING, &view);
        settled(request, rule.complete(&change, object), warnings)?;
        Ok(*object != before)
    }

    fn check(
        &self,
        request: &AdmissionRequest<'_>,
        object: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let Some(rule) = self.rule(request) else {
            return Ok(());
        };
        match request.subresource {
            "" => {}
            "scale" => {
                let replicas = object["spec"]["replicas"].as_i64().unwrap_or_default();
                let refused = rule.admission.scale.and_then(|check| check(replicas, object));
                return refused.map_or(Ok(()), |why| Err(ApiError::new(403, "Forbidden", why)));
            }
            _ => return Ok(()),
        }
        let (resource, view) = (rule.qualified(), Objects(request.server));
        let change = change(request, &resource, object, &view);
        // A webhook may have changed it since.
        if let Some(reference) = rule.reference(&change) {
            may_refer(request, &reference)?;
        }
        settled(request, rule.check(&change), warnings)
    }
}

/// The objects of the server, as rules look at them. They are never behind.
struct Objects<'a>(&'a dyn Lookup);

impl View for Objects<'_> {
    fn read(&self, read: &Read) -> Result<Found, Unread> {
        let (group, kind) = match read {
            Read::Object { group, kind, .. } | Read::Labelled { group, kind, .. } => (group.as_str(), kind.as_str()),
            Read::ClustersOf { .. } => (Cluster::GROUP, Cluster::KIND),
        };
        let Some((version, plural)) = self.0.resource(group, kind) else {
            return Ok(Vec::new());
        };
        let resource = (group, version.as_str(), plural.as_str());
        let found = match read {
            Read::Object { namespace, name, .. } => {
                let found = self.0.object(resource, namespace, name);
                found.map(Vec::from_iter)
            }
            Read::Labelled { namespace, labels, .. } => self.0.labelled(resource, namespace, labels),
            Read::ClustersOf { name, .. } => {
                let named = format!("\"name\":{}", Value::from(name.as_str()));
                self.0.objects(resource, None, &["\"classRef\":", &named])
            }
        };
        let found = found.map_err(|error| Unread {
            why: format!("{read} cannot be read, and the write depends on it: {error}; try again"),
        })?;
        Ok(found
            .into_iter()
            .filter(|object| read.includes(object))
            .map(Arc::new)
            .collect())
    }
}

/// Whether the user of a request may refer to an object.
fn may_refer(request: &AdmissionRequest<'_>, reference: &Reference) -> Result<(), ApiError> {
    let asker = Server {
        server: request.server,
        user: request.user,
    };
    // The server answers from memory, so this never waits.
    let decided = decide(reference, &request.user.name, &asker).now_or_never();
    match decided {
        Some(Ok(())) => Ok(()),
        Some(Err(Refusal::Forbidden(why))) => {
            Err(ApiError::forbidden(request.group, request.resource, request.name, &why))
        }
        Some(Err(Refusal::Unknown(why))) => Err(ApiError::internal(why)),
        None => Err(ApiError::internal("the rights of the user were not answered at once")),
    }
}

/// The server of a request, about its user.
struct Server<'a> {
    server: &'a dyn Lookup,
    user: &'a UserInfo,
}

impl Asker for Server<'_> {
    async fn may(&self, right: &Right<'_>) -> Result<bool, String> {
        let asked = Attributes {
            verb: right.verb,
            target: Target::Resource {
                group: right.group,
                resource: right.resource,
                subresource: "",
                namespace: right.namespace,
                name: right.name,
            },
        };
        Ok(self.server.allows(self.user, &asked))
    }

    async fn read(&self, reference: &Reference) -> Result<Option<Value>, String> {
        let resource = (reference.group, reference.version, reference.resource);
        let found = self.server.object(resource, &reference.namespace, &reference.name);
        found.map_err(|error| error.to_string())
    }

    async fn resource(&self, group: &str, kind: &str) -> Result<Option<String>, String> {
        Ok(self.server.resource(group, kind).map(|(_, resource)| resource))
    }
}
