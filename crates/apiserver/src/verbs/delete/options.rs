//! The options of a deletion, from the body or else the query. Pure.

use serde_json::{Value, json};
use windlass_schema::{FieldError, Kind};

use super::Propagation;
use crate::codec::go_wording::{json_type, unregistered};
use crate::error::ApiError;
use crate::http::request::Query;
use windlass_objects::metadata::{strings, text};

/// Options of a deletion.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) uid: Option<String>,
    pub(crate) revision: Option<String>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) grace: Option<i64>,
    pub(crate) dry_run: bool,
    /// Whether webhooks have already reviewed the request that leads to the deletion, so that they are not called again.
    pub(crate) admitted: bool,
}

/// Options as given, before validation.
#[derive(Default)]
struct Given {
    propagation: Option<String>,
    orphan: Option<bool>,
    grace: Option<i64>,
    dry_run: Vec<String>,
    uid: Option<String>,
    revision: Option<String>,
}

impl Given {
    fn in_query(query: &Query) -> Result<Self, ApiError> {
        Ok(Self {
            propagation: query.all("propagationPolicy").next().map(str::to_owned),
            orphan: query.flag("orphanDependents"),
            grace: query.number("gracePeriodSeconds")?,
            dry_run: query.all("dryRun").map(str::to_owned).collect(),
            ..Self::default()
        })
    }

    fn in_body(body: &Value) -> Result<Self, ApiError> {
        let Some(map) = body.as_object() else {
            return Err(ApiError::bad_request("the body of a deletion must be DeleteOptions"));
        };
        let kind = text(body, "kind");
        if !matches!(kind, "" | "DeleteOptions") {
            return Err(ApiError::bad_request(unregistered(kind, text(body, "apiVersion"))));
        }
        let field = |key: &str| map.get(key).filter(|value| !value.is_null());
        let wanted = |key: &str| {
            let found = field("preconditions").and_then(|all| all.get(key));
            found.and_then(Value::as_str).map(str::to_owned)
        };
        Ok(Self {
            propagation: typed(field("propagationPolicy"), "propagationPolicy", "string", Value::as_str)?
                .map(str::to_owned),
            orphan: typed(field("orphanDependents"), "orphanDependents", "bool", Value::as_bool)?,
            grace: typed(
                field("gracePeriodSeconds"),
                "gracePeriodSeconds",
                "int64",
                Value::as_i64,
            )?,
            dry_run: strings(field("dryRun")).into_iter().map(str::to_owned).collect(),
            uid: wanted("uid"),
            revision: wanted("resourceVersion"),
        })
    }
}

/// A field of a type, or Kubernetes' error for another type.
fn typed<'v, T>(
    value: Option<&'v Value>,
    key: &str,
    wanted: &str,
    read: impl Fn(&'v Value) -> Option<T>,
) -> Result<Option<T>, ApiError> {
    let Some(value) = value else {
        return Ok(None);
    };
    read(value).map(Some).ok_or_else(|| {
        ApiError::bad_request(format!(
            "json: cannot unmarshal {} into Go struct field DeleteOptions.{key} of type {wanted}",
            json_type(value)
        ))
    })
}

fn invalid(error: FieldError) -> ApiError {
    ApiError::invalid("meta.k8s.io", "DeleteOptions", "", &[error])
}

impl DeleteOptions {
    /// Reads the body, if there is one, else the query.
    pub(crate) fn parse(body: &Value, query: &Query) -> Result<Self, ApiError> {
        let given = if body.is_null() {
            Given::in_query(query)?
        } else {
            Given::in_body(body)?
        };
        let dry_run = given.dry_run.iter().any(|value| value == "All");
        if given.dry_run.iter().any(|value| value != "All") {
            return Err(invalid(FieldError::not_supported(
                "dryRun",
                given.dry_run.into(),
                &["All".to_owned()],
            )));
        }
        let at = "propagationPolicy";
        let propagation = match (given.propagation.as_deref(), given.orphan) {
            (Some(policy), Some(_)) => {
                return Err(invalid(FieldError::invalid(
                    at,
                    policy.into(),
                    "orphanDependents and deletionPropagation cannot be both set",
                )));
            }
            (Some("Orphan"), None) | (None, Some(true)) => Some(Propagation::Orphan),
            (Some("Background"), None) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Foreground"), None) => Some(Propagation::Foreground),
            (None, None) => None,
            (Some(other), None) => {
                return Err(invalid(FieldError::new(
                    at,
                    Kind::NotSupported,
                    Some(other.into()),
                    "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
                )));
            }
        };
        Ok(Self {
            uid: given.uid,
            revision: given.revision,
            propagation,
            // A negative grace period is the shortest possible one.
            grace: given.grace.map(|seconds| if seconds < 0 { 1 } else { seconds }),
            dry_run,
            admitted: false,
        })
    }

    /// The options as an object.
    pub(crate) fn value(&self) -> Value {
        let mut out = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
        if let Some(grace) = self.grace {
            out["gracePeriodSeconds"] = grace.into();
        }
        if let Some(propagation) = self.propagation {
            out["propagationPolicy"] = match propagation {
                Propagation::Orphan => "Orphan",
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
            }
            .into();
        }
        for (key, wanted) in [("uid", &self.uid), ("resourceVersion", &self.revision)] {
            if let Some(wanted) = wanted {
                out["preconditions"][key] = wanted.clone().into();
            }
        }
        if self.dry_run {
            out["dryRun"] = json!(["All"]);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &Value, query: &str) -> Result<DeleteOptions, ApiError> {
        DeleteOptions::parse(body, &Query::parse(query))
    }

    #[test]
    fn the_body_counts_and_the_query_only_without_one() {
        let both = parse(&json!({"propagationPolicy": "Orphan"}), "propagationPolicy=Foreground").unwrap();
        assert_eq!(both.propagation, Some(Propagation::Orphan));
        let query = parse(
            &Value::Null,
            "propagationPolicy=Foreground&gracePeriodSeconds=5&dryRun=All",
        )
        .unwrap();
        assert_eq!(query.propagation, Some(Propagation::Foreground));
        assert_eq!((query.grace, query.dry_run), (Some(5), true));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let check = |body: Value, query: &str, code: u16, want: &str| {
            let error = parse(&body, query).unwrap_err();
            assert_eq!(error.code, code);
            assert!(error.message.contains(want), "{}", error.message);
        };
        check(Value::Null, "propagationPolicy=", 422, "Unsupported value: \"\"");
        check(Value::Null, "gracePeriodSeconds=soon", 400, "invalid syntax");
        check(Value::Null, "dryRun=Some", 422, "Unsupported value: [\"Some\"]");
        check(json!([]), "", 400, "DeleteOptions");
        check(json!({"kind": "Pod", "apiVersion": "v1"}), "", 400, "no kind \"Pod\"");
        check(json!({"gracePeriodSeconds": "soon"}), "", 400, "of type int64");
        let both = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
        check(both, "", 422, "cannot be both set");
    }
}
