//! Making objects: by POST, or by a PUT or an apply to a name that is free.

use serde_json::Value;
use windlass_store::{Change, CommitError, Expect, Write};

use super::{TRIES, check};
use crate::admission::chain::Admission;
use crate::admission::hook::AdmissionVerb;
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

/// How many names are tried for an object that has none of its own.
const NAMES_TRIED: usize = 8;

impl Call<'_> {
    /// What must still be so when a new object is stored: its namespace and its definition take new objects.
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

    /// Creates an object; `by_apply` says that this is what was applied, and `name` what the path names.
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
        // Where the server chooses the name it may have to choose again; webhooks are asked again, too.
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
                // The name was the server's own choice: choose another.
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
        // Nobody looks at what has no place; a name that the server is to choose is not chosen yet.
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
        self.admit(AdmissionVerb::Create, Part::Main, &mut object, None, &mut warnings)?;
        if !by_apply {
            self.own(self.resource.nothing(), &mut object, Part::Main, now);
        }
        (self.resource.strategy.admit)(&mut object);
        cross_object::admit(self.server, self.resource, &mut object)?;
        let admission = Admission {
            call: self,
            part: Part::Main,
            old: None,
            fresh: Some(&fresh),
            name: given.as_deref().unwrap_or(""),
        };
        if let Some(hooks) = &hooks {
            Box::pin(admission.mutate(hooks, &mut object, &mut warnings)).await?;
        }
        crate::auth::escalation::confirm(self, &object, None)?;
        builtin::on_create(self.resource, &mut object, &fresh);
        validate::check(self.resource, Part::Main, &object, None, &mut warnings)?;
        if let Some(hooks) = &hooks {
            Box::pin(admission.validate(hooks, &object, &mut warnings)).await?;
        }
        Ok((object, warnings))
    }

    /// What is asked for, decoded. Defaults come after ownership: they are nobody's.
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

    /// Stores a new object; `None` when its namespace or definition changed meanwhile.
    async fn store_new(&self, object: &Value, warnings: &mut Vec<String>) -> Result<Option<Outcome>, ApiError> {
        let name = meta(object, "name").to_owned();
        let mut writes = self.checks(&name)?;
        if self.options.dry_run {
            if self.is_there(&name) {
                return Err(self.exists(&name));
            }
            return Ok(Some(Outcome {
                object: Some(as_if_stored(self.server, self.resource, object.clone()).await?),
                record: None,
                created: true,
                warnings: std::mem::take(warnings),
            }));
        }
        let stored = stored_form(self.server, self.resource, object).await?;
        let put = writes.len();
        writes.push(Write {
            key: self.key(&name),
            expect: Expect::Absent,
            change: Change::Put(stored),
        });
        match self.server.store.commit(writes).await {
            Ok(records) => self.stored(records, true, std::mem::take(warnings)).await.map(Some),
            Err(CommitError::Conflict { index, .. }) if index == put => Err(self.exists(&name)),
            Err(CommitError::Conflict { .. }) => Ok(None),
            Err(error) => Err(self.commit_error(&error, &name)),
        }
    }
}
