//! The body of a call to a webhook, and the meaning of the response. Pure.

use base64::Engine as _;
use serde::Serialize;
use serde_json::Value;

use windlass_meta::beginning;
use windlass_meta::budget::{PATH_BYTES, WEBHOOK_WARNING_BYTES, WEBHOOK_WARNINGS};

use super::hook::ReviewVersion;
use super::matching::Operation;
use crate::codec::go_wording::unregistered;
use crate::error::{ApiError, Cause, Details};
use windlass_objects::metadata::{strings, text};

/// Group, version and kind of an object, or resource of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct KindName<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
}

/// Group, version and resource of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ResourceName<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) resource: &'a str,
}

/// The request part of a review.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Question<'a> {
    pub(crate) uid: String,
    pub(crate) kind: KindName<'a>,
    pub(crate) resource: ResourceName<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) sub_resource: &'a str,
    pub(crate) request_kind: KindName<'a>,
    pub(crate) request_resource: ResourceName<'a>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) request_sub_resource: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) namespace: &'a str,
    pub(crate) operation: Operation,
    pub(crate) user_info: &'a Value,
    pub(crate) object: Option<&'a Value>,
    pub(crate) old_object: Option<&'a Value>,
    pub(crate) dry_run: bool,
    pub(crate) options: &'a Value,
}

/// The body of a request to a webhook.
pub(crate) fn body(version: ReviewVersion, question: &Question<'_>) -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Review<'a> {
        kind: &'static str,
        api_version: &'static str,
        request: &'a Question<'a>,
    }
    let review = Review {
        kind: "AdmissionReview",
        api_version: version.api_version(),
        request: question,
    };
    // Writing JSON to memory cannot fail.
    serde_json::to_vec(&review).unwrap_or_default()
}

/// The decision of a webhook.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Verdict {
    pub(crate) allowed: bool,
    /// The reason of a denial.
    pub(crate) status: Option<Value>,
    /// An encoded JSON patch.
    pub(crate) patch: Option<Vec<u8>>,
    pub(crate) warnings: Vec<String>,
}

/// Why a response is unusable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It is not an object of the expected form.
    Unreadable(String),
    /// It breaks the rules of reviews.
    Invalid(String),
}

/// Parses a response.
pub(crate) fn read(body: &[u8], version: ReviewVersion, uid: &str, mutating: bool) -> Result<Verdict, Unusable> {
    let invalid = |why: String| Err(Unusable::Invalid(why));
    if body.is_empty() {
        let why = "0-length response with status code: 200 and content type: application/json";
        return Err(Unusable::Unreadable(why.to_owned()));
    }
    let review: Value = serde_json::from_slice(body)
        .map_err(|e| Unusable::Unreadable(format!("couldn't get version/kind; json parse error: {e}")))?;
    known(&review, version)?;
    let (api_version, kind) = (text(&review, "apiVersion"), text(&review, "kind"));
    if api_version.is_empty() || kind.is_empty() {
        return Err(Unusable::Unreadable(
            "the answer has no apiVersion or no kind: an AdmissionReview is expected".to_owned(),
        ));
    }
    let Some(response) = review.get("response").filter(|r| r.is_object()) else {
        return invalid("webhook response was absent".to_owned());
    };
    let is_v1 = version == ReviewVersion::V1;
    let answered = text(response, "uid");
    // The older version did not require the uid.
    if answered != uid && is_v1 {
        return invalid(format!(
            "expected response.uid={uid:?}, got {:?}",
            beginning(answered, PATH_BYTES)
        ));
    }
    let want = version.api_version();
    if (api_version, kind) != (want, "AdmissionReview") && is_v1 {
        let (api_version, kind) = (beginning(api_version, PATH_BYTES), beginning(kind, PATH_BYTES));
        return invalid(format!(
            "expected webhook response of {want}, Kind=AdmissionReview, got {api_version}, Kind={kind}"
        ));
    }
    let allowed = match response.get("allowed") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(allowed)) => *allowed,
        Some(other) => {
            let other = other.to_string();
            return Err(Unusable::Unreadable(format!(
                "response.allowed must be true or false, not {}",
                beginning(&other, PATH_BYTES)
            )));
        }
    };
    Ok(Verdict {
        allowed,
        status: response.get("status").filter(|s| s.is_object()).cloned(),
        patch: patch(response, is_v1, mutating)?,
        warnings: strings(response.get("warnings"))
            .into_iter()
            .take(WEBHOOK_WARNINGS)
            .map(|words| beginning(words, WEBHOOK_WARNING_BYTES).into_owned())
            .collect(),
    })
}

/// Checks that a response is a review of the version that was sent.
fn known(review: &Value, version: ReviewVersion) -> Result<(), Unusable> {
    const VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];
    let (api_version, kind) = (text(review, "apiVersion"), text(review, "kind"));
    if api_version.is_empty() || kind.is_empty() {
        return Ok(());
    }
    if kind != "AdmissionReview" || !VERSIONS.contains(&api_version) {
        return Err(Unusable::Unreadable(unregistered(kind, api_version)));
    }
    if api_version != version.api_version() {
        let short = |version: &str| version.rsplit('/').next().unwrap_or("").to_owned();
        return Err(Unusable::Unreadable(format!(
            "converting ({}.AdmissionReview) to ({}.AdmissionReview): unknown conversion",
            short(api_version),
            short(version.api_version())
        )));
    }
    Ok(())
}

fn patch(response: &Value, is_v1: bool, mutating: bool) -> Result<Option<Vec<u8>>, Unusable> {
    let invalid = |why: &str| Err(Unusable::Invalid(why.to_owned()));
    let encoded = text(response, "patch");
    let kind = response.get("patchType").and_then(Value::as_str);
    if !mutating {
        // The older version accepted such responses and ignored the patch.
        return match (encoded, kind) {
            ("", None) => Ok(None),
            _ if !is_v1 => Ok(None),
            ("", Some(_)) => invalid("validating webhook may not return response.patchType"),
            _ => invalid("validating webhook may not return response.patch"),
        };
    }
    if is_v1 {
        match (encoded, kind) {
            ("", Some(_)) => return invalid("webhook returned response.patchType but not response.patch"),
            ("", None) => {}
            (_, None) => return invalid("webhook returned response.patch but not response.patchType"),
            (_, Some("")) => return invalid("webhook returned invalid response.patchType of \"\""),
            (_, Some(_)) => {}
        }
    }
    if encoded.is_empty() {
        return Ok(None);
    }
    let decoded = base64::engine::general_purpose::STANDARD
        .decode(encoded)
        .map_err(|e| match e {
            base64::DecodeError::InvalidByte(at, _) => at,
            _ => encoded.len(),
        })
        .map_err(|at| Unusable::Unreadable(format!("illegal base64 data at input byte {at}")))?;
    // The type of the patch is checked only if the patch can be parsed.
    let readable = serde_json::from_slice::<Vec<Value>>(&decoded).is_ok_and(|steps| !steps.is_empty());
    match kind.filter(|k| *k != "JSONPatch" && readable) {
        Some(other) => Err(Unusable::Invalid(format!("unsupported patch type {other:?}"))),
        None => Ok(Some(decoded)),
    }
}

/// The error for a request that a webhook has denied: the webhook's own status, with a prefix before its message that names the
/// webhook.
pub(crate) fn denied(webhook: &str, status: Option<&Value>) -> ApiError {
    let nothing = Value::Null;
    let status = status.unwrap_or(&nothing);
    // A denial is never reported as a success.
    let code = status
        .get("code")
        .and_then(Value::as_u64)
        .and_then(|c| u16::try_from(c).ok())
        .filter(|c| (400..=999).contains(c))
        .unwrap_or(400);
    let (message, reason) = (text(status, "message"), text(status, "reason"));
    let by = format!("admission webhook {webhook:?} denied the request");
    let words = match (message, reason) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    let mut error = ApiError::new(code, reason.to_owned(), words);
    error.details = status
        .get("details")
        .filter(|d| d.is_object())
        .map(|d| Box::new(details(d)));
    error
}

fn details(value: &Value) -> Details {
    let own = |key| text(value, key).to_owned();
    Details {
        name: own("name"),
        group: own("group"),
        kind: own("kind"),
        uid: own("uid"),
        causes: value
            .get("causes")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|cause| Cause {
                reason: text(cause, "reason").to_owned(),
                message: text(cause, "message").to_owned(),
                field: text(cause, "field").to_owned(),
            })
            .collect(),
        continues: None,
        retry_after: value
            .get("retryAfterSeconds")
            .and_then(Value::as_u64)
            .and_then(|s| u32::try_from(s).ok())
            .filter(|s| *s > 0),
    }
}

#[cfg(test)]
mod tests;
