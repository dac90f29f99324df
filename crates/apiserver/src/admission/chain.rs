//! Admission of a write: first the in-process hooks and the mutating webhooks complete the object and then, when it is complete and
//! valid, the in-process hooks and the validating webhooks check it.
//!
//! In-process hooks complete an object before webhooks see it, and again after a webhook has changed it. What completes an object has no
//! owner in `managedFields`, as in Kubernetes. A new object already has its uid and name then.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;

use crate::admission::hook::{AdmissionRequest, AdmissionVerb};
use crate::admission::webhook::{Hooks, KindName, Operation};
use crate::admission::webhook_run::{Again, Occasion};
use crate::error::ApiError;
use crate::objects::convert::across_now;
use crate::objects::fresh::Fresh;
use crate::objects::prepare;
use crate::objects::resource::Resource;
use crate::objects::scale;
use crate::objects::validate;
use crate::verbs::call::Call;
use crate::verbs::delete::DeleteOptions;
use crate::verbs::options::FieldValidation;
use windlass_builtin_kinds::Special;
use windlass_objects::Part;
use windlass_objects::metadata::{meta, meta_value, set_meta};

/// The kind of the objects of scale subresources.
const SCALE: KindName<'static> = KindName {
    group: "autoscaling",
    version: "v1",
    kind: "Scale",
};

/// The kind of pod evictions.
const EVICTION: KindName<'static> = KindName {
    group: "policy",
    version: "v1",
    kind: "Eviction",
};

/// A write during admission.
pub(crate) struct Admission<'a> {
    pub(crate) call: &'a Call<'a>,
    pub(crate) part: Part,
    pub(crate) old: Option<&'a Value>,
    /// Set for a new object.
    pub(crate) fresh: Option<&'a Fresh>,
    /// The name in the request.
    pub(crate) name: &'a str,
}

impl Admission<'_> {
    fn occasion<'o>(&'o self, name: &'o str) -> Occasion<'o> {
        let call = self.call;
        let (operation, kind) = match self.old {
            None => (Operation::Create, "CreateOptions"),
            Some(_) => (Operation::Update, "UpdateOptions"),
        };
        Occasion {
            server: call.server,
            resource: call.resource,
            subresource: self.part.subresource(),
            kind: (self.part == Part::Scale).then_some(SCALE),
            namespace: call.place(name),
            name,
            operation,
            user: call.user,
            dry_run: call.options.dry_run,
            options: call.write_options(kind),
        }
    }

    /// Completes an object by the in-process hooks.
    pub(crate) fn complete(&self, object: &mut Value, warnings: &mut Vec<String>) -> Result<(), ApiError> {
        if self.call.server.options.admission.is_empty() {
            return Ok(());
        }
        let name = meta(object, "name").to_owned();
        let view = self.call.hook_view(Some(object), self.old)?;
        let old = view.as_ref().map_or(self.old, |view| view.old.as_ref());
        let resource = view.as_ref().map_or(self.call.resource, |view| &view.resource);
        let request = self.call.request(resource, self.verb(), self.part, &name, old);
        let mut converted = view.as_ref().and_then(|view| view.object.clone());
        let mut is_changed = false;
        for hook in &self.call.server.options.admission {
            is_changed |= hook
                .complete(&request, converted.as_mut().unwrap_or(object), warnings)
                .map_err(|error| error.warned(warnings))?;
        }
        if is_changed {
            if let Some(mut changed) = converted {
                if let Some(schema) = resource.schema() {
                    windlass_schema::default(schema, &mut changed);
                }
                let back = across_now(self.call.server, resource, self.call.resource, &changed)?;
                *object = back.unwrap_or(changed);
            }
            self.settle(object)?;
        }
        Ok(())
    }

    /// Checks a complete object by the in-process hooks.
    pub(crate) fn check(&self, object: &Value, warnings: &mut Vec<String>) -> Result<(), ApiError> {
        let view = self.call.hook_view(Some(object), self.old)?;
        let old = view.as_ref().map_or(self.old, |view| view.old.as_ref());
        let resource = view.as_ref().map_or(self.call.resource, |view| &view.resource);
        let request = self
            .call
            .request(resource, self.verb(), self.part, meta(object, "name"), old);
        let seen = view.as_ref().and_then(|view| view.object.as_ref());
        self.call.ask_hooks(&request, seen.unwrap_or(object), warnings)
    }

    /// Calls the mutating webhooks.
    pub(crate) async fn mutate(
        &self,
        hooks: &Hooks,
        object: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        if hooks.mutating.is_empty() {
            return Ok(());
        }
        let done = self.mutate_part(hooks, object, warnings).await;
        done.map_err(|error| error.warned(warnings))
    }

    async fn mutate_part(&self, hooks: &Hooks, object: &mut Value, warnings: &mut Vec<String>) -> Result<(), ApiError> {
        let occasion = self.occasion(self.name);
        let Some(paths) = self.call.resource.scale.as_ref().filter(|_| self.part == Part::Scale) else {
            let fields = meta_value(object, "managedFields").cloned();
            occasion.mutate(hooks, Some(object), self.old, self, warnings).await?;
            if windlass_smd::ManagedFields::of(object).is_err() {
                set_meta(object, "managedFields", fields);
            }
            return Ok(());
        };
        let mut scaled = scale::of(object, paths);
        let before = self.old.map(|old| scale::of(old, paths));
        let changed = occasion
            .mutate(hooks, Some(&mut scaled), before.as_ref(), self, warnings)
            .await?;
        if changed {
            let replicas = scaled.pointer("/spec/replicas").cloned().unwrap_or(0.into());
            scale::set_path(object, &paths.spec, replicas);
            if let Some(old) = self.old {
                prepare::for_update(self.call.resource, old, object, self.part);
            }
        }
        Ok(())
    }

    /// Calls the validating webhooks for a complete object.
    pub(crate) async fn validate(
        &self,
        hooks: &Hooks,
        object: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        if hooks.validating.is_empty() {
            return Ok(());
        }
        let occasion = self.occasion(meta(object, "name"));
        let done = match &self.call.resource.scale {
            Some(paths) if self.part == Part::Scale => {
                let scaled = scale::of(object, paths);
                let before = self.old.map(|old| scale::of(old, paths));
                occasion.validate(hooks, Some(&scaled), before.as_ref(), warnings).await
            }
            _ => occasion.validate(hooks, Some(object), self.old, warnings).await,
        };
        done.map_err(|error| error.warned(warnings))
    }

    fn verb(&self) -> AdmissionVerb {
        if self.old.is_some() {
            AdmissionVerb::Update
        } else {
            AdmissionVerb::Create
        }
    }
}

impl Again for Admission<'_> {
    fn place(&self, object: &Value) -> Result<(), ApiError> {
        let have = meta(object, "namespace");
        let call = self.call;
        if self.part != Part::Scale && call.resource.namespaced && !have.is_empty() && have != call.namespace {
            return Err(ApiError::bad_request(prepare::OTHER_NAMESPACE));
        }
        Ok(())
    }

    fn settle(&self, object: &mut Value) -> Result<(), ApiError> {
        let call = self.call;
        if self.part == Part::Scale {
            return match object.pointer("/spec/replicas") {
                None => Ok(()),
                Some(replicas) if replicas.as_i64().is_some_and(|n| n >= 0) => Ok(()),
                Some(replicas) => Err(ApiError::invalid(
                    "autoscaling",
                    "Scale",
                    self.name,
                    &[FieldError::invalid(
                        "spec.replicas",
                        replicas.clone(),
                        "must be greater than or equal to 0",
                    )],
                )),
            };
        }
        let name = self.old.map(|old| meta(old, "name"));
        prepare::check_place(call.resource, object, call.namespace, name)?;
        validate::shape(call.resource, object, &[], FieldValidation::Ignore)?;
        match (self.old, self.fresh) {
            (Some(old), _) => {
                set_meta(object, "resourceVersion", meta_value(old, "resourceVersion").cloned());
                prepare::for_update(call.resource, old, object, self.part);
            }
            (None, Some(fresh)) => prepare::for_create(call.resource, object, fresh)?,
            (None, None) => {}
        }
        Ok(())
    }

    fn admit(&self, object: &mut Value, warnings: &mut Vec<String>) -> Result<(), ApiError> {
        if self.part == Part::Scale {
            // Hooks see the object itself after its scale is set.
            return Ok(());
        }
        self.complete(object, warnings)
    }
}

/// For objects that are not stored: they need no completion.
struct Nothing;

impl Again for Nothing {
    fn place(&self, _: &Value) -> Result<(), ApiError> {
        Ok(())
    }

    fn settle(&self, _: &mut Value) -> Result<(), ApiError> {
        Ok(())
    }

    fn admit(&self, _: &mut Value, _: &mut Vec<String>) -> Result<(), ApiError> {
        Ok(())
    }
}

/// A write in the storage version.
struct HookView {
    resource: Arc<Resource>,
    object: Option<Value>,
    old: Option<Value>,
}

impl Call<'_> {
    /// The webhooks to call, if there are any.
    pub(crate) fn webhooks(&self) -> Option<Arc<Hooks>> {
        self.server
            .webhooks
            .current()
            .filter(|_| Occasion::concerns(self.resource))
    }

    /// Checks the deletion of an object by the in-process hooks.
    pub(crate) fn check_deletion(
        &self,
        old: &Value,
        dry_run: bool,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let view = self.hook_view(None, Some(old))?;
        let resource = view.as_ref().map_or(self.resource, |view| &view.resource);
        let old = view.as_ref().and_then(|view| view.old.as_ref()).unwrap_or(old);
        let request = AdmissionRequest {
            dry_run,
            ..self.request(
                resource,
                AdmissionVerb::Delete,
                Part::Main,
                meta(old, "name"),
                Some(old),
            )
        };
        self.ask_hooks(&request, old, warnings)
    }

    fn ask_hooks(
        &self,
        request: &AdmissionRequest<'_>,
        object: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let hooks = &self.server.options.admission;
        let asked = hooks.iter().try_for_each(|hook| hook.check(request, object, warnings));
        asked.map_err(|error| error.warned(warnings))
    }

    /// What the in-process hooks see of a write in a version that is converted in this process. `None` if they see it as it is.
    fn hook_view(&self, object: Option<&Value>, old: Option<&Value>) -> Result<Option<HookView>, ApiError> {
        let (is, wanted) = (self.resource.api_version(), &self.resource.storage_api_version);
        let conversion = self.resource.conversion.as_deref();
        if self.server.options.admission.is_empty() || !conversion.is_some_and(|known| known.is_in_process(is, wanted))
        {
            return Ok(None);
        }
        let Some(stored) = self.server.registry().find_storage(&self.resource.storage) else {
            return Ok(None);
        };
        let convert = |object: Option<&Value>| {
            let converted = object.map(|object| across_now(self.server, self.resource, &stored, object));
            converted.transpose().map(Option::flatten)
        };
        Ok(Some(HookView {
            object: convert(object)?,
            old: convert(old)?,
            resource: stored,
        }))
    }

    fn request<'r>(
        &'r self,
        resource: &'r Resource,
        verb: AdmissionVerb,
        part: Part,
        name: &'r str,
        old: Option<&'r Value>,
    ) -> AdmissionRequest<'r> {
        AdmissionRequest {
            verb,
            group: &resource.group,
            version: &resource.version,
            kind: &resource.kind,
            resource: &resource.plural,
            subresource: part.subresource(),
            namespace: self.namespace,
            name,
            user: self.user,
            old,
            dry_run: self.options.dry_run,
            server: self.server,
        }
    }

    /// The namespace of a request; a namespace is in itself.
    fn place<'n>(&'n self, name: &'n str) -> &'n str {
        if self.resource.special == Special::Namespace {
            name
        } else {
            self.namespace
        }
    }

    fn write_options(&self, kind: &str) -> Value {
        let mut out = Map::new();
        out.insert("kind".into(), kind.into());
        out.insert("apiVersion".into(), "meta.k8s.io/v1".into());
        if let Some(manager) = &self.options.field_manager {
            out.insert("fieldManager".into(), manager.clone().into());
        }
        match self.options.field_validation {
            FieldValidation::Warn => {}
            FieldValidation::Ignore => {
                out.insert("fieldValidation".into(), "Ignore".into());
            }
            FieldValidation::Strict => {
                out.insert("fieldValidation".into(), "Strict".into());
            }
        }
        if self.options.dry_run {
            out.insert("dryRun".into(), json!(["All"]));
        }
        Value::Object(out)
    }

    /// Calls the webhooks for the eviction of a pod, which is the creation of an Eviction.
    pub(crate) async fn ask_eviction(
        &self,
        hooks: &Hooks,
        name: &str,
        mut eviction: Value,
        dry_run: bool,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        eviction["apiVersion"] = "policy/v1".into();
        eviction["kind"] = EVICTION.kind.into();
        set_meta(&mut eviction, "name", Some(name.into()));
        set_meta(&mut eviction, "namespace", Some(self.namespace.into()));
        let occasion = Occasion {
            server: self.server,
            resource: self.resource,
            subresource: "eviction",
            kind: Some(EVICTION),
            namespace: self.namespace,
            name,
            operation: Operation::Create,
            user: self.user,
            dry_run,
            options: self.write_options("CreateOptions"),
        };
        let asked = occasion
            .mutate(hooks, Some(&mut eviction), None, &Nothing, warnings)
            .await;
        match asked {
            Ok(_) => occasion.validate(hooks, Some(&eviction), None, warnings).await,
            Err(error) => Err(error),
        }
        .map_err(|error| error.warned(warnings))
    }

    /// Calls the webhooks for a deletion: webhooks of both types may refuse it.
    pub(crate) async fn ask_deletion(
        &self,
        hooks: &Hooks,
        old: &Value,
        options: &DeleteOptions,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let name = meta(old, "name");
        let occasion = Occasion {
            server: self.server,
            resource: self.resource,
            subresource: "",
            kind: None,
            namespace: self.place(name),
            name,
            operation: Operation::Delete,
            user: self.user,
            dry_run: options.dry_run,
            options: options.value(),
        };
        let asked = occasion.mutate(hooks, None, Some(old), &Nothing, warnings).await;
        match asked {
            Ok(_) => occasion.validate(hooks, None, Some(old), warnings).await,
            Err(error) => Err(error),
        }
        .map_err(|error| error.warned(warnings))
    }
}
