//! CoreDNS follows `clusterConfiguration.dns`, once the Machines are at rest: image, Corefile and what kubeadm stores of it.
//!
//! Each step leaves what the next begins from, so that a restart between any two goes on where the first attempt ended: while CoreDNS reads
//! the backup, an update is under way.

use std::collections::BTreeMap;

use windlass_controller_runtime::Seen;
use windlass_kubeadm::coredns::{self, Version};

use super::addons::{UNREADABLE, at_rest, repository};
use super::{Action, Plan, WorkloadChange};
use crate::core_dns::{BACKUP, CORE_DNS, COREFILE, CoreDns, CoreDnsChange, CoreDnsObjects, Corefile};
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

    fn is_something(self) -> bool {
        self.tag.is_some() || self.repository.is_some()
    }

    /// What it asks in place of an image; none when the image is as it should be.
    fn target(self, image: &str) -> Result<Option<Target>, String> {
        if !self.is_something() {
            return Ok(None);
        }
        if image.is_empty() {
            return Err(format!("Deployment kube-system/{CORE_DNS} has no container {CORE_DNS}"));
        }
        let (name, digest) = image
            .split_once('@')
            .map_or((image, None), |(name, digest)| (name, Some(digest)));
        let slash = name.rfind('/').map_or(0, |at| at + 1);
        let (registry, last) = name.split_at(slash);
        let registry = registry.trim_end_matches('/');
        // An image of Docker Hub, such as that of CoreDNS's own chart, is none of kubeadm's.
        let host = registry.split('/').next().unwrap_or_default();
        if !host.contains(['.', ':']) && host != "localhost" {
            return Err("its image names no registry, so that it is not that of kubeadm".to_owned());
        }
        let wanted_registry = self
            .repository
            .map_or(registry, |repository| repository.trim_end_matches('/'));
        let is_of_kubernetes = KUBERNETES_REGISTRIES.contains(&wanted_registry);
        let stays = wanted_registry == registry
            || is_of_kubernetes && registry.strip_prefix(wanted_registry) == Some("/coredns");
        if self.tag.is_none() && stays {
            return Ok(None);
        }
        let Some((base, tag)) = last.split_once(':').filter(|(_, tag)| !tag.is_empty()) else {
            return Err(match digest {
                Some(_) => "its image has a digest and no tag, which is the version to update from".to_owned(),
                None => "its image has no tag, which is the version to update from".to_owned(),
            });
        };
        let version = |tag: &str| Version::of_tag(tag).map_err(|_| format!("tag \"{tag}\" is no version of CoreDNS"));
        let wanted_tag = self.tag.unwrap_or(tag);
        let (from, to) = (version(tag)?, version(wanted_tag)?);
        let moved = is_of_kubernetes && base == CORE_DNS && to >= Version::RENAMED;
        let base = if moved { "coredns/coredns" } else { base };
        let image = format!("{wanted_registry}/{base}:{wanted_tag}");
        // A digest of the same tag is a choice of the user's.
        if image == name {
            return Ok(None);
        }
        if from > to {
            return Err(format!(
                "version {to} is older than {from}, and CoreDNS is not taken back"
            ));
        }
        coredns::can_migrate(from, to).map_err(|error| error.to_string())?;
        Ok(Some(Target { image, from, to }))
    }
}

/// Brings CoreDNS to what the specification asks for. Asks for its Deployment, and for both objects as they are now where one may change.
/// A specification that asks for nothing ends an update that was begun: CoreDNS goes back to its Corefile, with the image that it has.
pub(super) fn plan(facts: &Facts, plan: &mut Plan, question: &mut Question) {
    let control_plane = &facts.control_plane;
    let skip = control_plane.annotations.contains_key(SKIP_COREDNS);
    let wanted = Wanted::of(facts);
    if skip || !facts.initialized() || facts.reached().is_none() || !at_rest(facts) {
        return;
    }
    let found = match &facts.answers.core_dns {
        None => {
            question.core_dns = wanted.is_something();
            question.unfinished_core_dns = !wanted.is_something();
            return;
        }
        Some(Seen::Found(found)) => found,
        // The cluster has no CoreDNS of kubeadm's.
        Some(Seen::NotFound) => return,
        Some(Seen::Failed(_)) => return unreadable(plan),
    };
    match wanted.target(&found.image) {
        Ok(None) if !found.is_unfinished() => return,
        Ok(_) => {}
        Err(why) => return left(facts, plan, found, &why),
    }
    match &facts.answers.core_dns_objects {
        None => question.core_dns_objects = true,
        Some(Seen::Found(CoreDnsObjects { deployment, corefile })) => {
            let steps = wanted
                .target(&deployment.image)
                .and_then(|target| steps(facts, deployment, corefile, target.as_ref()));
            match steps {
                Ok(steps) => {
                    for step in steps {
                        plan.push(Action::Workload(step));
                    }
                }
                Err(why) => left(facts, plan, deployment, &why),
            }
        }
        Some(Seen::NotFound) => {}
        Some(Seen::Failed(_)) => unreadable(plan),
    }
}

fn unreadable(plan: &mut Plan) {
    plan.note("whether CoreDNS follows clusterConfiguration is not known: its objects in kube-system cannot be read");
    plan.again_within(UNREADABLE);
}

/// Says why CoreDNS stays as it is. A change of the control plane or of the Deployment leads to another plan; one of the ConfigMap does
/// not, so that it is looked at from time to time.
fn left(facts: &Facts, plan: &mut Plan, found: &CoreDns, why: &str) {
    let dns = &facts.control_plane.kubeadm["clusterConfiguration"]["dns"];
    let asks = |field: &str| dns[field].as_str().is_some_and(|text| !text.is_empty());
    let field = match () {
        () if asks("imageTag") => "dns.imageTag",
        () if asks("imageRepository") => "dns.imageRepository",
        () => "imageRepository",
    };
    let reads = match found.reads() {
        Some(BACKUP) => format!(", reading {BACKUP}"),
        _ => String::new(),
    };
    let message = format!(
        "CoreDNS of the workload cluster stays as it is ({}{reads}): {why}. spec.kubeadmConfigSpec.clusterConfiguration.{field} asks for another \
         image: correct that, or set annotation {SKIP_COREDNS}",
        found.image
    );
    plan.warn(NOT_UPDATED, message);
    plan.again_within(UNREADABLE);
}

/// The steps up to the first whose outcome is an event, in the order of Cluster API: what kubeadm stores, the backup, the volume, the
/// Corefile, the image. Without a target the image is as it should be, and CoreDNS goes back to its Corefile, which it has to understand.
///
/// The Corefile itself is migrated, also where CoreDNS reads the backup: a migration that is made again changes nothing, and what a user
/// edited meanwhile stays.
fn steps(
    facts: &Facts,
    found: &CoreDns,
    corefile: &Corefile,
    target: Option<&Target>,
) -> Result<Vec<WorkloadChange>, String> {
    let deployment = |image: Option<&str>, key: Option<&str>| {
        WorkloadChange::CoreDns(CoreDnsChange::Deployment {
            resource_version: found.resource_version.clone(),
            image: image.map(str::to_owned),
            items: key.map(|key| found.reading(key)),
        })
    };
    let write = |data: BTreeMap<&'static str, String>| {
        WorkloadChange::CoreDns(CoreDnsChange::Corefile {
            data,
            resource_version: corefile.resource_version.clone(),
        })
    };
    let reads = found.reads();
    let Some(target) = target else {
        let mut steps = Vec::new();
        if found.is_unfinished() {
            steps.extend(
                too_new(&found.image, corefile).map(|before| write(BTreeMap::from([(COREFILE, before.clone())]))),
            );
            steps.push(deployment(None, Some(COREFILE)));
        }
        return Ok(steps);
    };
    let control_plane = &facts.control_plane;
    let text = corefile.text.as_ref();
    let text = text.ok_or_else(|| format!("ConfigMap kube-system/{CORE_DNS} has no key {COREFILE}"))?;
    let migrated = coredns::migrate(text, target.from, target.to).map_err(|error| error.to_string())?;
    let mut steps = vec![WorkloadChange::KubeadmDns {
        dns: control_plane.kubeadm["clusterConfiguration"]["dns"].clone(),
        version: control_plane.version.clone(),
    }];
    match (reads, migrated) {
        (Some(BACKUP), migrated) => {
            steps.extend(migrated.map(|after| write(BTreeMap::from([(COREFILE, after)]))));
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

/// The backup, where the Corefile was made from it for a later release than that of an image. What a user wrote is no such Corefile.
fn too_new<'a>(image: &str, corefile: &'a Corefile) -> Option<&'a String> {
    let (text, backup) = (corefile.text.as_ref()?, corefile.backup.as_ref()?);
    let name = image.split('@').next().unwrap_or_default();
    let from = Version::of_tag(name.rsplit_once(':')?.1).ok()?;
    let is_made_for = |to: Version| coredns::migrate(backup, from, to).is_ok_and(|made| made.as_ref() == Some(text));
    from.later().any(is_made_for).then_some(backup)
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
            (
                "localhost/coredns:1.9.0",
                "1.9.3_vmware.1",
                "",
                Some("localhost/coredns:1.9.3_vmware.1"),
            ),
            ("my.io/coredns@sha256:00", "", "my.io/", None),
            ("registry.k8s.io/coredns/coredns@sha256:00", "", "registry.k8s.io", None),
            ("my.io/coredns:custom", "", "my.io", None),
            (
                "a.io/coredns:v1.10.1@sha256:00",
                "v1.12.0",
                "",
                Some("a.io/coredns:v1.12.0"),
            ),
            ("a.io/coredns:v1.10.1@sha256:00", "v1.10.1", "", None),
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
            ("a.io/coredns@sha256:00", "v1.12.0", "a digest and no tag"),
            ("my.io:5000/coredns", "v1.12.0", "no tag"),
            ("a.io/coredns:latest", "v1.12.0", "\"latest\" is no version"),
            ("a.io/coredns:v1.12.0", "v1.11.1", "version 1.11.1 is older than 1.12.0"),
            ("a.io/coredns:v1.6.8", "v1.12.0", "start version '1.6.8' not supported"),
            ("a.io/coredns:v1.6.7", "v99.0.0", "cannot migrate up to"),
            ("coredns/coredns:1.11.1", "v1.12.0", "no registry"),
            ("coredns:1.11.1", "v1.12.0", "no registry"),
            ("", "v1.12.0", "no container coredns"),
        ] {
            let error = target(image, tag, "").unwrap_err();
            assert!(error.contains(why), "{image}: {error}");
        }
    }
}
