//! Writes to the scale of an object: a separate small object with separate field managers.

use jiff::Timestamp;
use serde_json::Value;
use windlass_schema::FieldError;
use windlass_smd::{ManagedFields, Request, Scope, Versions};

use super::apply::{apply_error, check_type};
use super::patch::patch_error;
use crate::error::ApiError;
use crate::objects::scale::{self, set_path};
use crate::verbs::call::Call;
use crate::verbs::mutation::Mutation;
use windlass_objects::metadata::{meta, meta_value, set_meta, text};

const VERSION: &str = "autoscaling/v1";

impl Call<'_> {
    /// The object with its scale written.
    pub(super) fn scaled(&self, old: &Value, name: &str, wanted: &Mutation) -> Result<Value, ApiError> {
        let Some(paths) = &self.resource.scale else {
            return Err(ApiError::no_resource());
        };
        let path: Vec<&str> = paths.spec.split('.').collect();
        let owners = ManagedFields::of(old).unwrap_or_default();
        let mut live = scale::of(old, paths);
        let unset = self.resource.is_custom() && scale::is_unset(old, &paths.spec);
        if unset && let Some(spec) = live.get_mut("spec").and_then(Value::as_object_mut) {
            spec.clear();
        }
        windlass_smd::scale_managers(&owners, &path).write(&mut live);
        let now = self.server.now();
        let new = self.new_scale(&live, name, wanted, now)?;
        let replicas = new.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0);
        if unset && new.pointer("/spec/replicas").is_none() && !matches!(wanted, Mutation::Replace(..)) {
            let words = format!("the spec replicas field \".{}\" cannot be empty", paths.spec);
            return Err(ApiError::bad_request(words));
        }
        // Custom objects are validated as a whole.
        if replicas < 0 && !self.resource.is_custom() {
            return Err(ApiError::invalid(
                "autoscaling",
                "Scale",
                name,
                &[FieldError::invalid(
                    "spec.replicas",
                    replicas.into(),
                    "must be greater than or equal to 0",
                )],
            ));
        }
        let mut out = old.clone();
        set_path(&mut out, &paths.spec, replicas.into());
        set_meta(
            &mut out,
            "resourceVersion",
            meta_value(&new, "resourceVersion").cloned(),
        );
        let scale_owners = ManagedFields::of(&new).unwrap_or_default();
        windlass_smd::object_managers(&owners, &scale_owners, &path, self.resource.api_version()).write(&mut out);
        Ok(out)
    }

    fn new_scale(&self, live: &Value, name: &str, wanted: &Mutation, now: Timestamp) -> Result<Value, ApiError> {
        let schema = windlass_builtin_kinds::parsed("io.k8s.api.autoscaling.v1.Scale");
        let request = Request {
            schema: schema.as_deref(),
            versions: Versions::ALIKE,
            live: Some(live),
            manager: &self.manager,
            api_version: VERSION,
            subresource: "scale",
            scope: Scope::ALL,
            now,
        };
        let mut new = match wanted {
            Mutation::Replace(scale, _) => scale.clone(),
            Mutation::Json(patch, _) => {
                let mut new = live.clone();
                windlass_smd::json_patch(&mut new, patch).map_err(patch_error)?;
                new
            }
            Mutation::Merge(patch, _) | Mutation::Strategic(patch, _) => {
                let mut new = live.clone();
                windlass_smd::merge_patch(&mut new, patch);
                new
            }
            Mutation::Apply(config, _) => {
                check_type(config, VERSION, "Scale")?;
                let force = self.options.force.unwrap_or(false);
                let applied = windlass_smd::apply(&request, config, force).map_err(apply_error)?;
                return Ok(applied.object);
            }
            Mutation::Scale(_) | Mutation::Bind(_) => return Err(ApiError::internal("a scale has no scale")),
        };
        if !matches!(text(&new, "kind"), "" | "Scale") {
            return Err(ApiError::bad_request(format!(
                "the object must be a Scale, not {}",
                text(&new, "kind")
            )));
        }
        let its = meta(&new, "name");
        if !its.is_empty() && its != name {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({its}) does not match the name on the URL ({name})"
            )));
        }
        windlass_smd::update(&request, &mut new);
        Ok(new)
    }
}
