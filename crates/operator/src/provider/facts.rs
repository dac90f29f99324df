//! Facts about a declared provider, as a plan gets them: plain data, so that plans are tested without a server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use windlass_api_operator::{Api, BuiltIn, Declared, Problems, ProviderType};
use windlass_controller_runtime::{ObjectKey, Timestamp, Until};
use windlass_provider_repository::Files;

use super::blocked::{Blocked, Stage};
use crate::awaited::Awaited;
use crate::built_in::BuiltIns;
use crate::kept::{Kept, Release, Sealed};
use crate::names::reasons;
use crate::objects::{ObjectRef, Running};
use crate::peers::Peer;

/// What is known of a declared provider. Its files and its rendered release are only there when a plan asked for them.
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
    /// The providers that are built in.
    pub built_ins: Arc<BuiltIns>,
    /// The uid of the declaration that holds the claim to the same provider in this process.
    pub holder: Option<String>,
    /// Hash of what it declares, but for version, source and pause.
    pub hash: String,
    /// The settings of the manager as they are declared.
    pub manager: Value,
    /// The installed version, as the status says it.
    pub version: Option<String>,
    /// Whether settings are held by `debug`, and what was declared is not what counts.
    pub locked: bool,
    /// What is installed, as it is kept; or why that cannot be read.
    pub kept: Result<Arc<Kept>, Unread>,
    /// Providers of this type and name in the inventory; only read while nothing is kept.
    pub inventory: Result<Vec<Installed>, String>,
    /// Whether everything that is installed is being watched since it was applied last.
    pub watched: bool,
    /// Whether this process has changed something of it and not finished, so that comparing is not enough.
    pub doubted: bool,
    /// Objects that are no longer as they were left.
    pub drifted: BTreeSet<ObjectRef>,
    /// When objects were put back lately, in this order.
    pub repairs: Vec<Timestamp>,
    /// How often the objects that a release is made of changed since they were read last; none when they did not.
    pub stirred: Option<usize>,
    /// When the files of a release were read last in this process.
    pub looked: Option<Timestamp>,
    /// The Deployments of the installed release; none where one does not exist.
    pub running: Vec<(String, Option<Running>)>,
    /// Objects of the provider's kinds; only read when the declaration is being deleted.
    pub in_use: Result<Vec<InUse>, String>,
    /// Objects with the labels of the provider; only read when the declaration is being deleted, its status says that the provider is
    /// installed, and nothing is kept.
    pub lost: Result<Vec<ObjectRef>, String>,
    /// The answer about the files of a release.
    pub fetched: Option<Result<Fetched, Blocked>>,
    /// The answer about the rendered release.
    pub rendered: Option<Result<Rendered, Blocked>>,
    /// The answer about the installed release with certificates that are issued again.
    pub renewed: Option<Result<Sealed, Blocked>>,
}

/// Everything that a release is made of.
#[derive(Clone)]
pub struct Fetched {
    /// The version.
    pub version: String,
    /// The contract that the version follows, by its metadata.
    pub contract: String,
    /// The files of the version.
    pub files: Files,
    /// Values of variables, from the provider's Secret.
    pub variables: BTreeMap<String, String>,
    /// The other parts.
    pub recipe: Result<Recipe, Blocked>,
}

/// The parts of a release beside its files.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The additional manifests.
    pub additional: Option<String>,
    /// Hash of files, variables and additional manifests.
    pub content: String,
}

impl std::fmt::Debug for Fetched {
    /// Without the values of variables: they are secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetched")
            .field("version", &self.version)
            .field("contract", &self.contract)
            .finish_non_exhaustive()
    }
}

/// A release that was rendered, and the providers that it must not share objects with.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The release with its objects.
    pub sealed: Sealed,
    /// The other installed providers.
    pub others: Vec<Other>,
}

/// Another installed provider.
#[derive(Clone, Debug)]
pub struct Other {
    /// Its declaration.
    pub peer: Peer,
    /// Its objects.
    pub objects: Result<Vec<ObjectRef>, Unread>,
    /// Whether they are those with its labels, as none of its releases is kept as the operator wrote it.
    pub by_label: bool,
}

/// Why what is kept cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The error.
    pub why: String,
    /// The damaged Secrets; none when the server did not answer.
    pub stored: Option<Awaited>,
}

impl Unread {
    /// As an obstacle: until the Secrets change, or the server answers.
    pub fn blocks(&self, stage: Stage, message: String) -> Blocked {
        let until = match self.stored {
            Some(_) => Until::Event,
            None => Until::Backoff,
        };
        let blocked = Blocked::new(stage, reasons::KEPT_UNREADABLE, message);
        blocked.until(until).awaiting(self.stored.clone())
    }
}

/// A provider in the inventory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Where.
    pub namespace: String,
    /// Which version.
    pub version: String,
    /// Whether a process wrote it that has the provider built in.
    pub is_built_in: bool,
}

/// The core that providers go by.
#[derive(Clone, Copy, Debug)]
pub struct Core<'a> {
    /// The contract that it follows.
    pub contract: &'a str,
    /// Which one it is.
    pub is: Is<'a>,
}

/// A core, built in or declared.
#[derive(Clone, Copy, Debug)]
pub enum Is<'a> {
    /// The one of this process.
    BuiltIn(&'a BuiltIn),
    /// One that the operator has installed.
    Declared(&'a Peer),
}

impl Core<'_> {
    /// Whether the core is built in, so that its contract changes only with the program.
    pub fn is_built_in(&self) -> bool {
        matches!(self.is, Is::BuiltIn(_))
    }

    /// Its name in messages to a provider of this API.
    pub fn told_to(&self, api: Api) -> String {
        match self.is {
            Is::BuiltIn(built_in) => format!("the built-in core {}", built_in.version),
            Is::Declared(peer) => peer.told_to(api),
        }
    }
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

    /// What worked before what is installed, until that is known to work.
    pub fn previous(&self) -> Option<&Release> {
        self.kept.as_ref().ok()?.previous.as_ref()
    }

    /// What was found of Secrets with releases that others have written or changed.
    pub fn finding(&self) -> Option<String> {
        self.kept.as_ref().ok()?.finding()
    }

    /// Another declaration that leaves no room for this one.
    pub fn rival(&self) -> Option<&Peer> {
        crate::claims::rival(&self.me, &self.peers, self.holder.as_deref())
    }

    /// The built-in provider that is declared here.
    pub fn built_in(&self) -> Option<&BuiltIn> {
        self.built_ins.find(self.type_(), &self.me.key.name)
    }

    /// Whether a declaration is one of a built-in provider.
    pub fn is_built_in(&self, peer: &Peer) -> bool {
        self.built_ins.find(peer.type_, &peer.key.name).is_some()
    }

    /// The core that all others go by: the built-in one, or the one that is installed, whichever of the declared ones this is.
    pub fn core(&self) -> Option<Core<'_>> {
        if let Some(built_in) = self.built_ins.of_type(ProviderType::Core) {
            return Some(Core {
                contract: built_in.contract,
                is: Is::BuiltIn(built_in),
            });
        }
        let all = std::iter::once(&self.me).chain(&self.peers);
        let mut cores = all.filter(|peer| peer.type_ == ProviderType::Core);
        let core = cores.find(|peer| peer.is_installed())?;
        Some(Core {
            contract: self.contract_of(core)?,
            is: Is::Declared(core),
        })
    }

    /// The contract that a declared provider follows. For this one it is the contract of the installed release, as its status may be late.
    pub fn contract_of<'a>(&'a self, peer: &'a Peer) -> Option<&'a str> {
        if peer.uid == self.me.uid
            && let Some(current) = self.current()
        {
            return Some(&current.contract);
        }
        peer.contract.as_deref()
    }
}
