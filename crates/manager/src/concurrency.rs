//! How many objects of a kind are reconciled at a time, by the options of Cluster API's managers.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

/// The number of controllers that wait for workload clusters and extensions of several owners: more than one extension gets at once, so that
/// one that is slow does not hold up the objects of others. As many as Cluster API's controllers of Machines and control planes.
const WAITING: u16 = 100;
/// The number of all others.
const PROMPT: u16 = 10;

/// An option of the managers of Cluster API v1.14, or of its development provider.
#[derive(Clone, Copy, Debug)]
pub struct ConcurrencyOption {
    /// Its name, without the hyphens before it.
    pub name: &'static str,
    /// The controllers that it is about.
    pub controllers: &'static [&'static str],
    /// The number without it.
    pub default: u16,
}

const fn option(name: &'static str, controllers: &'static [&'static str], default: u16) -> ConcurrencyOption {
    ConcurrencyOption {
        name,
        controllers,
        default,
    }
}

/// All of them.
pub const OPTIONS: &[ConcurrencyOption] = &[
    option(
        "clustertopology-concurrency",
        &["topology/cluster", "topology/machinedeployment", "topology/machineset"],
        WAITING,
    ),
    option("clusterclass-concurrency", &["clusterclass"], WAITING),
    option("cluster-concurrency", &["cluster"], WAITING),
    option("extensionconfig-concurrency", &["extensionconfig"], PROMPT),
    option("machine-concurrency", &["machine"], WAITING),
    option("machineset-concurrency", &["machineset"], PROMPT),
    option("machinedeployment-concurrency", &["machinedeployment"], WAITING),
    option("machinepool-concurrency", &["machinepool"], PROMPT),
    option(
        "clusterresourceset-concurrency",
        &["clusterresourceset", "clusterresourcesetbinding"],
        PROMPT,
    ),
    option("machinehealthcheck-concurrency", &["machinehealthcheck"], PROMPT),
    option("kubeadmconfig-concurrency", &["kubeadmconfig"], PROMPT),
    option("kubeadmcontrolplane-concurrency", &["kubeadmcontrolplane"], WAITING),
    option("devmachine-concurrency", &["devmachine"], PROMPT),
    option("devcluster-concurrency", &["devcluster"], PROMPT),
    option("devmachinetemplate-concurrency", &["devmachinetemplate"], PROMPT),
    option("devmachinepool-concurrency", &["devmachinepool"], PROMPT),
];

/// Chosen numbers of objects that are reconciled at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Concurrency(BTreeMap<&'static str, NonZeroU16>);

impl Concurrency {
    /// Chooses the number of an option.
    pub fn set(&mut self, option: &ConcurrencyOption, most: NonZeroU16) {
        self.0
            .extend(option.controllers.iter().map(|controller| (*controller, most)));
    }

    /// The number for a controller, if an option is about it.
    pub(crate) fn of(&self, controller: &str) -> Option<usize> {
        let option = OPTIONS.iter().find(|option| option.controllers.contains(&controller))?;
        let chosen = self.0.get(controller).map(|most| most.get());
        Some(chosen.unwrap_or(option.default).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::controllers::CONTROLLERS;

    #[test]
    fn an_option_is_about_its_controllers_alone() {
        for option in OPTIONS {
            let mut chosen = Concurrency::default();
            chosen.set(option, NonZeroU16::new(7).unwrap());
            for name in option.controllers {
                assert!(CONTROLLERS.iter().any(|info| info.name == *name), "{name}");
                assert_eq!(Concurrency::default().of(name), Some(option.default.into()));
            }
            let seven = CONTROLLERS.iter().filter(|info| chosen.of(info.name) == Some(7));
            assert_eq!(seven.count(), option.controllers.len(), "{}", option.name);
        }
        assert_eq!(Concurrency::default().of("operator/core"), None);
    }
}
