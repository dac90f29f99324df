//! Bodies of reviews, and how responses are read.

#![allow(clippy::needless_pass_by_value, reason = "cases read best with values")]

use serde_json::json;

use super::*;

fn answer(response: Value) -> Vec<u8> {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
        .to_string()
        .into_bytes()
}

fn check_v1(body: &[u8], mutating: bool, want: Result<Verdict, Unusable>) {
    let got = read(body, ReviewVersion::V1, "u", mutating);
    assert_eq!(got, want, "{}", String::from_utf8_lossy(body));
}

fn invalid(why: &str) -> Result<Verdict, Unusable> {
    Err(Unusable::Invalid(why.to_owned()))
}

#[test]
fn answers_are_read() {
    let yes = Verdict {
        allowed: true,
        ..Verdict::default()
    };
    check_v1(&answer(json!({"uid": "u", "allowed": true})), false, Ok(yes.clone()));
    check_v1(&answer(json!({"uid": "u"})), false, Ok(Verdict::default()));
    let warned = Verdict {
        warnings: vec!["w".to_owned()],
        ..yes.clone()
    };
    check_v1(
        &answer(json!({"uid": "u", "allowed": true, "warnings": ["w"], "auditAnnotations": {"a": "b"}})),
        true,
        Ok(warned),
    );
    let patched = Verdict {
        patch: Some(b"[]".to_vec()),
        ..yes
    };
    check_v1(
        &answer(json!({"uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": "W10="})),
        true,
        Ok(patched),
    );
}

#[test]
fn of_warnings_and_wrong_values_only_the_beginning_is_kept() {
    let long = "x".repeat(WEBHOOK_WARNING_BYTES + 1);
    let warnings = vec![long.as_str(); WEBHOOK_WARNINGS + 1];
    let body = answer(json!({"uid": "u", "allowed": true, "warnings": warnings}));
    let kept = read(&body, ReviewVersion::V1, "u", false).unwrap().warnings;
    assert_eq!(kept.len(), WEBHOOK_WARNINGS);
    assert_eq!(kept[0].len(), WEBHOOK_WARNING_BYTES + 3);
    let long = "x".repeat(1 << 20);
    for wrong in [
        answer(json!({"uid": long, "allowed": true})),
        answer(json!({"uid": "u", "allowed": long})),
        json!({"apiVersion": long, "kind": long}).to_string().into_bytes(),
    ] {
        let Err(Unusable::Invalid(why) | Unusable::Unreadable(why)) = read(&wrong, ReviewVersion::V1, "u", false)
        else {
            panic!("it is used");
        };
        assert!(why.len() < 3 * PATH_BYTES, "{} bytes", why.len());
    }
}

#[test]
fn answers_that_break_the_rules_are_not_used() {
    check_v1(&answer(Value::Null), false, invalid("webhook response was absent"));
    check_v1(
        &answer(json!({"uid": "v", "allowed": true})),
        false,
        invalid("expected response.uid=\"u\", got \"v\""),
    );
    let other = json!({"apiVersion": "admission.k8s.io/v2", "kind": "Review", "response": {"uid": "u"}}).to_string();
    let why =
        "no kind \"Review\" is registered for version \"admission.k8s.io/v2\" in scheme \"pkg/runtime/scheme.go:111\"";
    check_v1(other.as_bytes(), false, Err(Unusable::Unreadable(why.to_owned())));
    let patch = |more: Value| {
        let mut out = json!({"uid": "u", "allowed": true});
        for (key, value) in more.as_object().unwrap() {
            out[key] = value.clone();
        }
        answer(out)
    };
    for (response, mutating, why) in [
        (
            json!({"patch": "W10="}),
            false,
            "validating webhook may not return response.patch",
        ),
        (
            json!({"patchType": "JSONPatch"}),
            false,
            "validating webhook may not return response.patchType",
        ),
        (
            json!({"patch": "W10="}),
            true,
            "webhook returned response.patch but not response.patchType",
        ),
        (
            json!({"patchType": "JSONPatch"}),
            true,
            "webhook returned response.patchType but not response.patch",
        ),
        (
            json!({"patch": "W10=", "patchType": ""}),
            true,
            "webhook returned invalid response.patchType of \"\"",
        ),
        (
            json!({"patch": "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2EifV0=", "patchType": "Merge"}),
            true,
            "unsupported patch type \"Merge\"",
        ),
    ] {
        check_v1(&patch(response), mutating, invalid(why));
    }
    for unreadable in [
        &b"no"[..],
        b"[]",
        b"{}",
        &patch(json!({"allowed": "yes"})),
        &patch(json!({"patch": "?", "patchType": "JSONPatch"})),
    ] {
        assert!(matches!(
            read(unreadable, ReviewVersion::V1, "u", true),
            Err(Unusable::Unreadable(_))
        ));
    }
}

#[test]
fn the_older_version_is_less_strict() {
    let body = json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "response": {"allowed": true, "patch": "W10="}});
    let got = read(body.to_string().as_bytes(), ReviewVersion::V1beta1, "u", true).unwrap();
    assert_eq!(got.patch, Some(b"[]".to_vec()));
    let got = read(body.to_string().as_bytes(), ReviewVersion::V1beta1, "u", false).unwrap();
    assert_eq!((got.allowed, got.patch), (true, None));
}

fn check_denied(status: Value, code: u16, reason: &str, message: &str) {
    let error = denied("a.b.c", Some(&status));
    assert_eq!(
        (error.code, error.reason.as_ref(), error.message.as_str()),
        (code, reason, message),
        "{status}"
    );
}

#[test]
fn denials_have_the_message_of_the_webhook() {
    let by = "admission webhook \"a.b.c\" denied the request";
    assert_eq!(denied("a.b.c", None).message, format!("{by} without explanation"));
    check_denied(json!({}), 400, "", &format!("{by} without explanation"));
    check_denied(json!({"message": "no"}), 400, "", &format!("{by}: no"));
    check_denied(
        json!({"reason": "Forbidden", "code": 403}),
        403,
        "Forbidden",
        &format!("{by}: Forbidden"),
    );
    check_denied(
        json!({"message": "no", "reason": "Gone", "code": 410}),
        410,
        "Gone",
        &format!("{by}: no"),
    );
    // A denial with a code of success still fails.
    check_denied(
        json!({"status": "Success", "code": 200}),
        400,
        "",
        &format!("{by} without explanation"),
    );
    let error = denied(
        "a.b.c",
        Some(
            &json!({"details": {"name": "n", "retryAfterSeconds": 3, "causes": [{"field": "spec", "message": "m", "reason": "r"}]}}),
        ),
    );
    assert_eq!(
        error.status()["details"],
        json!({"name": "n", "retryAfterSeconds": 3, "causes": [{"field": "spec", "message": "m", "reason": "r"}]})
    );
}
