//! Admission in the process of the embedded server: calls the functions of the webhooks directly.

use crate::registry::admission;
use futures::FutureExt as _;
use serde_json::Value;
use windlass_apiserver::{
    AdmissionHook, AdmissionRequest, AdmissionVerb, ApiError, Attributes, Lookup, Target, UserInfo,
};
use windlass_webhook::{Asker, Operation, Reference, Refusal, Right, Rule, decide};

/// Admission of writes of all kinds.
pub(crate) struct InProcess {
    rules: Vec<Rule>,
}

impl InProcess {
    pub(crate) fn new() -> Self {
        Self {
            rules: admission::rules(),
        }
    }
}

impl AdmissionHook for InProcess {
    fn admit(
        &self,
        request: &AdmissionRequest<'_>,
        object: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let is_about = |rule: &&Rule| (rule.group, rule.resource) == (request.group, request.resource);
        let Some(rule) = self.rules.iter().find(is_about) else {
            return Ok(());
        };
        let nothing = Value::Null;
        let stored = request.old.unwrap_or(&nothing);
        let (operation, old, new) = match request.verb {
            AdmissionVerb::Create => (Operation::Create, &nothing, &*object),
            AdmissionVerb::Update => (Operation::Update, stored, &*object),
            AdmissionVerb::Delete => (Operation::Delete, stored, &nothing),
        };
        let verdict = rule.judge(operation, request.subresource, old, new);
        warnings.extend(verdict.warnings);
        if !verdict.errors.is_empty() {
            return Err(ApiError::invalid(
                request.group,
                request.kind,
                request.name,
                &verdict.errors,
            ));
        }
        match rule.reference(operation, request.subresource, old, new) {
            Some(reference) => may_refer(request, &reference),
            None => Ok(()),
        }
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
        Ok(self.server.resource(group, kind))
    }
}
