//! What a request makes of a stored object, before the server adds its part.

use serde_json::Value;
use windlass_smd::{Apply, ApplyError, PatchError};

use super::{Call, Mutation};
use crate::error::{ApiError, Cause};
use crate::object::{meta, set_meta};
use crate::prepare::{self, Part};
use crate::{scale, validate};

fn patch_error(error: PatchError, call: &Call<'_>, name: &str) -> ApiError {
    match error {
        PatchError::BadPatch(why) => ApiError::bad_request(why),
        PatchError::Unprocessable(why) => ApiError::new(
            422,
            "Invalid",
            format!(
                "{} \"{name}\" could not be patched: {why}",
                crate::error::qualified(&call.resource.group, &call.resource.plural)
            ),
        ),
    }
}

fn apply_error(error: ApplyError) -> ApiError {
    match error {
        ApplyError::Conflicts(conflicts) => {
            let causes = conflicts
                .0
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
        other => ApiError::bad_request(other.to_string()),
    }
}

impl Call<'_> {
    pub(super) fn apply_onto(
        &self,
        live: Option<&Value>,
        config: &Value,
        part: Part,
        now: jiff::Timestamp,
    ) -> Result<Value, ApiError> {
        let (scope, subresource) = self.scope(part);
        windlass_smd::apply(&Apply {
            schema: self.resource.schema().map(AsRef::as_ref),
            live,
            applied: config,
            manager: &self.manager,
            api_version: &self.resource.api_version(),
            subresource,
            scope,
            force: self.options.force.unwrap_or(false),
            now,
        })
        .map(|applied| applied.object)
        .map_err(apply_error)
    }

    /// What the object would become, before the server adds its part.
    pub(super) fn candidate(
        &self,
        old: &Value,
        name: &str,
        mutation: &Mutation,
        part: Part,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let schema = self.resource.schema().map(AsRef::as_ref);
        let mut out = old.clone();
        let mut duplicates: &[String] = &[];
        match mutation {
            Mutation::Replace(object, twice) => {
                out = object.clone();
                duplicates = twice;
            }
            Mutation::Json(patch) => {
                windlass_smd::json_patch(&mut out, patch).map_err(|e| patch_error(e, self, name))?;
            }
            Mutation::Merge(patch) => windlass_smd::merge_patch(&mut out, patch),
            Mutation::Strategic(patch) => {
                windlass_smd::strategic_merge_patch(schema, &mut out, patch).map_err(|e| patch_error(e, self, name))?;
            }
            Mutation::Scale(path, replicas, _) => scale::set_path(&mut out, path, (*replicas).into()),
            Mutation::Apply(config, twice) => {
                let mut config = config.clone();
                prepare::check_place(self.resource, &mut config, self.namespace, Some(name))?;
                let warnings = self.check_applied(&mut config, twice)?;
                let given = meta(&config, "resourceVersion");
                if !given.is_empty() && given != meta(old, "resourceVersion") {
                    return Err(self.modified(name));
                }
                set_meta(&mut config, "resourceVersion", None);
                out = self.apply_onto(Some(old), &config, part, self.server.now())?;
                prepare::check_place(self.resource, &mut out, self.namespace, Some(name))?;
                validate::shape(self.resource, &mut out, &[], crate::request::FieldValidation::Ignore)?;
                return Ok((out, warnings));
            }
        }
        prepare::check_place(self.resource, &mut out, self.namespace, Some(name))?;
        let warnings = validate::shape(self.resource, &mut out, duplicates, self.options.field_validation)?;
        Ok((out, warnings))
    }

    /// Prunes what is applied, without defaults: those are nobody's.
    fn check_applied(&self, config: &mut Value, duplicates: &[String]) -> Result<Vec<String>, ApiError> {
        let mut shaped = config.clone();
        let warnings = validate::shape(self.resource, &mut shaped, duplicates, self.options.field_validation)?;
        if let Some(schema) = self.resource.schema() {
            windlass_schema::prune(schema, config);
        }
        Ok(warnings)
    }
}
