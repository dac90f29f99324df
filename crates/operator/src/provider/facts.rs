//! What is known of a declared provider when it is decided what to do: plain data, so that deciding can be tested alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use windlass_api_operator::{Declared, Problems, ProviderType};
use windlass_kit::{ObjectKey, Timestamp};

use super::plan::{Again, Blocked, Stage};
use crate::awaited::Awaited;
use crate::kept::{Kept, Release};
use crate::names::reasons;
use crate::objects::{ObjectRef, Running};
use crate::peers::Peer;

/// What is known without fetching anything.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The declaration, or what is wrong with it.
    pub declared: Result<Declared, Problems>,
    /// The same as others see it.
    pub me: Peer,
    /// The generation of the declaration.
    pub generation: i64,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// All other declared providers.
    pub peers: Vec<Peer>,
    /// The uid of the declaration of the same provider that has begun in this process.
    pub holder: Option<String>,
    /// Hash of what it declares, but for version, source and pause.
    pub hash: String,
    /// The settings of the manager as they are declared.
    pub manager: Value,
    /// Whether settings are held by `debug`, and what was declared is not what counts.
    pub locked: bool,
    /// What is installed, as it is kept; or why that cannot be read.
    pub kept: Result<Arc<Kept>, Unread>,
    /// What the inventory says of providers of this type and name; only asked while nothing is kept.
    pub inventory: Result<Vec<Installed>, String>,
    /// Whether everything that is installed is being watched since it was applied last.
    pub watched: bool,
    /// Objects that are no longer as they were left.
    pub drifted: BTreeSet<ObjectRef>,
    /// How often objects were put back lately, and when last.
    pub repairs: (usize, Option<Timestamp>),
    /// Whether what a release is made of may have changed since it was looked at.
    pub stirred: bool,
    /// The Deployments of what is installed; nothing where one is not there.
    pub running: Vec<(String, Option<Running>)>,
    /// Objects of the provider's kinds; only asked when the declaration is being deleted.
    pub in_use: Result<Vec<InUse>, String>,
}

/// Why what is kept cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// In words.
    pub why: String,
    /// Where it is damaged; nothing when the server did not answer.
    pub stored: Option<Awaited>,
}

impl Unread {
    /// As something that is in the way: until somebody mends it, or the server answers.
    pub fn blocks(&self, stage: Stage, message: String) -> Blocked {
        let again = match self.stored {
            Some(_) => Again::Event,
            None => Again::Backoff,
        };
        let blocked = Blocked::new(stage, reasons::KEPT_UNREADABLE, message);
        blocked.again(again).until(self.stored.clone())
    }
}

/// A provider in the inventory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Where.
    pub namespace: String,
    /// Which version.
    pub version: String,
}

/// Objects of a kind that the provider defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InUse {
    /// Their group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// One of them.
    pub example: ObjectKey,
    /// Whether there are more.
    pub more: bool,
}

impl Facts {
    /// What sort of provider it is.
    pub fn type_(&self) -> ProviderType {
        self.me.type_
    }

    /// What is installed.
    pub fn current(&self) -> Option<&Release> {
        self.kept.as_ref().ok()?.current.as_ref()
    }

    /// What is being installed, or could not be.
    pub fn next(&self) -> Option<&Release> {
        self.kept.as_ref().ok()?.next.as_ref()
    }

    /// What worked before what is installed, as long as nobody knows whether that works.
    pub fn previous(&self) -> Option<&Release> {
        self.kept.as_ref().ok()?.previous.as_ref()
    }

    /// Another declaration that leaves no room for this one.
    pub fn rival(&self) -> Option<&Peer> {
        crate::claims::rival(&self.me, &self.peers, self.holder.as_deref())
    }

    /// The core provider that is installed, whichever of them this is.
    pub fn core(&self) -> Option<&Peer> {
        let all = std::iter::once(&self.me).chain(&self.peers);
        let mut cores = all.filter(|peer| peer.type_ == ProviderType::Core);
        cores.find(|peer| peer.is_installed())
    }

    /// The contract that a declared provider follows: of this one, what is kept counts, as its status may be late.
    pub fn contract_of<'a>(&'a self, peer: &'a Peer) -> Option<&'a str> {
        if peer.uid == self.me.uid
            && let Some(current) = self.current()
        {
            return Some(&current.contract);
        }
        peer.contract.as_deref()
    }
}
