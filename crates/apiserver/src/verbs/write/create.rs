//! Creates objects: by POST, or by PUT or apply with a new name.

use serde_json::Value;
use windlass_store::{Change, CommitError, Expect, Write};

use super::{TRIES, check};
use crate::admission::chain::Admission;
use crate::error::ApiError;
use crate::objects::convert::{as_if_stored, stored_form};
use crate::objects::fresh::Fresh;
use crate::objects::prepare;
use crate::objects::{cross_object, validate};
use crate::verbs::call::Call;
use crate::verbs::call::Outcome;
use crate::{builtin, crds};
use windlass_builtin_kinds::Special;
use windlass_objects::Part;
use windlass_objects::metadata::{meta, set_meta};

/// The number of attempts to generate a free name.
const NAMES_TRIED: usize = 8;

impl Call<'_> {
    /// The preconditions when a new object is stored: its namespace and its definition accept new objects.
    fn checks(&self, name: &str) -> Result<Vec<Write>, ApiError> {
        let mut out = Vec::new();
        if self.resource.namespaced {
            let storage = self.server.storage_name("namespaces");
            let namespace = self.server.store.get(&storage, "", self.namespace);
            crate::objects::namespace::check_namespace(self.resource, namespace.as_deref(), self.namespace, name)?;
            if let Some(record) = namespace {
                out.push(check(&record));
            }
        }
        if self.resource.is_custom() {
            let definition = self.server.store.get(crds::STORAGE, "", &self.resource.storage);
            match definition {
                Some(record) if !record.header.deleting => out.push(check(&record)),
                _ => {
                    return Err(ApiError::forbidden(
                        &self.resource.group,
                        &self.resource.plural,
                        name,
                        "create not allowed while custom resource definition is terminating",
                    ));
                }
            }
        }
        Ok(out)
    }

    /// Creates an object. `by_apply` marks an applied configuration; `name` is the name in the path.
    pub(crate) async fn create(
        &self,
        object: Value,
        duplicates: &[String],
        by_apply: bool,
        name: Option<&str>,
    ) -> Result<Outcome, ApiError> {
        let outcome = self.create_alone(object, duplicates, by_apply, name).await?;
        self.settle().await;
        self.settle_definition(Part::Main, &outcome).await;
        Ok(outcome)
    }

    async fn create_alone(
        &self,
        object: Value,
        duplicates: &[String],
        by_apply: bool,
        name: Option<&str>,
    ) -> Result<Outcome, ApiError> {
        // A generated name may collide; then another one is generated, and webhooks are called again.
        let chooses = name.is_none() && meta(&object, "name").is_empty();
        let original = (chooses || self.webhooks().is_some()).then(|| object.clone());
        let mut taken = 0;
        let (mut given, mut kept) = (Some(object), None);
        for _ in 0..TRIES {
            let (mut made, mut warnings) = match (kept.take(), given.take().or_else(|| original.clone())) {
                (Some(kept), _) => kept,
                (None, Some(object)) => self.make(object, duplicates, by_apply, name).await?,
                (None, None) => break,
            };
            let _others = self.lock_kind().await;
            if self.resource.special == Special::Service {
                cross_object::allocate(self.server, &mut made)?;
            }
            match self.store_new(&made, &mut warnings).await {
                Ok(None) if original.is_none() => kept = Some((made, warnings)),
                Ok(None) => {}
                Ok(Some(outcome)) => return Ok(outcome),
                // The generated name is taken: generate another.
                Err(error) if error.reason == "AlreadyExists" && chooses => {
                    taken += 1;
                    if taken == NAMES_TRIED {
                        return Err(error.of_generated_name());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(self.modified(name.unwrap_or("")))
    }

    async fn make(
        &self,
        object: Value,
        duplicates: &[String],
        by_apply: bool,
        name: Option<&str>,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let now = self.server.now();
        let (mut object, mut warnings) = self.start(object, duplicates, by_apply.then_some(name).flatten(), name)?;
        // An object without a valid name or namespace is not checked further. A name to generate is not known yet.
        let name = match meta(&object, "name") {
            "" => meta(&object, "generateName"),
            name => name,
        };
        self.checks(name)?;
        let fresh = Fresh {
            now,
            uid: uuid::Uuid::new_v4().to_string(),
            suffix: self.server.options.names.suffix(5),
        };
        let hooks = self.webhooks();
        let given = hooks.as_ref().map(|_| meta(&object, "name").to_owned());
        prepare::for_create(self.resource, &mut object, &fresh)?;
        if !by_apply {
            self.own(self.resource.nothing(), &mut object, Part::Main, now);
        }
        let admission = Admission {
            call: self,
            part: Part::Main,
            old: None,
            fresh: Some(&fresh),
            name: given.as_deref().unwrap_or(""),
        };
        admission.complete(&mut object, &mut warnings)?;
        (self.resource.strategy.admit)(&mut object);
        cross_object::admit(self.server, self.resource, &mut object)?;
        if let Some(hooks) = &hooks {
            Box::pin(admission.mutate(hooks, &mut object, &mut warnings)).await?;
        }
        crate::auth::escalation::confirm(self, &object, None)?;
        builtin::on_create(self.resource, &mut object, &fresh);
        validate::check(self.resource, Part::Main, &object, None, &mut warnings)?;
        admission.check(&object, &mut warnings)?;
        if let Some(hooks) = &hooks {
            Box::pin(admission.validate(hooks, &object, &mut warnings)).await?;
        }
        Ok((object, warnings))
    }

    /// Decodes the requested object. Defaults come after ownership, as they have no owner.
    fn start(
        &self,
        mut object: Value,
        duplicates: &[String],
        applied: Option<&str>,
        name: Option<&str>,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let Some(applied) = applied else {
            prepare::check_place(self.resource, &mut object, self.namespace, name)?;
            let warnings = validate::shape(self.resource, &mut object, duplicates, self.options.field_validation)?;
            return Ok((object, warnings));
        };
        let made = self.apply_onto(None, &object, Part::Main, self.server.now())?;
        let mut warnings = self.repeated(duplicates)?;
        let uid = meta(&made, "uid");
        if !uid.is_empty() {
            return Err(ApiError::conflict(
                &self.resource.group,
                &self.resource.plural,
                applied,
                &format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found"),
            ));
        }
        let mut made = self
            .placed(made, applied)
            .map_err(|error| error.warned(&mut warnings))?;
        set_meta(&mut made, "resourceVersion", None);
        validate::complete_applied(self.resource, &mut made)?;
        Ok((made, warnings))
    }

    /// Stores a new object; `None` if its namespace or definition has changed meanwhile.
    async fn store_new(&self, object: &Value, warnings: &mut Vec<String>) -> Result<Option<Outcome>, ApiError> {
        let name = meta(object, "name").to_owned();
        let mut writes = self.checks(&name)?;
        if self.options.dry_run {
            if self.is_there(&name) {
                return Err(self.exists(&name));
            }
            return Ok(Some(Outcome {
                object: Some(as_if_stored(self.server, self.resource, object.clone(), 0).await?),
                record: None,
                created: true,
                warnings: std::mem::take(warnings),
            }));
        }
        let stored = stored_form(self.server, self.resource, object, 0).await?;
        let put = writes.len();
        writes.push(Write {
            key: self.key(&name),
            expect: Expect::Absent,
            change: Change::Put(stored),
        });
        match self.commit(&name, writes).await {
            Ok(records) => self.stored(records, true, std::mem::take(warnings)).await.map(Some),
            Err(CommitError::Conflict { index, .. }) if index == put => Err(self.exists(&name)),
            Err(CommitError::Conflict { .. }) => Ok(None),
            Err(error) => Err(self.commit_error(&error, &name)),
        }
    }
}
