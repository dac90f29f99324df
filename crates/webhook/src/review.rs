//! AdmissionReviews: decoding, calling the rule, encoding the response. Pure: the rights of the user come from the caller.

use k8s_openapi::api::authentication::v1::UserInfo;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::rights::{Reference, Refusal};
use crate::rule::{Operation, Rule, Verdict};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// The fields of a review that are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<Request>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    sub_resource: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    operation: String,
    #[serde(default)]
    object: Value,
    #[serde(default)]
    old_object: Value,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    user_info: UserInfo,
}

#[derive(Default, Deserialize)]
struct Kind {
    #[serde(default)]
    group: String,
    #[serde(default)]
    kind: String,
}

/// A judged write, which may need rights of its user.
pub(crate) struct Judged {
    request: Request,
    verdict: Verdict,
    reference: Option<Reference>,
}

/// Judges a review with a rule. Input that is not a review of the rule's kind is an error that states the expectation. Its text
/// contains no part of the objects.
pub(crate) fn judge(rule: &Rule, body: &[u8]) -> Result<Judged, String> {
    let review: Review = serde_json::from_slice(body).map_err(|error| {
        // The parser's message may quote the body.
        let place = format!("line {}, column {}", error.line(), error.column());
        match error.classify() {
            serde_json::error::Category::Data => {
                format!("the body is no {KIND}: a field has the wrong type at {place}")
            }
            _ => format!("the body is no JSON: {place}"),
        }
    })?;
    if review.api_version != API_VERSION || review.kind != KIND {
        return Err(format!(
            "expected {KIND} of {API_VERSION}, as the webhook configuration says"
        ));
    }
    let request = review.request.ok_or_else(|| format!("the {KIND} has no request"))?;
    if request.uid.is_empty() {
        return Err("request.uid is empty: the answer could not be told apart from others".to_owned());
    }
    if (request.kind.group.as_str(), request.kind.kind.as_str()) != (rule.group, rule.kind) {
        return Err(format!(
            "request.kind: this address judges {} of {}; check the rules of the webhook configuration",
            rule.kind, rule.group
        ));
    }
    let (operation, complete) = match request.operation.as_str() {
        "CREATE" => (Operation::Create, !request.object.is_null()),
        "UPDATE" => (
            Operation::Update,
            !request.object.is_null() && !request.old_object.is_null(),
        ),
        "DELETE" => (Operation::Delete, !request.old_object.is_null()),
        // These do not change stored objects.
        "CONNECT" => {
            return Ok(Judged {
                request,
                verdict: Verdict::default(),
                reference: None,
            });
        }
        _ => return Err("request.operation: expected CREATE, UPDATE, DELETE or CONNECT".to_owned()),
    };
    if !complete {
        return Err(format!(
            "request.object or request.oldObject is missing, which {} needs",
            operation.as_str()
        ));
    }
    let verdict = rule.judge(operation, &request.sub_resource, &request.old_object, &request.object);
    tracing::debug!(
        kind = rule.kind,
        namespace = request.namespace,
        name = request.name,
        operation = operation.as_str(),
        dry_run = request.dry_run,
        allowed = verdict.errors.is_empty(),
        "judged"
    );
    let reference = rule.reference(operation, &request.sub_resource, &request.old_object, &request.object);
    Ok(Judged {
        // A write that is refused anyway needs no rights.
        reference: reference.filter(|_| verdict.errors.is_empty()),
        request,
        verdict,
    })
}

impl Judged {
    /// What the user needs rights for, and the user.
    pub(crate) fn reference(&self) -> Option<(&Reference, &UserInfo)> {
        Some((self.reference.as_ref()?, &self.request.user_info))
    }

    /// The answer, given what is known of the rights of the user.
    pub(crate) fn response(&self, rule: &Rule, rights: Result<(), Refusal>) -> Value {
        response(rule, &self.request, &self.verdict, rights.err().as_ref())
    }
}

fn response(rule: &Rule, request: &Request, verdict: &Verdict, refusal: Option<&Refusal>) -> Value {
    let allowed = verdict.errors.is_empty() && refusal.is_none();
    let mut response = json!({"uid": request.uid, "allowed": allowed});
    if let Some(refusal) = refusal {
        response["status"] = unauthorized(rule, &request.name, refusal);
    } else if !verdict.errors.is_empty() {
        response["status"] = status(rule, &request.name, verdict);
    }
    if !verdict.warnings.is_empty() {
        response["warnings"] = json!(verdict.warnings);
    }
    json!({"apiVersion": API_VERSION, "kind": KIND, "response": response})
}

/// The refusal of a write for which the user lacks rights, or may do so.
fn unauthorized(rule: &Rule, name: &str, refusal: &Refusal) -> Value {
    let (code, reason, message) = match refusal {
        Refusal::Forbidden(why) => (
            403,
            "Forbidden",
            format!("{} {name:?} is forbidden: {why}", rule.qualified()),
        ),
        Refusal::Unknown(why) => (500, "InternalError", why.clone()),
    };
    let details = json!({"name": name, "group": rule.group, "kind": rule.resource});
    json!({"status": "Failure", "code": code, "reason": reason, "message": message, "details": details})
}

/// The refusal in the form of API servers' errors for invalid objects.
fn status(rule: &Rule, name: &str, verdict: &Verdict) -> Value {
    let texts: Vec<String> = verdict.errors.iter().map(ToString::to_string).collect();
    let list = match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    let causes: Vec<Value> = verdict
        .errors
        .iter()
        .map(|error| json!({"reason": error.kind.reason(), "message": error.body(), "field": error.path}))
        .collect();
    json!({
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": format!("{}.{} \"{name}\" is invalid: {list}", rule.kind, rule.group),
        "details": {"name": name, "group": rule.group, "kind": rule.kind, "causes": causes},
    })
}

#[cfg(test)]
mod tests {
    use windlass_schema::FieldError;

    use super::*;
    use crate::testing::rule;

    fn answer(rule: &Rule, body: &[u8]) -> Result<Value, String> {
        judge(rule, body).map(|judged| judged.response(rule, Ok(())))
    }

    fn review(request: &Value) -> Value {
        let mut whole = json!({
            "uid": "u-1",
            "kind": {"group": "infra.example.com", "version": "v1", "kind": "TestCluster"},
            "name": "a", "namespace": "b", "operation": "UPDATE",
            "object": {"spec": {"size": 1}}, "oldObject": {"spec": {"size": 2}},
        });
        for (key, value) in request.as_object().unwrap() {
            whole[key] = value.clone();
        }
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": whole})
    }

    #[test]
    fn refusals_say_what_and_where() {
        let answered = answer(&rule(), review(&json!({})).to_string().as_bytes()).unwrap();
        assert_eq!(answered["apiVersion"], "admission.k8s.io/v1");
        assert_eq!(answered["kind"], "AdmissionReview");
        let response = &answered["response"];
        assert_eq!((&response["uid"], &response["allowed"]), (&json!("u-1"), &json!(false)));
        assert_eq!(response["warnings"], json!(["testclusters.infra.example.com shrinks"]));
        assert_eq!(response["status"]["code"], 422);
        assert_eq!(response["status"]["reason"], "Invalid");
        let text = FieldError::forbidden("spec.size", "never smaller");
        assert_eq!(
            response["status"]["message"],
            format!("TestCluster.infra.example.com \"a\" is invalid: {text}")
        );
        assert_eq!(
            response["status"]["details"]["causes"],
            json!([{"reason": "FieldValueForbidden", "message": text.body(), "field": "spec.size"}])
        );
    }

    #[test]
    fn lacking_rights_are_refused_and_unknown_ones_may_be_tried_again() {
        let mut rule = rule();
        rule.refers = Some(|change| {
            let named = change.new["spec"]["ref"].as_str()?;
            (change.old["spec"]["ref"] != named).then(|| Reference {
                field: "spec.ref",
                group: "infra.example.com",
                version: "v1",
                kind: "TestClass",
                resource: "testclasses",
                namespace: "other".to_owned(),
                name: named.to_owned(),
                parts: |_| Vec::new(),
            })
        });
        let user = json!({"username": "eve", "groups": ["team"]});
        let body = review(&json!({"object": {"spec": {"size": 2, "ref": "a"}}, "userInfo": user})).to_string();
        let judged = judge(&rule, body.as_bytes()).unwrap();
        let (reference, user) = judged.reference().unwrap();
        assert_eq!((reference.name.as_str(), user.username.as_deref()), ("a", Some("eve")));
        let refused = judged.response(&rule, Err(Refusal::Forbidden("because".to_owned())));
        let status = &refused["response"]["status"];
        assert_eq!(
            (&refused["response"]["allowed"], &status["code"]),
            (&json!(false), &json!(403))
        );
        assert_eq!(
            status["message"],
            "testclusters.infra.example.com \"a\" is forbidden: because"
        );
        let unknown = judged.response(&rule, Err(Refusal::Unknown("no answer".to_owned())));
        assert_eq!(unknown["response"]["allowed"], false);
        assert_eq!(unknown["response"]["status"]["code"], 500);
        assert_eq!(
            judged.response(&rule, Ok(()))["response"],
            json!({"uid": "u-1", "allowed": true})
        );
        // What is refused anyway, and subresources, ask for nothing.
        for other in [
            json!({"object": {"spec": {"size": 1, "ref": "a"}}}),
            json!({"subResource": "status"}),
        ] {
            let mut request = json!({"object": {"spec": {"size": 2, "ref": "a"}}});
            request
                .as_object_mut()
                .unwrap()
                .extend(other.as_object().unwrap().clone());
            assert!(
                judge(&rule, review(&request).to_string().as_bytes())
                    .unwrap()
                    .reference()
                    .is_none()
            );
        }
    }

    #[test]
    fn what_the_rule_is_not_about_is_allowed() {
        let check = |request: Value| {
            let answered = answer(&rule(), review(&request).to_string().as_bytes()).unwrap();
            assert_eq!(
                answered["response"],
                json!({"uid": "u-1", "allowed": true}),
                "{request}"
            );
        };
        check(json!({"object": {"spec": {"size": 2}}}));
        check(json!({"subResource": "status"}));
        check(json!({"operation": "CREATE", "oldObject": null}));
        check(json!({"operation": "DELETE", "object": null}));
        check(json!({"operation": "CONNECT", "object": null, "oldObject": null}));
        check(json!({"object": {"spec": {"size": 2}}, "dryRun": true, "options": {}, "userInfo": {"username": "x"}}));
    }

    #[test]
    fn invalid_reviews_are_reported_without_their_content() {
        let check = |body: &str, expect: &str| {
            let why = answer(&rule(), body.as_bytes()).unwrap_err();
            assert!(why.contains(expect), "{body}: {why}");
            assert!(!why.contains("secret"), "{why}");
        };
        check("", "no JSON");
        check("{\"secret", "no JSON");
        check("[\"secret\"]", "wrong type");
        check(&json!({"request": "secret"}).to_string(), "wrong type");
        check("{}", "admission.k8s.io/v1");
        let mut old = review(&json!({}));
        old["apiVersion"] = json!("admission.k8s.io/v1beta1");
        check(&old.to_string(), "admission.k8s.io/v1");
        check(
            &json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}).to_string(),
            "no request",
        );
        check(&review(&json!({"uid": ""})).to_string(), "request.uid");
        check(
            &review(&json!({"kind": {"group": "secret", "kind": "Pod"}})).to_string(),
            "judges TestCluster",
        );
        check(
            &review(&json!({"operation": "secret"})).to_string(),
            "request.operation",
        );
        check(&review(&json!({"object": null})).to_string(), "UPDATE needs");
        check(&review(&json!({"oldObject": null})).to_string(), "UPDATE needs");
    }
}
