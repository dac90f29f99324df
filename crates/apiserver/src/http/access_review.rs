//! Access reviews: SubjectAccessReview and its relatives, SelfSubjectReview, TokenReview. They are answered and never stored.

use http::Response;
use serde_json::{Value, json};
use windlass_schema::{FieldError, Kind};

use crate::error::ApiError;
use crate::http::body::{self, ApiBody};
use crate::http::context::RequestContext;
use crate::http::request::ResourcePath;
use windlass_objects::metadata::{meta, seconds, set_meta, strings, text};
use windlass_rbac::attributes::{Attributes, Target};
use windlass_rbac::rule::Rule;
use windlass_rbac::user::UserInfo;
use windlass_rbac::user::user_value;

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
            ("localsubjectaccessreviews", "LocalSubjectAccessReview", true),
            ("selfsubjectaccessreviews", "SelfSubjectAccessReview", false),
            ("selfsubjectrulesreviews", "SelfSubjectRulesReview", false),
            ("subjectaccessreviews", "SubjectAccessReview", false),
        ],
    ),
];

/// Answers a review, if the path is one.
pub(crate) fn answer(asked: &RequestContext<'_>, path: &ResourcePath) -> Option<Result<Response<ApiBody>, ApiError>> {
    let known = VIRTUAL
        .iter()
        .find(|(g, v, _)| *g == path.group && *v == path.version)?;
    let (_, kind, namespaced) = known.2.iter().find(|(plural, _, _)| *plural == path.resource)?;
    if path.namespace.is_some() != *namespaced {
        return Some(Err(ApiError::no_resource()));
    }
    if path.name.is_some() {
        return Some(Err(ApiError::no_resource()));
    }
    if asked.parts.method != http::Method::POST {
        return Some(Err(ApiError::method_not_allowed(asked.parts.method.as_str())));
    }
    let namespace = path.namespace.as_deref();
    Some(review(
        asked,
        kind,
        &format!("{}/{}", path.group, path.version),
        namespace,
    ))
}

fn review(
    asked: &RequestContext<'_>,
    kind: &str,
    version: &str,
    namespace: Option<&str>,
) -> Result<Response<ApiBody>, ApiError> {
    let (mut object, _) = asked.object()?;
    if !object.is_object() || !matches!(text(&object, "kind"), k if k == kind || k.is_empty()) {
        return Err(ApiError::bad_request(format!("the object must be a {kind}")));
    }
    let status = match kind {
        "SelfSubjectReview" => json!({"userInfo": user_value(asked.user)}),
        "TokenReview" => {
            let token = object.pointer("/spec/token").and_then(Value::as_str).unwrap_or("");
            if token.is_empty() {
                return Err(ApiError::bad_request(
                    "token is required for TokenReview in authentication",
                ));
            }
            match asked.server.tokens.find(token) {
                Some(user) => json!({"authenticated": true, "user": user_value(user)}),
                None => json!({"user": {}, "error": "invalid bearer token"}),
            }
        }
        "SelfSubjectRulesReview" => rules(asked, &object)?,
        _ => {
            let user = (kind != "SelfSubjectAccessReview").then(|| subject(&object));
            check_access(kind, &object, namespace)?;
            access(asked, user.as_ref().unwrap_or(asked.user), &object)
        }
    };
    object["kind"] = kind.into();
    object["apiVersion"] = version.into();
    let made = (kind == "SelfSubjectReview").then(|| seconds(asked.server.now()).into());
    set_meta(&mut object, "creationTimestamp", made);
    if kind == "SelfSubjectRulesReview" {
        object["spec"] = json!({});
    }
    if let Some(namespace) = namespace {
        set_meta(&mut object, "namespace", Some(namespace.into()));
    }
    object["status"] = status;
    Ok(body::json(201, &object))
}

/// The rules of a user in a namespace.
fn rules(asked: &RequestContext<'_>, object: &Value) -> Result<Value, ApiError> {
    let namespace = object.pointer("/spec/namespace").and_then(Value::as_str).unwrap_or("");
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let all = || vec!["*".to_owned()];
    let mut found = Vec::new();
    let mut problems = None;
    if let Some(rbac) = asked.server.authorizer.rbac() {
        (found, problems) = rbac.rules_of(asked.user, namespace);
    }
    if asked.server.authorizer.rbac().is_none() && asked.user.is_authenticated() {
        found = vec![Rule {
            api_groups: all(),
            resources: all(),
            urls: all(),
            verbs: all(),
            ..Rule::default()
        }];
    }
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    for rule in &found {
        if !rule.resources.is_empty() {
            let mut out = json!({"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources});
            if !rule.resource_names.is_empty() {
                out["resourceNames"] = json!(rule.resource_names);
            }
            resources.push(out);
        }
        if !rule.urls.is_empty() {
            paths.push(json!({"verbs": rule.verbs, "nonResourceURLs": rule.urls}));
        }
    }
    let mut status = json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false});
    if let Some(why) = problems {
        status["evaluationError"] = why.into();
    }
    Ok(status)
}

/// The user that an access review is about.
fn subject(object: &Value) -> UserInfo {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let owned = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect();
    let extra = spec.get("extra").and_then(Value::as_object);
    UserInfo {
        name: text(spec, "user").to_owned(),
        uid: text(spec, "uid").to_owned(),
        groups: owned(strings(spec.get("groups"))),
        extra: extra
            .into_iter()
            .flatten()
            .map(|(key, values)| (key.clone(), owned(strings(Some(values)))))
            .collect(),
    }
}

/// Errors of access reviews without a user or without attributes.
fn check_access(kind: &str, object: &Value, namespace: Option<&str>) -> Result<(), ApiError> {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let on = spec.get("resourceAttributes").filter(|value| !value.is_null());
    let off = spec.get("nonResourceAttributes").filter(|value| !value.is_null());
    let path_error = |words: &str| {
        let off = off.unwrap_or(&Value::Null);
        let part = |key| Value::from(text(off, key));
        let words = format!("{{\"Path\":{},\"Verb\":{}}}: {words}", part("path"), part("verb"));
        FieldError::new("spec.nonResourceAttributes", Kind::Invalid, None, words)
    };
    let mut errors = Vec::new();
    if on.is_some() && off.is_some() {
        errors.push(path_error("cannot be specified in combination with resourceAttributes"));
    }
    if on.is_none() && off.is_none() {
        errors.push(FieldError::invalid(
            "spec.resourceAttributes",
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ));
    }
    if kind != "SelfSubjectAccessReview" && text(spec, "user").is_empty() && strings(spec.get("groups")).is_empty() {
        errors.push(FieldError::invalid(
            "spec.user",
            "".into(),
            "at least one of user or group must be specified",
        ));
    }
    if let Some(namespace) = namespace {
        let have = meta(object, "namespace");
        if !have.is_empty() && have != namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let about = on.map_or("", |on| text(on, "namespace"));
        if on.is_some() && about != namespace {
            let at = "spec.resourceAttributes.namespace";
            errors.push(FieldError::invalid(at, about.into(), "must match metadata.namespace"));
        }
        if off.is_some() {
            errors.push(path_error("disallowed on this kind of request"));
        }
    }
    if namespace.is_none() && (!meta(object, "name").is_empty() || !meta(object, "namespace").is_empty()) {
        let shown = object.get("metadata").cloned().unwrap_or_default();
        errors.push(FieldError::invalid("metadata", shown, "must be empty"));
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(ApiError::invalid("authorization.k8s.io", "", "", &errors))
    }
}

fn access(asked: &RequestContext<'_>, user: &UserInfo, object: &Value) -> Value {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let on = spec.get("resourceAttributes").unwrap_or(&Value::Null);
    let off = spec.get("nonResourceAttributes").unwrap_or(&Value::Null);
    let attributes = if on.is_null() {
        Attributes {
            verb: text(off, "verb"),
            target: Target::Path(text(off, "path")),
        }
    } else {
        Attributes {
            verb: text(on, "verb"),
            target: Target::Resource {
                group: text(on, "group"),
                resource: text(on, "resource"),
                subresource: text(on, "subresource"),
                namespace: text(on, "namespace"),
                name: text(on, "name"),
            },
        }
    };
    let decision = asked.server.authorizer.decide(user, &attributes);
    let mut status = json!({"allowed": decision.allowed});
    if !decision.reason.is_empty() {
        status["reason"] = decision.reason.into();
    }
    status
}
