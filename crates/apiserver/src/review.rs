//! Resources that are only asked, never stored: who am I, may I, whose token is this; and evictions.

use std::sync::Arc;

use http::Response;
use serde_json::{Value, json};

use crate::body::{self, ApiBody};
use crate::delete::DeleteOptions;
use crate::dispatch::Asked;
use crate::error::ApiError;
use crate::object::{seconds, strings, text};
use crate::request::{Query, ResourcePath, WriteOptions};
use crate::resource::Resource;
use crate::user::{Attributes, UserInfo};

/// Group, version, and its resources: plural, kind, namespaced.
type Virtual = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str, bool)],
);

pub(crate) const VIRTUAL: &[Virtual] = &[
    (
        "authentication.k8s.io",
        "v1",
        &[
            ("tokenreviews", "TokenReview", false),
            ("selfsubjectreviews", "SelfSubjectReview", false),
        ],
    ),
    (
        "authorization.k8s.io",
        "v1",
        &[
            ("selfsubjectaccessreviews", "SelfSubjectAccessReview", false),
            ("selfsubjectrulesreviews", "SelfSubjectRulesReview", false),
            ("subjectaccessreviews", "SubjectAccessReview", false),
        ],
    ),
];

/// A user as Kubernetes' objects have it.
pub(crate) fn user_value(user: &UserInfo) -> Value {
    let mut out = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        out["uid"] = user.uid.clone().into();
    }
    if !user.extra.is_empty() {
        out["extra"] = json!(user.extra);
    }
    out
}

/// Answers a review, if the path is one.
pub(crate) fn answer(asked: &Asked<'_>, path: &ResourcePath) -> Option<Result<Response<ApiBody>, ApiError>> {
    let known = VIRTUAL
        .iter()
        .find(|(g, v, _)| *g == path.group && *v == path.version)?;
    let (_, kind, _) = known.2.iter().find(|(plural, _, _)| *plural == path.resource)?;
    if asked.parts.method != http::Method::POST || path.name.is_some() {
        return Some(Err(ApiError::method_not_allowed(asked.parts.method.as_str())));
    }
    Some(review(asked, kind, &format!("{}/{}", path.group, path.version)))
}

fn review(asked: &Asked<'_>, kind: &str, version: &str) -> Result<Response<ApiBody>, ApiError> {
    let (mut object, _) = asked.object()?;
    if !object.is_object() || !matches!(text(&object, "kind"), k if k == kind || k.is_empty()) {
        return Err(ApiError::bad_request(format!("the object must be a {kind}")));
    }
    let status = match kind {
        "SelfSubjectReview" => json!({"userInfo": user_value(asked.user)}),
        "TokenReview" => {
            let token = object.pointer("/spec/token").and_then(Value::as_str).unwrap_or("");
            match asked.server.tokens.find(token) {
                Some(user) => json!({"authenticated": true, "user": user_value(user)}),
                None => json!({"user": {}, "error": "invalid bearer token"}),
            }
        }
        "SelfSubjectRulesReview" => rules(asked, &object),
        _ => access(asked, kind, &object),
    };
    object["kind"] = kind.into();
    object["apiVersion"] = version.into();
    if object.get("metadata").is_none() {
        object["metadata"] = json!({"creationTimestamp": seconds(asked.server.now())});
    }
    object["status"] = status;
    Ok(body::json(201, &object))
}

/// All or nothing: an authorizer can only be asked about single requests, so what lies between is said to be incomplete.
fn rules(asked: &Asked<'_>, object: &Value) -> Value {
    let namespace = object.pointer("/spec/namespace").and_then(Value::as_str).unwrap_or("");
    let attributes = Attributes {
        verb: "*",
        group: "*",
        resource: "*",
        subresource: "",
        namespace,
        name: "",
        path: "*",
    };
    if crate::user::allow(asked.user, &attributes, asked.server.options.authorizer.as_ref()).is_ok() {
        json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        })
    } else {
        json!({"resourceRules": [], "nonResourceRules": [], "incomplete": true})
    }
}

fn access(asked: &Asked<'_>, kind: &str, object: &Value) -> Value {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let user = if kind == "SubjectAccessReview" {
        let groups: Vec<&str> = strings(spec.get("groups"));
        UserInfo {
            name: text(spec, "user").to_owned(),
            groups: groups.into_iter().map(str::to_owned).collect(),
            ..UserInfo::default()
        }
    } else {
        asked.user.clone()
    };
    if user.is_master() {
        return json!({"allowed": true});
    }
    let on = spec.get("resourceAttributes").unwrap_or(&Value::Null);
    let off = spec.get("nonResourceAttributes").unwrap_or(&Value::Null);
    let verb = if on.is_null() {
        text(off, "verb")
    } else {
        text(on, "verb")
    };
    let attributes = Attributes {
        verb,
        group: text(on, "group"),
        resource: text(on, "resource"),
        subresource: text(on, "subresource"),
        namespace: text(on, "namespace"),
        name: text(on, "name"),
        path: text(off, "path"),
    };
    match asked.server.options.authorizer.authorize(&user, &attributes) {
        Ok(()) => json!({"allowed": true}),
        Err(reason) => json!({"allowed": false, "reason": reason}),
    }
}

/// Evicts a pod: deletes it, unless a disruption budget says no.
pub(crate) async fn evict(
    asked: &Asked<'_>,
    resource: &Arc<Resource>,
    namespace: &str,
    name: &str,
) -> Result<Response<ApiBody>, ApiError> {
    let (eviction, _) = asked.object()?;
    let named = crate::object::meta(&eviction, "name");
    if !named.is_empty() && named != name {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    let record = crate::read::find(asked.server, resource, namespace, name)?;
    if let Some(budget) = exhausted_budget(asked, namespace, &record) {
        let mut error = ApiError::new(
            429,
            "TooManyRequests",
            "Cannot evict pod as it would violate the pod's disruption budget.",
        );
        error.details = Some(Box::new(crate::error::Details {
            causes: vec![crate::error::Cause {
                reason: "DisruptionBudget".to_owned(),
                message: format!(
                    "The disruption budget {budget} does not allow evicting pods currently because it would violate the budget"
                ),
                field: String::new(),
            }],
            ..Default::default()
        }));
        return Err(error);
    }
    let options = eviction.get("deleteOptions").cloned().unwrap_or(Value::Null);
    let mut delete = DeleteOptions::parse(&options, &Query::default())?;
    delete.dry_run |= WriteOptions::parse(&asked.query)?.dry_run;
    let write = WriteOptions::default();
    asked.call(resource, namespace, &write).delete(name, &delete).await?;
    Ok(body::json(
        201,
        &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
    ))
}

/// A budget that selects the pod and allows no disruption.
fn exhausted_budget(asked: &Asked<'_>, namespace: &str, pod: &windlass_store::Record) -> Option<String> {
    let query = windlass_store::ListQuery {
        resource: "poddisruptionbudgets.policy",
        namespace: Some(namespace),
        after: None,
        at: None,
    };
    let budgets = asked.server.store.list(&query).ok()?.items;
    budgets
        .iter()
        .filter_map(|r| crate::object::decode(r).ok())
        .find_map(|budget| {
            let selector = crate::selector::LabelSelector::from_object(budget.pointer("/spec/selector")?);
            let allowed = budget.pointer("/status/disruptionsAllowed").and_then(Value::as_i64)?;
            (selector.matches(&pod.header.labels) && allowed <= 0)
                .then(|| crate::object::meta(&budget, "name").to_owned())
        })
}
