//! The requested change of a stored object, before the server sets its own fields.

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_smd::PatchError;

use crate::error::ApiError;
use crate::objects::prepare;
use crate::objects::validate;
use crate::verbs::call::Call;
use crate::verbs::mutation::Mutation;
use crate::verbs::options::FieldValidation;
use windlass_objects::Part;
use windlass_objects::metadata::{meta, text};

/// The response to a failed patch.
pub(super) fn patch_error(error: PatchError) -> ApiError {
    match error {
        PatchError::BadPatch(why) => ApiError::bad_request(why),
        PatchError::Unnamed(why) => ApiError::new(500, "", why),
        PatchError::TooLarge(why) => ApiError::new(413, "RequestEntityTooLarge", why),
        PatchError::Unprocessable(why) => {
            // Kubernetes does not report which operation failed.
            tracing::debug!(reason = why, "a patch does not fit its object");
            let mut error = ApiError::new(
                422,
                "Invalid",
                "the server rejected our request due to an error in our request",
            );
            error.details = Some(Box::default());
            error
        }
    }
}

/// The error for the result of a patch that cannot be decoded; `shown` is the decoded text.
fn undecodable(shown: String, why: &str) -> ApiError {
    ApiError::invalid("", "", "", &[FieldError::invalid("patch", shown.into(), why)])
}

impl Call<'_> {
    /// The requested object, before the server sets its own fields.
    pub(super) fn candidate(
        &self,
        old: &Value,
        name: &str,
        mutation: &Mutation,
        part: Part,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let schema = self.resource.schema().map(AsRef::as_ref);
        match mutation {
            Mutation::Replace(object, twice) => {
                let mut out = object.clone();
                prepare::check_name(&out, name)?;
                prepare::check_place(self.resource, &mut out, self.namespace, Some(name))?;
                let warnings = validate::shape(self.resource, &mut out, twice, self.options.field_validation)?;
                Ok((out, warnings))
            }
            Mutation::Json(patch, problems) => {
                let patched = || {
                    let mut out = old.clone();
                    windlass_smd::json_patch(&mut out, patch).map(|()| out)
                };
                let shown = || patched().unwrap_or_default().to_string();
                self.patched(old, patched().map_err(patch_error)?, name, problems, &shown)
            }
            Mutation::Merge(patch, problems) => {
                let patched = || {
                    let mut out = old.clone();
                    windlass_smd::merge_patch(&mut out, patch);
                    out
                };
                self.patched(old, patched(), name, problems, &|| patched().to_string())
            }
            Mutation::Strategic(patch, problems) => {
                let mut out = old.clone();
                windlass_smd::strategic_merge_patch(schema, &mut out, patch).map_err(patch_error)?;
                // Only the Go type has the apiVersion and kind.
                for key in ["apiVersion", "kind"] {
                    out[key] = old[key].clone();
                }
                self.patched(old, out, name, problems, &|| windlass_smd::go_text(patch))
            }
            Mutation::Bind(node) => Ok((crate::verbs::pods::bound(old, node, self.server.now())?, Vec::new())),
            Mutation::Scale(wanted) => Ok((self.scaled(old, name, wanted)?, Vec::new())),
            Mutation::Apply(config, twice) => {
                let out = self.apply_onto(Some(old), config, part, self.server.now())?;
                let mut warnings = self.repeated(twice)?;
                let mut out = self.placed(out, name).map_err(|error| error.warned(&mut warnings))?;
                self.same_uid(old, &out, name)?;
                validate::complete_applied(self.resource, &mut out)?;
                Ok((out, warnings))
            }
        }
    }

    /// Decodes the result of a patch. The error shows a result that cannot be decoded.
    fn patched(
        &self,
        old: &Value,
        mut out: Value,
        name: &str,
        problems: &[String],
        shown: &dyn Fn() -> String,
    ) -> Result<(Value, Vec<String>), ApiError> {
        self.check_kind(&out).map_err(|error| match error {
            Misfit::Undecodable(why) => undecodable(shown(), &why),
            Misfit::Invalid(error) => *error,
        })?;
        if out.get("metadata").is_some_and(|m| !m.is_object() && !m.is_null()) {
            return Err(undecodable(shown(), "the metadata must be an object"));
        }
        if !self.resource.is_custom() {
            for key in ["apiVersion", "kind"] {
                out[key] = old[key].clone();
            }
        }
        let mut out = self
            .placed(out, name)
            .map_err(|error| error.warned(&mut problems.to_vec()))?;
        let mut found = validate::fit(self.resource, &mut out, &[], FieldValidation::Warn)
            .map_err(|misshapen| undecodable(shown(), &misshapen.words()))?;
        self.same_uid(old, &out, name)?;
        let mut all = problems.to_vec();
        all.append(&mut found);
        match self.options.field_validation {
            FieldValidation::Ignore => all.clear(),
            FieldValidation::Warn => {}
            FieldValidation::Strict if all.is_empty() => {}
            FieldValidation::Strict => {
                return Err(undecodable(
                    shown(),
                    &format!("strict decoding error: {}", all.join(", ")),
                ));
            }
        }
        Ok((out, all))
    }

    /// Checks that the result of a patch still has the kind of its path.
    fn check_kind(&self, out: &Value) -> Result<(), Misfit> {
        let want = self.resource.api_version();
        let (version, kind) = (text(out, "apiVersion"), text(out, "kind"));
        if !out.is_object() {
            return Err(Misfit::Undecodable("it is not an object".to_owned()));
        }
        if !self.resource.is_custom() {
            return prepare::foreign(self.resource, out).map_or(Ok(()), |why| Err(Misfit::Undecodable(why)));
        }
        if kind.is_empty() {
            return Err(Misfit::Undecodable(format!("Object 'Kind' is missing in '{out}'")));
        }
        let (field, value, must) = if kind != self.resource.kind {
            ("kind", kind, self.resource.kind.as_str())
        } else if version != want {
            ("apiVersion", version, want)
        } else {
            return Ok(());
        };
        let group = version.rsplit_once('/').map_or("", |(group, _)| group);
        let error = FieldError::invalid(field, value.into(), format!("must be {must}"));
        Err(Misfit::Invalid(Box::new(ApiError::invalid(
            group,
            kind,
            meta(out, "name"),
            &[error],
        ))))
    }

    /// Checks that an object has the name of its path.
    pub(super) fn placed(&self, mut out: Value, name: &str) -> Result<Value, ApiError> {
        if meta(&out, "name").is_empty() {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            )));
        }
        prepare::check_place(self.resource, &mut out, self.namespace, Some(name))?;
        Ok(out)
    }

    /// A patch with another uid is not a precondition, but an attempt to change the uid.
    fn same_uid(&self, old: &Value, out: &Value, name: &str) -> Result<(), ApiError> {
        let uid = meta(out, "uid");
        if uid.is_empty() || uid == meta(old, "uid") {
            return Ok(());
        }
        let error = FieldError::invalid("metadata.uid", uid.into(), "field is immutable");
        // Custom objects report this error once, built-in ones twice.
        let errors = if self.resource.is_custom() {
            vec![error]
        } else {
            vec![error.clone(), error]
        };
        Err(ApiError::invalid(
            &self.resource.group,
            &self.resource.kind,
            name,
            &errors,
        ))
    }
}

/// Why the result of a patch has the wrong kind.
enum Misfit {
    Undecodable(String),
    Invalid(Box<ApiError>),
}
