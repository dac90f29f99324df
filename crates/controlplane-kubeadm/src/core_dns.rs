//! CoreDNS inside a workload cluster: what is found, and what is changed.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::KeyToPath;

/// The name of the Deployment, of its container and of its ConfigMap.
pub const CORE_DNS: &str = "coredns";
/// The volume of the Deployment that holds the Corefile.
pub const VOLUME: &str = "config-volume";
/// The key of the Corefile.
pub const COREFILE: &str = "Corefile";
/// The key of the Corefile before its migration.
pub const BACKUP: &str = "Corefile-backup";

/// The Deployment `kube-system/coredns`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CoreDns {
    /// The image of its container.
    pub image: String,
    /// The keys of the ConfigMap that its volume has as files.
    pub items: Vec<KeyToPath>,
    /// Version of the object, so that a change meets no other.
    pub resource_version: String,
}

impl CoreDns {
    /// The key that CoreDNS reads, if the volume names one of the two.
    pub fn reads(&self) -> Option<&str> {
        let mut keys = self.items.iter().map(|item| item.key.as_str());
        keys.find(|key| [COREFILE, BACKUP].contains(key))
    }

    /// Whether an update was begun and not ended: it reads what it read before.
    pub fn is_unfinished(&self) -> bool {
        self.reads() == Some(BACKUP)
    }

    /// The files of the volume, with another key for the Corefile.
    pub(crate) fn reading(&self, key: &str) -> Vec<KeyToPath> {
        let mut items = self.items.clone();
        for item in &mut items {
            if [COREFILE, BACKUP].contains(&item.key.as_str()) {
                key.clone_into(&mut item.key);
            }
        }
        items
    }
}

/// The ConfigMap `kube-system/coredns`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corefile {
    /// What CoreDNS reads.
    pub text: Option<String>,
    /// What it read before a migration.
    pub backup: Option<String>,
    /// Version of the object, so that a change meets no other.
    pub resource_version: String,
}

/// Both objects, as the API server has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CoreDnsObjects {
    /// The Deployment.
    pub deployment: CoreDns,
    /// The ConfigMap.
    pub corefile: Corefile,
}

/// A change of one of the two objects.
#[derive(Clone, Debug, PartialEq)]
pub enum CoreDnsChange {
    /// Keys of the ConfigMap, at the version of the object that was read. Other keys stay.
    Corefile {
        /// New contents by key.
        data: BTreeMap<&'static str, String>,
        /// The version that was read.
        resource_version: String,
    },
    /// The Deployment, at the version of the object that was read.
    Deployment {
        /// The version that was read.
        resource_version: String,
        /// Its image, where it changes.
        image: Option<String>,
        /// The files of its volume, where they change.
        items: Option<Vec<KeyToPath>>,
    },
}
