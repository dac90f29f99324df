//! AdmissionReviews: decoding, calling the rule, encoding the response. Pure: other objects and the rights of the user come from the
//! caller.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::authentication::v1::UserInfo;
use serde::Deserialize;
use serde_json::{Value, json};
use windlass_admission::view::Nothing;
use windlass_admission::{Change, Hook, Operation, Reference, Refusal, Rule, Unread, Verdict, View};
use windlass_meta::beginning;
use windlass_meta::budget::{FIELD_ERROR_BYTES, FIELD_ERRORS};
use windlass_objects::names::qualified;

use crate::patch::patch;

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// The most bytes of one error in an answer.
const MESSAGE_BYTES: usize = 8 << 10;

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

/// A write under review.
pub(crate) struct Reviewed {
    request: Request,
    /// None for what changes no stored object.
    operation: Option<Operation>,
}

/// A judged write.
pub(crate) struct Judged {
    request: Request,
    verdict: Verdict,
    /// The operations that complete the object.
    patch: Vec<Value>,
}

/// The review in a body. Input that is not a review of the rule's kind is an error that states the expectation. Its text contains no
/// part of the objects.
pub(crate) fn read(rule: &Rule, hook: Hook, body: &[u8]) -> Result<Reviewed, String> {
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
    let expected = match hook {
        Hook::Complete | Hook::Check => (rule.group, rule.kind),
        Hook::Scale => ("autoscaling", "Scale"),
    };
    if (request.kind.group.as_str(), request.kind.kind.as_str()) != expected {
        return Err(format!(
            "request.kind: this address judges {} of {}; check the rules of the webhook configuration",
            expected.1, expected.0
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
            return Ok(Reviewed {
                request,
                operation: None,
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
    // Rights and references are decided by the namespace of the object.
    let namespaces = [&request.object, &request.old_object].map(|object| object["metadata"]["namespace"].as_str());
    if namespaces
        .into_iter()
        .flatten()
        .any(|namespace| namespace != request.namespace)
    {
        return Err("request.namespace: the object has another one".to_owned());
    }
    let is_covered = match hook {
        Hook::Complete | Hook::Check => request.sub_resource.is_empty(),
        Hook::Scale => request.sub_resource == "scale",
    };
    Ok(Reviewed {
        operation: Some(operation).filter(|_| is_covered),
        request,
    })
}

impl Reviewed {
    fn change<'a>(&'a self, operation: Operation, resource: &'a str, new: &'a Value, view: &'a dyn View) -> Change<'a> {
        Change {
            resource,
            operation,
            dry_run: self.request.dry_run,
            old: &self.request.old_object,
            new,
            view,
        }
    }

    /// What the user needs rights for, and the user. It is asked first: what a rule says of an object that it looks at, it says only to users
    /// who may refer to it.
    pub(crate) fn reference(&self, rule: &Rule, hook: Hook) -> Option<(Reference, &UserInfo)> {
        let operation = self.operation.filter(|_| hook != Hook::Scale)?;
        let resource = rule.qualified();
        let change = self.change(operation, &resource, &self.request.object, &Nothing);
        Some((rule.reference(&change)?, &self.request.user_info))
    }

    /// Calls the rule. What it cannot read in the view is an error.
    pub(crate) fn judge(&self, rule: &Rule, hook: Hook, view: &dyn View) -> Result<Outcome, Unread> {
        let Some(operation) = self.operation else {
            return Ok(Outcome::default());
        };
        let (request, resource, nothing) = (&self.request, rule.qualified(), Value::Null);
        let change = |new| self.change(operation, &resource, new, view);
        match hook {
            Hook::Complete => {
                let mut object = request.object.clone();
                let verdict = rule.complete(&change(&nothing), &mut object)?;
                let patch = patch(&request.object, &object);
                Ok(Outcome { verdict, patch })
            }
            Hook::Check => Ok(Outcome {
                verdict: rule.check(&change(&request.object))?,
                patch: Vec::new(),
            }),
            Hook::Scale => {
                let kind = (rule.group, rule.kind);
                let found = windlass_admission::view::object(view, kind, &request.namespace, &request.name)?;
                let replicas = request.object["spec"]["replicas"].as_i64().unwrap_or_default();
                let check = rule.admission.scale.zip(found);
                Ok(Outcome {
                    verdict: Verdict {
                        forbidden: check.and_then(|(check, object)| check(replicas, &object)),
                        ..Verdict::default()
                    },
                    ..Outcome::default()
                })
            }
        }
    }

    /// The write with what was decided about it.
    pub(crate) fn judged(self, outcome: Outcome) -> Judged {
        tracing::debug!(
            kind = self.request.kind.kind,
            namespace = self.request.namespace,
            name = self.request.name,
            operation = self.operation.map_or("", Operation::as_str),
            dry_run = self.request.dry_run,
            allowed = outcome.verdict.is_allowed(),
            "judged"
        );
        Judged {
            request: self.request,
            verdict: outcome.verdict,
            patch: outcome.patch,
        }
    }
}

/// What a rule says about a write.
#[derive(Default)]
pub(crate) struct Outcome {
    verdict: Verdict,
    patch: Vec<Value>,
}

impl Outcome {
    pub(crate) fn is_refusal(&self) -> bool {
        !self.verdict.is_allowed()
    }
}

impl Judged {
    /// The answer, given what is known of the rights of the user.
    pub(crate) fn response(&self, rule: &Rule, rights: Result<(), Refusal>) -> Value {
        response(rule, self, rights.err().as_ref())
    }
}

fn response(rule: &Rule, judged: &Judged, refusal: Option<&Refusal>) -> Value {
    let Judged {
        request,
        verdict,
        patch,
        ..
    } = judged;
    let allowed = verdict.is_allowed() && refusal.is_none();
    let mut response = json!({"uid": request.uid, "allowed": allowed});
    if let Some(refusal) = refusal {
        response["status"] = unauthorized(rule, &request.name, refusal);
    } else if let Some(why) = &verdict.forbidden {
        response["status"] = failure(rule, &request.name, (403, "Forbidden"), why);
    } else if !verdict.errors.is_empty() {
        response["status"] = status(rule, &request.name, verdict);
    } else if !patch.is_empty() {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = STANDARD.encode(json!(patch).to_string()).into();
    }
    if !verdict.warnings.is_empty() {
        response["warnings"] = json!(verdict.warnings);
    }
    json!({"apiVersion": API_VERSION, "kind": KIND, "response": response})
}

/// The refusal of a write for which the user lacks rights, or may do so.
fn unauthorized(rule: &Rule, name: &str, refusal: &Refusal) -> Value {
    match refusal {
        Refusal::Forbidden(why) => {
            let message = format!("{} {name:?} is forbidden: {why}", rule.qualified());
            failure(rule, name, (403, "Forbidden"), &message)
        }
        Refusal::Unknown(why) => failure(rule, name, (500, "InternalError"), why),
    }
}

fn failure(rule: &Rule, name: &str, (code, reason): (u16, &str), message: &str) -> Value {
    let details = json!({"name": name, "group": rule.group, "kind": rule.resource});
    json!({"status": "Failure", "code": code, "reason": reason, "message": message, "details": details})
}

/// The refusal in the form of API servers' errors for invalid objects.
fn status(rule: &Rule, name: &str, verdict: &Verdict) -> Value {
    // The sender of an object chooses how many errors it has, and how long they are.
    let mut room = FIELD_ERROR_BYTES;
    let told = verdict.errors.iter().take(FIELD_ERRORS).map_while(|error| {
        let text = beginning(&error.to_string(), MESSAGE_BYTES).into_owned();
        room = room.checked_sub(text.len())?;
        Some((error, text))
    });
    let told: Vec<_> = told.collect();
    let texts: Vec<&str> = told.iter().map(|(_, text)| text.as_str()).collect();
    let list = match texts.as_slice() {
        [one] => (*one).to_owned(),
        many => format!("[{}]", many.join(", ")),
    };
    let causes: Vec<Value> = told
        .iter()
        .map(|(error, _)| {
            let body = error.body();
            let message = beginning(&body, MESSAGE_BYTES);
            json!({"reason": error.kind.reason(), "message": message, "field": error.path})
        })
        .collect();
    json!({
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": format!("{} \"{name}\" is invalid: {list}", qualified(rule.group, rule.kind)),
        "details": {"name": name, "group": rule.group, "kind": rule.kind, "causes": causes},
    })
}

#[cfg(test)]
mod tests {
    use windlass_admission::view::Objects;
    use windlass_schema::FieldError;

    use super::*;
    use crate::testing::rule;

    fn judge(rule: &Rule, body: &[u8]) -> Result<Judged, String> {
        let reviewed = read(rule, Hook::Check, body)?;
        let outcome = reviewed.judge(rule, Hook::Check, &Nothing).unwrap();
        Ok(reviewed.judged(outcome))
    }

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
        rule.admission.refers = Some(|change| {
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
        let reviewed = read(&rule, Hook::Check, body.as_bytes()).unwrap();
        for hook in [Hook::Complete, Hook::Check] {
            let (reference, user) = reviewed.reference(&rule, hook).unwrap();
            assert_eq!((reference.name.as_str(), user.username.as_deref()), ("a", Some("eve")));
        }
        let judged = judge(&rule, body.as_bytes()).unwrap();
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
        // Subresources ask for nothing.
        let status = json!({"object": {"spec": {"size": 2, "ref": "a"}}, "subResource": "status"});
        let reviewed = read(&rule, Hook::Check, review(&status).to_string().as_bytes()).unwrap();
        assert!(reviewed.reference(&rule, Hook::Check).is_none());
    }

    #[test]
    fn an_object_is_completed_by_a_patch() {
        let mut rule = rule();
        rule.admission = rule.admission.completing(|change, object| {
            assert!(change.new.is_null());
            object["spec"]["colour"] = json!("blue");
            Ok(Verdict::default())
        });
        let complete = |body: Value| {
            let reviewed = read(&rule, Hook::Complete, review(&body).to_string().as_bytes()).unwrap();
            let outcome = reviewed.judge(&rule, Hook::Complete, &Nothing).unwrap();
            reviewed.judged(outcome).response(&rule, Ok(()))["response"].clone()
        };
        let completed = complete(json!({}));
        let patch = STANDARD.decode(completed["patch"].as_str().unwrap()).unwrap();
        assert_eq!(
            (
                completed["patchType"].as_str(),
                serde_json::from_slice::<Value>(&patch).unwrap()
            ),
            (
                Some("JSONPatch"),
                json!([{"op": "add", "path": "/spec/colour", "value": "blue"}])
            )
        );
        let there = json!({"object": {"spec": {"size": 1, "colour": "blue"}}});
        for nothing in [
            there,
            json!({"subResource": "status"}),
            json!({"operation": "DELETE", "object": null}),
        ] {
            assert_eq!(complete(nothing), json!({"uid": "u-1", "allowed": true}));
        }
    }

    #[test]
    fn a_scale_is_judged_with_its_object() {
        let mut rule = rule();
        rule.admission = rule
            .admission
            .scaling(|replicas, object| (object["spec"]["most"].as_i64()? < replicas).then(|| "too many".to_owned()));
        let object = json!({
            "apiVersion": "infra.example.com/v1", "kind": "TestCluster", "metadata": {"namespace": "b", "name": "a"},
            "spec": {"most": 3},
        });
        let scale = |view: &dyn View, replicas: i64| {
            let body = json!({
                "kind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}, "subResource": "scale",
                "object": {"spec": {"replicas": replicas}},
            });
            let reviewed = read(&rule, Hook::Scale, review(&body).to_string().as_bytes()).unwrap();
            let outcome = reviewed.judge(&rule, Hook::Scale, view).unwrap();
            reviewed.judged(outcome).response(&rule, Ok(()))["response"].clone()
        };
        let view = Objects(vec![std::sync::Arc::new(object)]);
        assert_eq!(scale(&view, 3)["allowed"], true);
        let refused = scale(&view, 4);
        assert_eq!(
            (&refused["status"]["code"], &refused["status"]["message"]),
            (&json!(403), &json!("too many"))
        );
        // An object that is gone meanwhile is not scaled: the API server says so.
        assert_eq!(scale(&Nothing, 4)["allowed"], true);
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
        let elsewhere = json!({"object": {"metadata": {"namespace": "secret"}, "spec": {"size": 1}}});
        check(&review(&elsewhere).to_string(), "request.namespace");
    }
}
