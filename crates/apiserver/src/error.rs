//! Errors in the form of Kubernetes: a `Status` with reason, details and causes.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value, json};
use windlass_meta::beginning;
use windlass_meta::budget::{FIELD_ERROR_BYTES, FIELD_ERRORS, MESSAGE_BYTES, PATH_BYTES};
use windlass_objects::names::qualified;
use windlass_schema::FieldError;

/// The reason of errors that are sent as plain text instead of a `Status`.
const PLAIN: &str = "plain text";

/// An error response.
#[derive(Debug, Clone)]
pub struct ApiError {
    /// HTTP status code.
    pub code: u16,
    /// Reason, empty if Kubernetes has none.
    pub reason: Cow<'static, str>,
    /// Message for users.
    pub message: String,
    pub(crate) details: Option<Box<Details>>,
    /// Warnings of the response.
    pub(crate) warnings: Vec<String>,
}

/// The `details` of a `Status`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Details {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) uid: String,
    pub(crate) causes: Vec<Cause>,
    pub(crate) retry_after: Option<u32>,
    /// The token with which a list may continue in spite of the error.
    pub(crate) continues: Option<String>,
}

/// One cause.
#[derive(Debug, Clone)]
pub(crate) struct Cause {
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) field: String,
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

impl ApiError {
    /// An error without details.
    pub fn new(code: u16, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into(),
            details: None,
            warnings: Vec::new(),
        }
    }

    /// The request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// The server failed.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let mut error = Self::new(500, "InternalError", format!("Internal error occurred: {message}"));
        error.details = Some(Box::new(Details {
            causes: vec![Cause {
                reason: String::new(),
                message: message.to_string(),
                field: String::new(),
            }],
            ..Details::default()
        }));
        error
    }

    /// The error with warnings.
    pub(crate) fn warned(mut self, warnings: &mut Vec<String>) -> Self {
        self.warnings.append(warnings);
        self
    }

    fn with(mut self, group: &str, kind: &str, name: &str) -> Self {
        self.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            ..Details::default()
        }));
        self
    }

    /// The object does not exist.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", qualified(group, resource));
        Self::new(404, "NotFound", message).with(group, resource, name)
    }

    /// The path does not exist.
    pub fn no_resource() -> Self {
        let mut error = Self::new(404, "NotFound", "the server could not find the requested resource");
        error.details = Some(Box::default());
        error
    }

    /// The path does not exist, and the response is not a `Status`.
    pub(crate) fn no_page() -> Self {
        Self::new(404, PLAIN, "404 page not found\n")
    }

    /// Whether the response is the plain message.
    pub(crate) fn is_plain(&self) -> bool {
        self.reason == PLAIN
    }

    /// The object exists.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", qualified(group, resource));
        Self::new(409, "AlreadyExists", message).with(group, resource, name)
    }

    /// The error for a name that the server generated.
    pub(crate) fn of_generated_name(mut self) -> Self {
        self.message
            .push_str(", the server was not able to generate a unique name for the object");
        let details = self.details.get_or_insert_default();
        details.retry_after = Some(1);
        self
    }

    /// Another client has changed the object, or a precondition failed.
    pub fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} \"{name}\": {why}",
            qualified(group, resource)
        );
        Self::new(409, "Conflict", message).with(group, resource, name)
    }

    /// The object was changed since it was read.
    pub fn modified(group: &str, resource: &str, name: &str) -> Self {
        Self::conflict(
            group,
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// Forbidden for all users.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let what = qualified(group, resource);
        let message = if name.is_empty() {
            format!("{what} is forbidden: {why}")
        } else {
            format!("{what} \"{name}\" is forbidden: {why}")
        };
        Self::new(403, "Forbidden", message).with(group, resource, name)
    }

    /// Fields are invalid. Lists as many errors as the budget of an answer allows.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let mut texts: Vec<String> = Vec::new();
        let mut causes = Vec::new();
        let mut left = FIELD_ERROR_BYTES;
        for error in errors.iter().take(FIELD_ERRORS) {
            let text = error.to_string();
            // The first one always is there.
            if !causes.is_empty() && text.len() > left {
                break;
            }
            left = left.saturating_sub(text.len());
            texts.push(text);
            causes.push(Cause {
                reason: error.kind.reason().to_owned(),
                message: error.body(),
                field: error.path.clone(),
            });
        }
        let left_out = errors.len() - causes.len();
        let mut unique = HashSet::new();
        texts.retain(|text| unique.insert(text.clone()));
        if left_out > 0 {
            texts.push(format!("and {left_out} more errors"));
        }
        let list = match texts.as_slice() {
            [] => String::new(),
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} \"{name}\" is invalid: {list}", qualified(group, kind));
        let mut error = Self::new(422, "Invalid", message).with(group, kind, name);
        if let Some(details) = &mut error.details {
            details.causes = causes;
        }
        error
    }

    /// Server-side apply conflicts with other field managers.
    pub(crate) fn apply_conflict(message: String, causes: Vec<Cause>) -> Self {
        let mut error = Self::new(409, "Conflict", message);
        error.details = Some(Box::new(Details {
            causes,
            ..Details::default()
        }));
        error
    }

    /// The resource does not support the verb.
    pub fn method_not_allowed(verb: &str) -> Self {
        let mut error = Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        error.details = Some(Box::default());
        tracing::debug!(verb, "method not allowed");
        error
    }

    /// The resource does not support the verb for a subresource.
    pub(crate) fn not_supported(group: &str, resource: &str, verb: &str) -> Self {
        let what = qualified(group, resource);
        let message = format!("{verb} is not supported on resources of kind \"{what}\"");
        Self::new(405, "MethodNotAllowed", message).with(group, resource, "")
    }

    /// The requested revision is no longer available.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// The media type of the body is not supported.
    pub(crate) fn unsupported_media_type(accepted: &str) -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}"),
        )
    }

    /// The response is not available in a media type that the client accepts.
    pub(crate) fn not_acceptable(accepted: &str) -> Self {
        Self::new(
            406,
            "NotAcceptable",
            format!("only the following media types are accepted: {accepted}"),
        )
    }

    /// [`Self::not_acceptable`] in the wording of the router, which checks first.
    pub(crate) fn not_available(available: &str) -> Self {
        let mut error = Self::new(
            406,
            "NotAcceptable",
            format!("406: Not Acceptable\n\nAvailable representations: {available}"),
        );
        error.details = Some(Box::default());
        error
    }

    /// The media type of the body is not known to the router.
    pub(crate) fn unrouted_media_type() -> Self {
        let mut error = Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
        error.details = Some(Box::default());
        error
    }

    /// The requested resourceVersion is newer than the current one.
    pub(crate) fn too_large(wanted: u64, current: u64) -> Self {
        let mut error = Self::new(
            504,
            "Timeout",
            format!("Timeout: Too large resource version: {wanted}, current: {current}"),
        );
        error.details = Some(Box::new(Details {
            causes: vec![Cause {
                reason: "ResourceVersionTooLarge".to_owned(),
                message: "Too large resource version".to_owned(),
                field: String::new(),
            }],
            retry_after: Some(1),
            ..Details::default()
        }));
        error
    }

    /// The user has too many requests at the same time.
    pub(crate) fn too_many_requests() -> Self {
        let mut error = Self::new(429, "TooManyRequests", "Too many requests, please try again later.");
        error.details = Some(Box::new(Details {
            retry_after: Some(1),
            ..Details::default()
        }));
        error
    }

    /// The user has too many of something that lasts.
    pub(crate) fn too_many(what: &str, most: usize) -> Self {
        let mut error = Self::too_many_requests();
        error.message = format!("Too many {what}: a user may have {most} at the same time.");
        error
    }

    /// The request is not authenticated.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn storage(error: &windlass_store::StorageError) -> Self {
        let mut out = Self::internal(error);
        if error.full {
            out.code = 507;
        }
        out
    }

    /// The `Status` object.
    pub fn status(&self) -> Value {
        let mut out = Map::new();
        out.insert("kind".into(), "Status".into());
        out.insert("apiVersion".into(), "v1".into());
        let continues = self.details.as_ref().and_then(|d| d.continues.as_ref());
        out.insert(
            "metadata".into(),
            continues.map_or_else(|| json!({}), |token| json!({ "continue": token })),
        );
        out.insert("status".into(), "Failure".into());
        out.insert("message".into(), beginning(&self.message, MESSAGE_BYTES).into());
        if !self.reason.is_empty() {
            out.insert("reason".into(), self.reason.as_ref().into());
        }
        if let Some(d) = self.details.as_ref().filter(|d| d.continues.is_none()) {
            out.insert("details".into(), d.value());
        }
        out.insert("code".into(), self.code.into());
        Value::Object(out)
    }
}

impl Details {
    fn value(&self) -> Value {
        let mut out = Map::new();
        for (key, text) in [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
            ("uid", &self.uid),
        ] {
            if !text.is_empty() {
                out.insert(key.into(), beginning(text, PATH_BYTES).into());
            }
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(|c| {
                let mut cause = Map::new();
                if !c.reason.is_empty() {
                    cause.insert("reason".into(), c.reason.clone().into());
                }
                if !c.message.is_empty() {
                    cause.insert("message".into(), beginning(&c.message, MESSAGE_BYTES).into());
                }
                if !c.field.is_empty() {
                    cause.insert("field".into(), c.field.clone().into());
                }
                Value::Object(cause)
            });
            out.insert("causes".into(), causes.collect());
        }
        if let Some(seconds) = self.retry_after {
            out.insert("retryAfterSeconds".into(), seconds.into());
        }
        Value::Object(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_where_it_is_too_long() {
        let shown = |length: usize| {
            let status = ApiError::bad_request("m".repeat(length)).status();
            status["message"].as_str().unwrap_or_default().to_owned()
        };
        assert_eq!(shown(MESSAGE_BYTES).len(), MESSAGE_BYTES);
        let cut = shown(MESSAGE_BYTES + 1);
        assert!(cut.len() == MESSAGE_BYTES + 3 && cut.ends_with("m..."));
    }

    #[test]
    fn errors_of_fields_are_listed_up_to_a_number_of_bytes() {
        let error = |length: usize| {
            let empty = FieldError::required("", "").to_string().len();
            FieldError::required("p".repeat(length - empty), "")
        };
        let half = FIELD_ERROR_BYTES / 2;
        let listed = |lengths: &[usize]| {
            let errors: Vec<FieldError> = lengths.iter().map(|length| error(*length)).collect();
            assert_eq!(errors[0].to_string().len(), lengths[0]);
            let refused = ApiError::invalid("", "Widget", "w", &errors);
            let causes = refused.details.map_or(0, |details| details.causes.len());
            (
                causes,
                refused
                    .message
                    .ends_with(&format!("and {} more errors]", errors.len() - causes)),
            )
        };
        assert_eq!(listed(&[half, half]), (2, false));
        assert_eq!(listed(&[half, half + 1]), (1, true));
        assert_eq!(listed(&[half, half, 100]), (2, true));
        // The only one is there whatever its length.
        assert_eq!(listed(&[FIELD_ERROR_BYTES + 1]), (1, false));
    }
}
