//! Server-side apply: to existing objects, to new ones, and to scales.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use windlass_schema::Schema;
use windlass_smd::{ApplyError, Request, Versions};

use crate::error::{ApiError, Cause};
use crate::objects::conversion::Conversion;
use crate::objects::resource::Resource;
use crate::verbs::call::Call;
use crate::verbs::options::FieldValidation;
use windlass_objects::Part;
use windlass_objects::metadata::text;

/// The response to a failed apply.
pub(super) fn apply_error(error: ApplyError) -> ApiError {
    match error {
        ApplyError::Conflicts(conflicts) => {
            let causes = conflicts
                .listed
                .iter()
                .map(|c| Cause {
                    reason: "FieldManagerConflict".to_owned(),
                    message: c.message(),
                    field: c.path.clone(),
                })
                .collect();
            ApiError::apply_conflict(conflicts.to_string(), causes)
        }
        ApplyError::Invalid(why) => ApiError::new(500, "", why),
        ApplyError::BadFields(_) => ApiError::new(500, "", error.to_string()),
        ApplyError::ManagedFieldsSet => ApiError::bad_request(error.to_string()),
    }
}

/// Refuses a configuration of another type than that of the path.
pub(super) fn check_type(config: &Value, api_version: &str, kind: &str) -> Result<(), ApiError> {
    let (version, its) = (text(config, "apiVersion"), text(config, "kind"));
    if version == api_version && its == kind {
        return Ok(());
    }
    let slash = if version.contains('/') { "" } else { "/" };
    Err(ApiError::bad_request(format!(
        "invalid object type: {slash}{version}, Kind={its}"
    )))
}

impl Call<'_> {
    /// The schema of another served version of the resource.
    fn schema_of(&self, api_version: &str) -> Option<Arc<Schema>> {
        let versions = self.server.registry().versions(self.resource);
        let other = versions
            .iter()
            .find(|r: &&Arc<Resource>| r.api_version() == api_version)?;
        other.schema().cloned()
    }

    pub(super) fn apply_onto(
        &self,
        live: Option<&Value>,
        config: &Value,
        part: Part,
        now: Timestamp,
    ) -> Result<Value, ApiError> {
        check_type(config, self.resource.api_version(), &self.resource.kind)?;
        self.requested(live, part, now, |request| {
            windlass_smd::apply(request, config, self.options.force.unwrap_or(false))
        })
        .map(|applied| applied.object)
        .map_err(apply_error)
    }

    /// Computes the field managers after any write but an apply.
    pub(super) fn own(&self, live: Option<&Value>, object: &mut Value, part: Part, now: Timestamp) {
        self.requested(live, part, now, |request| windlass_smd::update(request, object));
    }

    /// Runs a function with the request's ownership parameters.
    fn requested<T>(&self, live: Option<&Value>, part: Part, now: Timestamp, ask: impl FnOnce(&Request<'_>) -> T) -> T {
        let (scope, subresource) = self.scope(part);
        let lookup = |version: &str| self.schema_of(version);
        let (resource, definitions) = (self.resource, self.server.registry());
        let conversion = resource.conversion.as_deref();
        let convert = |object: &Value, version: &str| {
            // Requests cannot wait for webhooks here: with one, objects of all versions count as alike.
            match conversion?.decoded(&definitions, object, version) {
                Some(converted) => converted.ok(),
                None => Some(object.clone()),
            }
        };
        let mut versions = Versions::of(&lookup);
        if conversion.is_some_and(Conversion::has_converter) {
            versions = versions.converting(&convert);
        }
        ask(&Request {
            schema: self.resource.schema().map(AsRef::as_ref),
            versions,
            live,
            manager: &self.manager,
            api_version: self.resource.api_version(),
            subresource,
            scope,
            now,
        })
    }

    /// Warns about, or refuses, duplicate keys of a configuration.
    pub(super) fn repeated(&self, twice: &[String]) -> Result<Vec<String>, ApiError> {
        match self.options.field_validation {
            FieldValidation::Strict if !twice.is_empty() => Err(ApiError::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {}",
                twice.join("\n  ")
            ))),
            FieldValidation::Ignore => Ok(Vec::new()),
            _ => Ok(twice.to_vec()),
        }
    }
}
