//! Changes existing objects.

use std::sync::Arc;

use serde_json::Value;
use windlass_store::{Change, CommitError, Expect, Record, Write};

use super::TRIES;
use crate::admission::chain::Admission;
use crate::builtin;
use crate::error::ApiError;
use crate::objects::convert::{api_version_of, as_if_stored, bring_one, served, stored_form};
use crate::objects::prepare;
use crate::objects::{cross_object, validate};
use crate::verbs::call::Outcome;
use crate::verbs::call::{Call, holds};
use crate::verbs::mutation::Mutation;
use crate::verbs::options::parse_revision;
use windlass_builtin_kinds::Special;
use windlass_objects::Part;
use windlass_objects::metadata::{finalizers, is_deleting, meta, set_meta};

impl Call<'_> {
    /// Changes an object, or creates it if the mutation allows that.
    pub(crate) async fn change(&self, name: &str, mutation: &Mutation, part: Part) -> Result<Outcome, ApiError> {
        if let Mutation::Replace(object, _) = mutation {
            prepare::check_name(object, name)?;
        }
        for _ in 0..TRIES {
            let Some(record) = self.server.store.get(&self.resource.storage, self.namespace, name) else {
                match self.change_absent(name, mutation, part).await {
                    // Another client has created it meanwhile.
                    Err(error) if error.reason == "AlreadyExists" && self.is_there(name) => continue,
                    other => return other,
                }
            };
            let record = bring_one(self.server, self.resource, record).await?;
            if let Some(outcome) = self.change_once(name, &record, mutation, part).await? {
                self.settle().await;
                self.settle_definition(part, &outcome).await;
                return Ok(outcome);
            }
        }
        Err(self.modified(name))
    }

    async fn change_absent(&self, name: &str, mutation: &Mutation, part: Part) -> Result<Outcome, ApiError> {
        match mutation {
            Mutation::Apply(config, duplicates) if part == Part::Main => {
                self.may_create(name)?;
                self.create(config.clone(), duplicates, true, Some(name)).await
            }
            Mutation::Replace(object, duplicates) if part == Part::Main && self.resource.create_on_update => {
                self.may_create(name)?;
                if !meta(object, "uid").is_empty() {
                    let wanted = meta(object, "uid");
                    return Err(self.other_uid(name, wanted, ""));
                }
                let mut object = object.clone();
                // No stored version exists to compare with.
                set_meta(&mut object, "resourceVersion", None);
                self.create(object, duplicates, false, Some(name)).await
            }
            _ => Err(self.not_found(name)),
        }
    }

    /// Changes the object that was read; `None` if the stored object has changed since and a retry is allowed.
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
        if matches!(mutation, Mutation::Replace(..)) {
            let (wanted, have) = (meta(&new, "uid"), meta(&old, "uid"));
            if !wanted.is_empty() && wanted != have {
                return Err(self.other_uid(name, wanted, have));
            }
        }
        prepare::for_update(self.resource, &old, &mut new, part);
        if !matches!(mutation, Mutation::Apply(..) | Mutation::Scale(..) | Mutation::Bind(_)) {
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
        admission.complete(&mut new, &mut warnings)?;
        if let Some(hooks) = &hooks {
            Box::pin(admission.mutate(hooks, &mut new, &mut warnings)).await?;
        }
        builtin::settle(self.resource, &mut new);
        crate::auth::escalation::confirm(self, &new, Some(&old))?;
        validate::check(self.resource, part, &new, Some(&old), &mut warnings)?;
        admission.check(&new, &mut warnings)?;
        if let Some(hooks) = &hooks {
            Box::pin(admission.validate(hooks, &new, &mut warnings)).await?;
        }
        let _others = self.lock_kind().await;
        if self.resource.special == Special::Service && part == Part::Main {
            cross_object::allocate(self.server, &mut new)?;
        }
        if !prepare::differs(&old, &new) && !self.migrates(name) {
            return Ok(Some(Outcome {
                object: Some(old),
                record: Some(Arc::clone(record)),
                created: false,
                warnings,
            }));
        }
        if self.options.dry_run {
            return Ok(Some(Outcome {
                object: Some(as_if_stored(self.server, self.resource, new, record.value.len()).await?),
                record: None,
                created: false,
                warnings,
            }));
        }
        self.store_changed(name, record, new, named, warnings).await
    }

    /// Whether a write that changes nothing stores an object in another version than before.
    fn migrates(&self, name: &str) -> bool {
        if self.resource.conversion.is_none() {
            return false;
        }
        let stored = self.server.store.get(&self.resource.storage, self.namespace, name);
        stored.is_some_and(|record| api_version_of(&record) != self.resource.storage_api_version)
    }

    /// Compares the resourceVersion of a request, if any, with the stored one.
    fn check_revision(&self, record: &Record, mutation: &Mutation, new: &Value, name: &str) -> Result<bool, ApiError> {
        let given = match mutation {
            Mutation::Apply(config, _) => meta(config, "resourceVersion"),
            _ => meta(new, "resourceVersion"),
        };
        let is_put = matches!(mutation, Mutation::Replace(..));
        if given.is_empty() || given == "0" {
            if is_put && self.resource.needs_revision {
                // Here kube-apiserver uses the resource where it uses the kind elsewhere.
                return Err(ApiError::invalid(
                    &self.resource.group,
                    &self.resource.plural,
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
        parse_revision(given).map_err(|why| ApiError::new(500, "", why))?;
        if given != record.revision.to_string() {
            return Err(self.modified(name));
        }
        // A patch starts from the stored object, so the resourceVersion of its result has no meaning.
        Ok(match mutation {
            Mutation::Replace(..) | Mutation::Apply(..) => true,
            Mutation::Scale(wanted) => matches!(**wanted, Mutation::Replace(..)),
            _ => false,
        })
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
        let draft = stored_form(self.server, self.resource, &new, record.value.len()).await?;
        let writes = vec![Write {
            key: self.key(name),
            expect: Expect::Revision(record.revision),
            // Watches show the last stored state: this state was never stored.
            change: if gone { Change::Delete(None) } else { Change::Put(draft) },
        }];
        match self.commit(name, writes).await {
            Ok(_) if gone => Ok(Some(Outcome {
                object: Some(new),
                record: None,
                created: false,
                warnings,
            })),
            Ok(records) => self.stored(records, false, warnings).await.map(Some),
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
