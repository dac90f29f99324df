//! CoreDNS follows `clusterConfiguration.dns`, once the Machines are at rest: image, Corefile and what kubeadm stores of it.
//!
//! Each step leaves what the next begins from, so that a restart between any two goes on where the first attempt ended: while the
//! Deployment reads the backup, the backup is the Corefile of the version that runs.

use std::collections::BTreeMap;

use windlass_controller_runtime::Seen;
use windlass_kubeadm::coredns::{self, Version};

use super::addons::{UNREADABLE, at_rest, repository};
use super::{Action, Plan};
use crate::core_dns::{BACKUP, COREFILE, CoreDns, CoreDnsChange, Corefile};
use crate::facts::Facts;
use crate::names::SKIP_COREDNS;
use crate::question::Question;

/// The reason of the event about a CoreDNS that cannot be changed.
const NOT_UPDATED: &str = "CoreDNSNotUpdated";
/// The registries in which the image of CoreDNS has moved.
const KUBERNETES_REGISTRIES: [&str; 2] = ["registry.k8s.io", "k8s.gcr.io"];

/// The change of CoreDNS that a control plane asks for.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    image: String,
    from: Version,
    to: Version,
}

/// What the specification asks of CoreDNS.
#[derive(Clone, Copy, Debug, Default)]
struct Wanted<'a> {
    tag: Option<&'a str>,
    repository: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    fn of(facts: &'a Facts) -> Self {
        let dns = &facts.control_plane.kubeadm["clusterConfiguration"]["dns"];
        let text = |field: &str| dns[field].as_str().filter(|text| !text.is_empty());
        Self {
            tag: text("imageTag"),
            repository: text("imageRepository").or_else(|| repository(facts)),
        }
    }

    /// What it asks in place of an image; none when the image is as it should be.
    fn target(self, image: &str) -> Result<Option<Target>, String> {
        let (name, digest) = image
            .split_once('@')
            .map_or((image, None), |(name, digest)| (name, Some(digest)));
        let slash = name.rfind('/').map_or(0, |at| at + 1);
        let (registry, last) = name.split_at(slash);
        let registry = registry.trim_end_matches('/');
        let Some((base, tag)) = last.split_once(':').filter(|(_, tag)| !tag.is_empty()) else {
            return Err(match digest {
                Some(_) => "its image has a digest and no tag, which is the version to update from".to_owned(),
                None => "its image has no tag, which is the version to update from".to_owned(),
            });
        };
        let version = |tag: &str| Version::of_tag(tag).map_err(|_| format!("tag \"{tag}\" is no version of CoreDNS"));
        let wanted_tag = self.tag.unwrap_or(tag);
        let wanted_registry = self
            .repository
            .map_or(registry, |repository| repository.trim_end_matches('/'));
        let (from, to) = (version(tag)?, version(wanted_tag)?);
        let moved = KUBERNETES_REGISTRIES.contains(&wanted_registry) && base == "coredns" && to >= Version::RENAMED;
        let base = if moved { "coredns/coredns" } else { base };
        let wanted = match wanted_registry {
            "" => format!("{base}:{wanted_tag}"),
            registry => format!("{registry}/{base}:{wanted_tag}"),
        };
        // A digest of the same tag is a choice of the user's.
        if wanted == name {
            return Ok(None);
        }
        if from > to {
            return Err(format!(
                "version {to} is older than {from}, and CoreDNS is not taken back"
            ));
        }
        if !from.is_known() {
            return Err(format!("version {from} has no known migration"));
        }
        Ok(Some(Target {
            image: wanted,
            from,
            to,
        }))
    }
}

/// Brings CoreDNS to what the specification asks for. Asks for its Deployment, and for its Corefile where that may change.
pub(super) fn plan(facts: &Facts, plan: &mut Plan, question: &mut Question) {
    let control_plane = &facts.control_plane;
    let skip = control_plane.annotations.contains_key(SKIP_COREDNS);
    let wanted = Wanted::of(facts);
    let asked = wanted.tag.is_some() || wanted.repository.is_some();
    if skip || !asked || !facts.initialized() || facts.reached().is_none() || !at_rest(facts) {
        return;
    }
    let found = match &facts.answers.core_dns {
        None => {
            question.core_dns = true;
            return;
        }
        Some(Seen::Found(found)) => found,
        // The cluster has no CoreDNS of kubeadm's.
        Some(Seen::NotFound) => return,
        Some(Seen::Failed(_)) => return unreadable(plan, "Deployment"),
    };
    let target = match wanted.target(&found.image) {
        Ok(None) => return,
        Ok(Some(target)) => target,
        Err(why) => return left(plan, found, &why),
    };
    match &facts.answers.corefile {
        None => question.corefile = true,
        Some(Seen::Found(corefile)) => match steps(facts, found, corefile, &target) {
            Ok(steps) => {
                plan.note(format!(
                    "CoreDNS runs {}; its configuration asks for {}",
                    found.image, target.image
                ));
                for step in steps {
                    plan.push(step);
                }
            }
            Err(why) => left(plan, found, &why),
        },
        Some(Seen::NotFound) => {}
        Some(Seen::Failed(_)) => unreadable(plan, "ConfigMap"),
    }
}

fn unreadable(plan: &mut Plan, kind: &str) {
    plan.note(format!(
        "whether CoreDNS follows clusterConfiguration.dns is not known: {kind} kube-system/coredns cannot be read"
    ));
    plan.again_within(UNREADABLE);
}

/// Says why CoreDNS stays as it is. A change of the control plane or of the Deployment leads to another plan; one of the ConfigMap does
/// not, so that it is looked at from time to time.
fn left(plan: &mut Plan, found: &CoreDns, why: &str) {
    let message = format!(
        "CoreDNS of the workload cluster stays at {}: {why}. Correct spec.kubeadmConfigSpec.clusterConfiguration.dns, or set annotation {SKIP_COREDNS}",
        found.image
    );
    plan.warn(NOT_UPDATED, message);
    plan.again_within(UNREADABLE);
}

/// The steps up to the first whose outcome is an event, in the order of Cluster API: what kubeadm stores, the backup, the volume, the
/// Corefile, the image.
fn steps(facts: &Facts, found: &CoreDns, corefile: &Corefile, target: &Target) -> Result<Vec<Action>, String> {
    let control_plane = &facts.control_plane;
    let text = corefile.text.as_ref();
    let text = text.ok_or_else(|| format!("ConfigMap kube-system/coredns has no key {COREFILE}"))?;
    let reads = found.reads();
    let before = match &corefile.backup {
        Some(backup) if reads == Some(BACKUP) => backup,
        _ => text,
    };
    let migrated = coredns::migrate(before, target.from, target.to).map_err(|error| error.to_string())?;
    let write = |data: BTreeMap<&'static str, String>| {
        Action::ChangeCoreDns(CoreDnsChange::Corefile {
            data,
            resource_version: corefile.resource_version.clone(),
        })
    };
    let deployment = |image: Option<&str>, key: Option<&str>| {
        Action::ChangeCoreDns(CoreDnsChange::Deployment {
            image: image.map(str::to_owned),
            items: key.map(|key| found.reading(key)),
        })
    };
    let mut steps = vec![Action::UpdateKubeadmDns {
        dns: control_plane.kubeadm["clusterConfiguration"]["dns"].clone(),
        version: control_plane.version.clone(),
    }];
    match (reads, migrated) {
        (Some(BACKUP), migrated) => {
            let after = migrated.unwrap_or_else(|| before.clone());
            if after != *text {
                steps.push(write(BTreeMap::from([(COREFILE, after)])));
            }
            steps.push(deployment(Some(&target.image), Some(COREFILE)));
        }
        (Some(_), migrated) => {
            if corefile.backup.as_ref() != Some(text) {
                steps.push(write(BTreeMap::from([(BACKUP, text.clone())])));
            }
            // CoreDNS reads the backup until its image can read the new Corefile. The change of the Deployment wakes this controller.
            steps.push(match migrated {
                Some(_) => deployment(None, Some(BACKUP)),
                None => deployment(Some(&target.image), None),
            });
        }
        // A volume of another shape is the user's own.
        (None, migrated) => {
            if let Some(after) = migrated {
                steps.push(write(BTreeMap::from([(COREFILE, after), (BACKUP, text.clone())])));
            }
            steps.push(deployment(Some(&target.image), None));
        }
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(image: &str, tag: &str, repository: &str) -> Result<Option<String>, String> {
        let text = |text: &'static str| Some(text).filter(|text| !text.is_empty());
        let (tag, repository) = (tag.to_owned().leak(), repository.to_owned().leak());
        let wanted = Wanted {
            tag: text(tag),
            repository: text(repository),
        };
        wanted.target(image).map(|target| target.map(|target| target.image))
    }

    #[test]
    fn the_image_follows_tag_and_repository() {
        for (image, tag, repository, expected) in [
            (
                "registry.k8s.io/coredns/coredns:v1.10.1",
                "v1.12.0",
                "",
                Some("registry.k8s.io/coredns/coredns:v1.12.0"),
            ),
            (
                "registry.k8s.io/coredns/coredns:v1.10.1",
                "",
                "my.io/k8s/",
                Some("my.io/k8s/coredns:v1.10.1"),
            ),
            (
                "my.io:5000/coredns:v1.10.1",
                "v1.12.0",
                "registry.k8s.io",
                Some("registry.k8s.io/coredns/coredns:v1.12.0"),
            ),
            (
                "registry.k8s.io/coredns:1.7.0",
                "v1.8.0",
                "",
                Some("registry.k8s.io/coredns/coredns:v1.8.0"),
            ),
            ("coredns:1.9.0", "1.9.3_vmware.1", "", Some("coredns:1.9.3_vmware.1")),
            ("a/coredns:v1.10.1@sha256:00", "v1.12.0", "", Some("a/coredns:v1.12.0")),
            ("a/coredns:v1.10.1@sha256:00", "v1.10.1", "", None),
            (
                "registry.k8s.io/coredns/coredns:v1.10.1",
                "v1.10.1",
                "registry.k8s.io",
                None,
            ),
        ] {
            assert_eq!(
                target(image, tag, repository),
                Ok(expected.map(str::to_owned)),
                "{image} {tag}"
            );
        }
        for (image, tag, why) in [
            ("a/coredns@sha256:00", "v1.12.0", "a digest and no tag"),
            ("my.io:5000/coredns", "v1.12.0", "no tag"),
            ("a/coredns:latest", "v1.12.0", "\"latest\" is no version"),
            ("a/coredns:v1.12.0", "v1.11.1", "version 1.11.1 is older than 1.12.0"),
            ("a/coredns:v1.6.8", "v1.12.0", "1.6.8 has no known migration"),
        ] {
            let error = target(image, tag, "").unwrap_err();
            assert!(error.contains(why), "{image}: {error}");
        }
    }
}
