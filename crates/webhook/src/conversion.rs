//! ConversionReviews: objects in another version of their kind. Pure.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use windlass_api_older::{References, convert, failure};

/// The path at which API servers ask for conversions. It is that of Cluster API.
pub(crate) const PATH: &str = "/convert";
/// The versions of reviews, as a definition lists them.
pub(crate) const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const GROUP: &str = "apiextensions.k8s.io/";
const KIND: &str = "ConversionReview";

/// A review with its request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(borrow)]
    request: Option<Request<'a>>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(default)]
    uid: String,
    #[serde(rename = "desiredAPIVersion", default)]
    wanted: String,
    #[serde(borrow, default)]
    objects: Vec<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    api_version: String,
    kind: &'static str,
    response: Response,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    uid: String,
    result: Outcome,
    converted_objects: Vec<Box<RawValue>>,
}

#[derive(Serialize)]
struct Outcome {
    status: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
}

/// The answer to a review: all of its objects, or the first one that cannot be converted. The error says why it is no review.
pub(crate) fn answer(body: &[u8], references: &dyn References) -> Result<String, String> {
    let review: Review<'_> =
        serde_json::from_slice(body).map_err(|error| format!("the body is no JSON of a ConversionReview: {error}"))?;
    let is_known = review
        .api_version
        .strip_prefix(GROUP)
        .is_some_and(|version| REVIEW_VERSIONS.contains(&version));
    if !is_known || review.kind != KIND {
        return Err(format!(
            "the body must be a ConversionReview of {GROUP}v1, and not {} of {:?}",
            if review.kind.is_empty() {
                "an object"
            } else {
                &review.kind
            },
            review.api_version
        ));
    }
    let request = review.request.ok_or("the ConversionReview has no request")?;
    let converted: Result<Vec<_>, String> = request
        .objects
        .iter()
        .map(|object| converted(object.get().as_bytes(), &request.wanted, references))
        .collect();
    let (result, message, converted_objects) = match converted {
        Ok(objects) => ("Success", String::new(), objects),
        Err(why) => ("Failure", why, Vec::new()),
    };
    let answer = Answer {
        api_version: review.api_version,
        kind: KIND,
        response: Response {
            uid: request.uid,
            result: Outcome {
                status: result,
                message,
            },
            converted_objects,
        },
    };
    serde_json::to_string(&answer).map_err(|error| error.to_string())
}

fn converted(object: &[u8], wanted: &str, references: &dyn References) -> Result<Box<RawValue>, String> {
    let converted = convert(object, wanted, references).map_err(|error| failure(object, wanted, &error))?;
    let text = String::from_utf8(converted).map_err(|error| error.to_string())?;
    RawValue::from_string(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use windlass_meta::GroupKind;

    use super::*;

    struct Nothing;

    impl References for Nothing {
        fn api_version(&self, kind: &GroupKind) -> Result<String, String> {
            Err(format!("{kind} is not known"))
        }
    }

    fn rule(version: &str, name: &str) -> Value {
        json!({
            "apiVersion": format!("cluster.x-k8s.io/{version}"), "kind": "MachineDrainRule",
            "metadata": {"name": name, "namespace": "default", "uid": "u", "resourceVersion": "7"},
            "spec": {"drain": {"behavior": "Skip"}},
        })
    }

    fn ask(review: &Value) -> Result<Value, String> {
        let answered = answer(review.to_string().as_bytes(), &Nothing)?;
        Ok(serde_json::from_str(&answered).unwrap())
    }

    fn review(version: &str, wanted: &str, objects: &[Value]) -> Value {
        json!({
            "apiVersion": format!("apiextensions.k8s.io/{version}"), "kind": "ConversionReview",
            "request": {"uid": "1", "desiredAPIVersion": format!("cluster.x-k8s.io/{wanted}"), "objects": objects},
        })
    }

    #[test]
    fn all_objects_of_a_review_are_converted() {
        for version in REVIEW_VERSIONS {
            // The objects of a review may have different versions.
            let objects = [rule("v1beta1", "a"), rule("v1beta2", "b")];
            let answered = ask(&review(version, "v1beta2", &objects)).unwrap();
            assert_eq!(answered["apiVersion"], format!("apiextensions.k8s.io/{version}"));
            let response = &answered["response"];
            assert_eq!(
                (&response["uid"], &response["result"]),
                (&json!("1"), &json!({"status": "Success"}))
            );
            assert_eq!(
                response["convertedObjects"],
                json!([rule("v1beta2", "a"), rule("v1beta2", "b")])
            );
        }
    }

    #[test]
    fn an_object_that_cannot_be_converted_is_named_and_none_is_answered() {
        let mut bad = rule("v1beta1", "b");
        bad["spec"]["drain"]["order"] = json!("first");
        let answered = ask(&review("v1", "v1beta2", &[rule("v1beta1", "a"), bad])).unwrap();
        let response = &answered["response"];
        assert_eq!(response["result"]["status"], "Failure");
        let message = response["result"]["message"].as_str().unwrap();
        assert!(
            message.starts_with(
                "MachineDrainRule default/b cannot be converted to cluster.x-k8s.io/v1beta2: spec.drain.order: "
            ),
            "{message}"
        );
        assert_eq!(response["convertedObjects"], json!([]));
        let unknown = ask(&review("v1", "v9", &[rule("v1beta1", "a")])).unwrap();
        assert_eq!(unknown["response"]["result"]["status"], "Failure");
    }

    #[test]
    fn what_is_no_review_is_refused() {
        let check = |body: &str, expect: &str| {
            let refused = answer(body.as_bytes(), &Nothing).unwrap_err();
            assert!(refused.contains(expect), "{refused}");
        };
        check("{", "no JSON");
        check("{}", "must be a ConversionReview");
        check(
            r#"{"apiVersion":"apiextensions.k8s.io/v2","kind":"ConversionReview"}"#,
            "v2",
        );
        check(
            r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}"#,
            "no request",
        );
    }
}
