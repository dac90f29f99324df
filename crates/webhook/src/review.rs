//! AdmissionReviews: decoding, calling the rule, encoding the response. Pure.

use serde::Deserialize;
use serde_json::{Value, json};

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
}

#[derive(Default, Deserialize)]
struct Kind {
    #[serde(default)]
    group: String,
    #[serde(default)]
    kind: String,
}

/// Answers a review with a rule. Input that is not a review of the rule's kind is an error that states the expectation. Its text
/// contains no part of the objects.
pub(crate) fn answer(rule: &Rule, body: &[u8]) -> Result<Value, String> {
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
        "CONNECT" => return Ok(response(rule, &request, &Verdict::default())),
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
    Ok(response(rule, &request, &verdict))
}

fn response(rule: &Rule, request: &Request, verdict: &Verdict) -> Value {
    let mut response = json!({"uid": request.uid, "allowed": verdict.errors.is_empty()});
    if !verdict.errors.is_empty() {
        response["status"] = status(rule, &request.name, verdict);
    }
    if !verdict.warnings.is_empty() {
        response["warnings"] = json!(verdict.warnings);
    }
    json!({"apiVersion": API_VERSION, "kind": KIND, "response": response})
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
