//! create, update, patch: from a request and what is stored to what is stored next.

use std::sync::Arc;

use serde_json::Value;
use windlass_smd::{Apply, ApplyError, PatchError, Scope, Update};
use windlass_store::{Change, CommitError, Expect, Key, Record, Write};

use crate::admission::AdmissionVerb;
use crate::admit::Admission;
use crate::convert::{served, to_storage};
use crate::error::{ApiError, Cause};
use crate::object::{draft, finalizers, is_deleting, meta, seconds, set_meta};
use crate::prepare::{self, Fresh, Part};
use crate::request::WriteOptions;
use crate::resource::{Resource, Special};
use crate::server::Inner;
use crate::user::UserInfo;
use crate::{crd, rbac, scale, special, validate};

/// How often a write that names no revision is tried against a changing object.
const TRIES: usize = 20;

/// A write to one resource.
pub(crate) struct Call<'a> {
    pub(crate) server: &'a Inner,
    pub(crate) resource: &'a Arc<Resource>,
    pub(crate) namespace: &'a str,
    pub(crate) user: &'a UserInfo,
    pub(crate) options: &'a WriteOptions,
    /// Who is recorded as manager of the fields that change.
    pub(crate) manager: String,
}

/// What a write led to.
pub(crate) struct Outcome {
    /// The object as it is now, in the served version.
    pub(crate) object: Value,
    /// What is stored now; `None` for a dry run.
    pub(crate) record: Option<Arc<Record>>,
    pub(crate) created: bool,
    pub(crate) warnings: Vec<String>,
}

/// What a request does to an object.
pub(crate) enum Mutation {
    /// PUT.
    Replace(Value, Vec<String>),
    /// RFC 6902.
    Json(Value),
    /// RFC 7386.
    Merge(Value),
    /// Kubernetes' own.
    Strategic(Value),
    /// Server-side apply.
    Apply(Value, Vec<String>),
    /// PUT of a scale: the number of replicas at a dotted path.
    Scale(String, i64, Option<String>),
}

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
    fn key(&self, name: &str) -> Key {
        Key::new(&self.resource.storage, self.namespace, name)
    }

    fn exists(&self, name: &str) -> ApiError {
        ApiError::already_exists(&self.resource.group, &self.resource.plural, name)
    }

    fn modified(&self, name: &str) -> ApiError {
        ApiError::modified(&self.resource.group, &self.resource.plural, name)
    }

    fn not_found(&self, name: &str) -> ApiError {
        ApiError::not_found(&self.resource.group, &self.resource.plural, name)
    }

    fn commit_error(&self, error: &CommitError, name: &str) -> ApiError {
        match error {
            CommitError::Conflict { .. } => self.modified(name),
            CommitError::Storage(error) => ApiError::storage(error),
        }
    }

    /// What must still be so when a new object is stored: its namespace and its definition take new objects.
    fn checks(&self, name: &str) -> Result<Vec<Write>, ApiError> {
        let mut out = Vec::new();
        if self.resource.namespaced {
            let storage = self.server.storage_name("namespaces");
            let namespace = self.server.store.get(&storage, "", self.namespace);
            special::check_namespace(self.resource, namespace.as_deref(), self.namespace, name)?;
            if let Some(record) = namespace {
                out.push(check(&record));
            }
        }
        if self.resource.is_custom() {
            let definition = self.server.store.get(crd::STORAGE, "", &self.resource.storage);
            match definition {
                Some(record) if !record.header.deleting => out.push(check(&record)),
                _ => {
                    return Err(ApiError::new(
                        405,
                        "MethodNotAllowed",
                        format!(
                            "create not allowed while custom resource definition is terminating: {}",
                            self.resource.storage
                        ),
                    ));
                }
            }
        }
        Ok(out)
    }

    fn scope(&self, part: Part) -> (Scope, &'static str) {
        match part {
            Part::Status => (Scope::Status, "status"),
            Part::Finalize => (Scope::All, "finalize"),
            Part::Main | Part::Scale => {
                let scope = if self.resource.status { Scope::Main } else { Scope::All };
                (scope, if part == Part::Scale { "scale" } else { "" })
            }
        }
    }

    /// Creates an object; `applied` holds what was applied when that is how it comes to be.
    pub(crate) async fn create(
        &self,
        object: Value,
        duplicates: &[String],
        by_apply: bool,
        name: Option<&str>,
    ) -> Result<Outcome, ApiError> {
        let outcome = self.create_alone(object, duplicates, by_apply, name).await?;
        self.settle().await;
        Ok(outcome)
    }

    async fn create_alone(
        &self,
        object: Value,
        duplicates: &[String],
        by_apply: bool,
        name: Option<&str>,
    ) -> Result<Outcome, ApiError> {
        for _ in 0..TRIES {
            let (mut made, warnings) = self.make(object.clone(), duplicates, by_apply, name).await?;
            let _definitions = self.lock_definitions().await;
            if self.resource.special == Special::Crd {
                crd::set_status(&mut made, &self.server.definitions(), &seconds(self.server.now()));
            }
            match self.store_new((made, warnings)).await {
                Ok(None) => {}
                Ok(Some(outcome)) => return Ok(outcome),
                // The name was the server's own choice: choose another.
                Err(error) if error.reason == "AlreadyExists" && meta(&object, "name").is_empty() && name.is_none() => {
                }
                Err(error) => return Err(error),
            }
        }
        Err(self.modified(name.unwrap_or("")))
    }

    /// Definitions are written one at a time: whether names are free depends on all of them.
    async fn lock_definitions(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        if self.resource.special == Special::Crd {
            Some(self.server.crd_writes.lock().await)
        } else {
            None
        }
    }

    async fn make(
        &self,
        object: Value,
        duplicates: &[String],
        by_apply: bool,
        name: Option<&str>,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let mut object = object;
        let now = self.server.now();
        prepare::check_place(self.resource, &mut object, self.namespace, name)?;
        let mut warnings = validate::shape(self.resource, &mut object, duplicates, self.options.field_validation)?;
        if by_apply {
            object = self.apply_onto(None, &object, Part::Main, now)?;
        }
        let fresh = Fresh {
            now,
            uid: uuid::Uuid::new_v4().to_string(),
            suffix: self.server.options.names.suffix(5),
        };
        let hooks = self.webhooks();
        let given = hooks.as_ref().map(|_| meta(&object, "name").to_owned());
        prepare::for_create(self.resource, &mut object, &fresh)?;
        special::default(self.resource, &mut object);
        self.admit(AdmissionVerb::Create, Part::Main, &mut object, None, &mut warnings)?;
        if !by_apply {
            self.own(None, &mut object, Part::Main, now);
        }
        let admission = Admission {
            call: self,
            part: Part::Main,
            old: None,
            fresh: Some(&fresh),
            name: given.as_deref().unwrap_or(""),
        };
        if let Some(hooks) = &hooks {
            // Nobody is asked about what has no place.
            self.checks(meta(&object, "name"))?;
            Box::pin(admission.mutate(hooks, &mut object, &mut warnings)).await?;
        }
        rbac::confirm(self, &object, None)?;
        validate::check(self.resource, &object, None)?;
        special::on_create(self.resource, &mut object);
        if let Some(hooks) = &hooks {
            Box::pin(admission.validate(hooks, &object, &mut warnings)).await?;
        }
        Ok((object, warnings))
    }

    fn own(&self, live: Option<&Value>, object: &mut Value, part: Part, now: jiff::Timestamp) {
        let (scope, subresource) = self.scope(part);
        windlass_smd::update(
            &Update {
                schema: self.resource.schema().map(AsRef::as_ref),
                live,
                manager: &self.manager,
                api_version: &self.resource.api_version(),
                subresource,
                scope,
                now,
            },
            object,
        );
    }

    fn apply_onto(
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

    /// Stores a new object; `None` when its namespace or definition changed meanwhile.
    async fn store_new(&self, (object, warnings): (Value, Vec<String>)) -> Result<Option<Outcome>, ApiError> {
        let name = meta(&object, "name").to_owned();
        let mut writes = self.checks(&name)?;
        if self.options.dry_run {
            if self.is_there(&name) {
                return Err(self.exists(&name));
            }
            return Ok(Some(Outcome {
                object,
                record: None,
                created: true,
                warnings,
            }));
        }
        let mut stored = object;
        to_storage(self.resource, &mut stored);
        let put = writes.len();
        writes.push(Write {
            key: self.key(&name),
            expect: Expect::Absent,
            change: Change::Put(draft(&stored)),
        });
        match self.server.store.commit(writes).await {
            Ok(records) => self.stored(records, true, warnings).map(Some),
            Err(CommitError::Conflict { index, .. }) if index == put => Err(self.exists(&name)),
            Err(CommitError::Conflict { .. }) => Ok(None),
            Err(error) => Err(self.commit_error(&error, &name)),
        }
    }

    fn stored(&self, records: Vec<Arc<Record>>, created: bool, warnings: Vec<String>) -> Result<Outcome, ApiError> {
        let record = records
            .into_iter()
            .next_back()
            .ok_or_else(|| ApiError::internal("nothing was stored"))?;
        self.server.written(self.resource, self.namespace, record.key.name());
        Ok(Outcome {
            object: served(self.resource, &record)?,
            record: Some(record),
            created,
            warnings,
        })
    }

    /// Changes an object, or, where the mutation may, makes it.
    pub(crate) async fn change(&self, name: &str, mutation: &Mutation, part: Part) -> Result<Outcome, ApiError> {
        for _ in 0..TRIES {
            let Some(record) = self.server.store.get(&self.resource.storage, self.namespace, name) else {
                match self.change_absent(name, mutation, part).await {
                    // Somebody else made it first.
                    Err(error) if error.reason == "AlreadyExists" && self.is_there(name) => continue,
                    other => return other,
                }
            };
            if let Some(outcome) = self.change_once(name, &record, mutation, part).await? {
                self.settle().await;
                return Ok(outcome);
            }
        }
        Err(self.modified(name))
    }

    fn is_there(&self, name: &str) -> bool {
        self.server
            .store
            .get(&self.resource.storage, self.namespace, name)
            .is_some()
    }

    async fn change_absent(&self, name: &str, mutation: &Mutation, part: Part) -> Result<Outcome, ApiError> {
        match mutation {
            Mutation::Apply(config, duplicates) if part == Part::Main => {
                self.may_create(name)?;
                let given = meta(config, "resourceVersion");
                if !given.is_empty() && given != "0" {
                    return Err(self.modified(name));
                }
                if !meta(config, "uid").is_empty() {
                    return Err(ApiError::conflict(
                        &self.resource.group,
                        &self.resource.plural,
                        name,
                        &format!(
                            "Precondition failed: UID in precondition: {}, UID in object meta: ",
                            meta(config, "uid")
                        ),
                    ));
                }
                self.create(config.clone(), duplicates, true, Some(name)).await
            }
            Mutation::Replace(object, duplicates) if part == Part::Main && self.resource.create_on_update => {
                self.may_create(name)?;
                if !meta(object, "resourceVersion").is_empty() {
                    return Err(self.not_found(name));
                }
                self.create(object.clone(), duplicates, false, Some(name)).await
            }
            _ => Err(self.not_found(name)),
        }
    }

    /// What the object would become, before the server adds its part.
    fn candidate(
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

    /// Changes what was read; `None` when it is not what is stored any more, and the change may be tried again.
    pub(crate) async fn change_once(
        &self,
        name: &str,
        record: &Arc<Record>,
        mutation: &Mutation,
        part: Part,
    ) -> Result<Option<Outcome>, ApiError> {
        let old = served(self.resource, record)?;
        let (mut new, mut warnings) = self.candidate(&old, name, mutation, part)?;
        let now = self.server.now();
        let named = self.check_revision(record, mutation, &new, name)?;
        set_meta(&mut new, "resourceVersion", Some(record.revision.to_string().into()));
        prepare::for_update(self.resource, &old, &mut new, part)?;
        special::default(self.resource, &mut new);
        self.admit(AdmissionVerb::Update, part, &mut new, Some(&old), &mut warnings)?;
        if !matches!(mutation, Mutation::Apply(..)) {
            self.own(Some(&old), &mut new, part, now);
        }
        let hooks = self.webhooks();
        let admission = Admission {
            call: self,
            part,
            old: Some(&old),
            fresh: None,
            name,
        };
        if let Some(hooks) = &hooks {
            Box::pin(admission.mutate(hooks, &mut new, &mut warnings)).await?;
        }
        rbac::confirm(self, &new, Some(&old))?;
        validate::check(self.resource, &new, Some(&old))?;
        if let Some(hooks) = &hooks {
            Box::pin(admission.validate(hooks, &new, &mut warnings)).await?;
        }
        let _definitions = self.lock_definitions().await;
        if self.resource.special == Special::Crd && part == Part::Main {
            crd::set_status(&mut new, &self.server.definitions(), &seconds(now));
        }
        if !prepare::differs(&old, &new) {
            return Ok(Some(Outcome {
                object: old,
                record: Some(Arc::clone(record)),
                created: false,
                warnings,
            }));
        }
        if self.options.dry_run {
            return Ok(Some(Outcome {
                object: new,
                record: None,
                created: false,
                warnings,
            }));
        }
        self.store_changed(name, record, new, named, warnings).await
    }

    /// Compares the revision that a request names, if any, with the stored one.
    fn check_revision(&self, record: &Record, mutation: &Mutation, new: &Value, name: &str) -> Result<bool, ApiError> {
        let given = match mutation {
            Mutation::Scale(_, _, revision) => revision.as_deref().unwrap_or(""),
            // Its revision was checked before it was merged.
            Mutation::Apply(config, _) => return Ok(!meta(config, "resourceVersion").is_empty()),
            _ => meta(new, "resourceVersion"),
        };
        let is_put = matches!(mutation, Mutation::Replace(..));
        if given.is_empty() || given == "0" {
            if is_put && self.resource.is_custom() {
                return Err(ApiError::invalid(
                    &self.resource.group,
                    &self.resource.kind,
                    name,
                    &[windlass_schema::FieldError::invalid(
                        "metadata.resourceVersion",
                        0.into(),
                        "must be specified for an update",
                    )],
                ));
            }
            return Ok(false);
        }
        if given != record.revision.to_string() {
            return Err(self.modified(name));
        }
        Ok(is_put || matches!(mutation, Mutation::Scale(..)))
    }

    async fn store_changed(
        &self,
        name: &str,
        record: &Record,
        new: Value,
        named: bool,
        warnings: Vec<String>,
    ) -> Result<Option<Outcome>, ApiError> {
        let gone = is_deleting(&new) && finalizers(&new).is_empty() && !holds(self.resource, &new);
        let mut stored = new.clone();
        to_storage(self.resource, &mut stored);
        let draft = draft(&stored);
        let writes = vec![Write {
            key: self.key(name),
            expect: Expect::Revision(record.revision),
            change: if gone {
                Change::Delete(Some(draft))
            } else {
                Change::Put(draft)
            },
        }];
        match self.server.store.commit(writes).await {
            Ok(_) if gone => {
                self.server.written(self.resource, self.namespace, name);
                Ok(Some(Outcome {
                    object: new,
                    record: None,
                    created: false,
                    warnings,
                }))
            }
            Ok(records) => self.stored(records, false, warnings).map(Some),
            Err(CommitError::Conflict { current, .. }) => {
                if current.is_none() {
                    return Err(self.not_found(name));
                }
                if named { Err(self.modified(name)) } else { Ok(None) }
            }
            Err(error) => Err(self.commit_error(&error, name)),
        }
    }
}

/// Whether something besides finalizers keeps a deleted object.
pub(crate) fn holds(resource: &Resource, object: &Value) -> bool {
    match resource.special {
        Special::Namespace => object
            .pointer("/spec/finalizers")
            .and_then(Value::as_array)
            .is_some_and(|f| !f.is_empty()),
        Special::Pod => crate::object::meta_value(object, "deletionGracePeriodSeconds")
            .and_then(Value::as_i64)
            .is_some_and(|s| s > 0),
        _ => false,
    }
}

pub(crate) fn check(record: &Record) -> Write {
    Write {
        key: record.key.clone(),
        expect: Expect::Revision(record.revision),
        change: Change::Check,
    }
}
