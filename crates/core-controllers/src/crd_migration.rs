//! The migration of stored objects: kinds that had another storage version before are stored in today's one.
//!
//! Watches the definitions of our kinds that have older versions. When one changes, objects are written as they are if the definition says that
//! some may be stored in another version, and then the definition says that none is. Entries of `managedFields` whose versions are not
//! served any more are removed: no server can convert them. The generation of the definition for which all of that is done is noted in an
//! annotation, so a definition costs nothing until it changes.

mod apply;
mod observe;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::Value;
use windlass_controller_runtime::{
    Controller, ControllerEntry, Crd, Cx, Decision, Moment, NoQuestion, ObjectKey, ReconcileError, Watch,
};

use crate::shared::keys::managers;
use observe::Observed;
use plan::Plan;

/// A part of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Objects are stored in the storage version.
    StorageVersionMigration,
    /// Managed fields of versions that are not served go.
    CleanupManagedFields,
}

impl Phase {
    /// All.
    pub const ALL: [Self; 2] = [Self::StorageVersionMigration, Self::CleanupManagedFields];

    fn name(self) -> &'static str {
        match self {
            Self::StorageVersionMigration => "StorageVersionMigration",
            Self::CleanupManagedFields => "CleanupManagedFields",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Phase {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|phase| phase.name() == text.trim());
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(" or ");
            format!("{text:?} is no phase of a migration: expected {names}")
        })
    }
}

/// The phases that run: all, except for those that are skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    skipped: Vec<Phase>,
}

impl Phases {
    /// All but these.
    pub fn without(skipped: Vec<Phase>) -> Self {
        Self { skipped }
    }

    /// Whether a phase runs.
    pub fn has(&self, phase: Phase) -> bool {
        !self.skipped.contains(&phase)
    }
}

/// The controller.
#[derive(Debug)]
struct CrdMigration {
    /// The definitions that it is about, by name.
    names: BTreeSet<String>,
    phases: Phases,
}

/// The controller for the definitions of these names, ready to be run.
pub fn entry(names: BTreeSet<String>, phases: Phases) -> ControllerEntry {
    ControllerEntry::of(CrdMigration { names, phases })
}

impl Controller for CrdMigration {
    type Kind = Crd;
    type Observed = Observed;
    type Question = NoQuestion;
    type Plan = Plan;
    type Done = Option<ReconcileError>;

    const NAME: &'static str = "crdmigrator";
    const MANAGER: &'static str = managers::CRD_MIGRATION;
    const STATUS_MANAGER: &'static str = "capi-crdmigrator-status";
    const FINALIZER: Option<&'static str> = None;
    const FOLLOWS_CLUSTERS: bool = false;
    const SHOWS_PAUSED: bool = false;

    fn cluster_of(_: &Crd) -> Option<ObjectKey> {
        None
    }

    fn watches(&self) -> Vec<Watch> {
        Vec::new()
    }

    async fn observe(&self, cx: &Cx, object: Arc<Crd>) -> Observed {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let is_skipped = Phase::ALL.into_iter().all(|phase| !self.phases.has(phase));
        if is_skipped || !self.names.contains(name) {
            return Observed::Done;
        }
        observe::observe(cx, &object, &self.phases).await
    }

    fn plan(&self, seen: &Observed, _: &Moment) -> Decision<Plan, NoQuestion> {
        plan::plan(seen, &self.phases).into()
    }

    async fn apply(&self, cx: &Cx, _: &Observed, plan: &Plan) -> Option<ReconcileError> {
        apply::apply(cx, plan).await
    }

    fn status(&self, _: &Observed, _: &Plan, _: &Self::Done, _: &Moment) -> Option<Value> {
        None
    }
}
