//! CoreDNS follows `clusterConfiguration.dns`.

use std::time::Duration;

use k8s_openapi::api::core::v1::KeyToPath;
use serde_json::json;
use windlass_controller_runtime::Seen;
use windlass_controlplane_kubeadm::core_dns::{CoreDns, CoreDnsChange, Corefile};
use windlass_controlplane_kubeadm::names::SKIP_COREDNS;
use windlass_controlplane_kubeadm::plan::{Action, WorkloadChange};

use crate::cases::{actions, check};
use crate::deadlines::planned;
use crate::world::World;

/// A Corefile that changes on its way to CoreDNS 1.8.0, with a comment.
const OLD: &str = ".:53 {
    kubernetes cluster.local { # ours
        transfer to *
    }
}
";

fn item(key: &str) -> KeyToPath {
    KeyToPath {
        key: key.to_owned(),
        path: "Corefile".to_owned(),
        mode: Some(0o600),
        ..KeyToPath::default()
    }
}

/// A control plane at rest, whose CoreDNS is at a version and is asked to come to another.
fn world(from: &str, to: &str, corefile: &str) -> World {
    let mut world = World::settled(1);
    world.core_dns = Some(CoreDns {
        image: format!("registry.k8s.io/coredns:{from}"),
        items: vec![item("Corefile")],
        resource_version: "1".to_owned(),
    });
    world.corefile = Some(Corefile {
        text: Some(corefile.to_owned()),
        backup: None,
        resource_version: "1".to_owned(),
    });
    world.control_plane.kubeadm["clusterConfiguration"]["dns"] = json!({ "imageTag": to });
    world
}

fn corefile(world: &World) -> Corefile {
    world.corefile.clone().unwrap()
}

fn core_dns(world: &World) -> CoreDns {
    world.core_dns.clone().unwrap()
}

#[test]
fn a_corefile_is_backed_up_and_migrated_before_the_image_changes() {
    let mut world = world("1.7.1", "v1.12.0", OLD);
    check(
        &world,
        &[
            "kubeadm-config dns",
            "write Corefile-backup",
            "coredns  reading Corefile-backup",
        ],
    );
    world.reconcile(usize::MAX);
    assert_eq!(corefile(&world).text.unwrap(), OLD);
    let image = "registry.k8s.io/coredns/coredns:v1.12.0";
    let last = format!("coredns {image} reading Corefile");
    check(&world, &["kubeadm-config dns", "write Corefile", &last]);
    world.reconcile(usize::MAX);
    check(&world, &[]);
    assert_eq!(world.kubeadm_dns, json!({ "imageTag": "v1.12.0" }));
    assert_eq!(core_dns(&world).image, image);
    assert_eq!(core_dns(&world).items, [item("Corefile")]);
    let after = corefile(&world);
    assert_eq!(after.backup.unwrap(), OLD);
    assert!(
        after
            .text
            .unwrap()
            .contains("    transfer cluster.local {\n        to *\n")
    );
}

/// What counts at the end.
fn state(world: &World) -> (Corefile, CoreDns) {
    let (mut corefile, mut core_dns) = (corefile(world), core_dns(world));
    corefile.resource_version.clear();
    core_dns.resource_version.clear();
    (corefile, core_dns)
}

/// After a rollback of the Deployment, or while an update is under way.
#[test]
fn what_a_user_edits_while_core_dns_reads_the_backup_stays() {
    let mut world = world("1.7.1", "v1.12.0", OLD);
    world.reconcile(usize::MAX);
    assert_eq!(core_dns(&world).reads(), Some("Corefile-backup"));
    let edited = OLD.replace("# ours", "\n        ttl 5 # ours");
    world.corefile.as_mut().unwrap().text = Some(edited);
    for _ in 0..2 {
        world.reconcile(usize::MAX);
    }
    let after = corefile(&world);
    assert!(after.text.as_ref().unwrap().contains("ttl 5"), "{after:?}");
    assert_eq!(after.backup.as_deref(), Some(OLD));
    check(&world, &[]);

    let mine = after.text.unwrap().replace("ttl 5", "ttl 6");
    world.corefile.as_mut().unwrap().text = Some(mine.clone());
    let found = world.core_dns.as_mut().unwrap();
    found.image = "registry.k8s.io/coredns:1.7.1".to_owned();
    found.items = vec![item("Corefile-backup")];
    for _ in 0..2 {
        world.reconcile(usize::MAX);
    }
    check(&world, &[]);
    assert_eq!(corefile(&world).text.unwrap(), mine);
}

#[test]
fn core_dns_does_not_stay_on_the_backup() {
    for image in [
        "registry.k8s.io/coredns/coredns:v1.12.0",
        "registry.k8s.io/coredns:1.7.1",
    ] {
        let mut world = world("1.7.1", "v1.12.0", OLD);
        world.reconcile(usize::MAX);
        assert_eq!(core_dns(&world).reads(), Some("Corefile-backup"));
        // A user brings the image by hand, or goes back to the version that runs.
        image.clone_into(&mut world.core_dns.as_mut().unwrap().image);
        let (_, tag) = image.rsplit_once(':').unwrap();
        world.control_plane.kubeadm["clusterConfiguration"]["dns"] = json!({ "imageTag": tag });
        check(&world, &["coredns  reading Corefile"]);
        world.reconcile(usize::MAX);
        check(&world, &[]);
    }
}

/// The world of an update that was interrupted while CoreDNS reads the backup, before or after the Corefile was migrated.
fn interrupted(is_migrated: bool) -> World {
    let mut world = world("1.7.1", "v1.12.0", OLD);
    world.reconcile(usize::MAX);
    if is_migrated {
        write_corefile(&mut world);
    }
    assert_eq!(core_dns(&world).reads(), Some("Corefile-backup"));
    world
}

/// Carries out only the write of the ConfigMap.
fn write_corefile(world: &mut World) {
    let writes = |action: &Action| {
        matches!(
            action,
            Action::Workload(WorkloadChange::CoreDns(CoreDnsChange::Corefile { .. }))
        )
    };
    let write = world.plan().actions.into_iter().find(writes).unwrap();
    world.act(&write);
}

#[test]
fn an_update_that_is_taken_back_leads_core_dns_back_to_its_corefile() {
    let old = "registry.k8s.io/coredns:1.7.1";
    for dns in [json!(null), json!({}), json!({ "imageTag": "1.7.1" })] {
        // The Corefile is the old one still.
        let mut world = interrupted(false);
        world.control_plane.kubeadm["clusterConfiguration"]["dns"] = dns.clone();
        check(&world, &["coredns  reading Corefile"]);
        // It was migrated, and the image that runs does not understand it.
        let mut world = interrupted(true);
        assert_ne!(corefile(&world).text.as_deref(), Some(OLD));
        world.control_plane.kubeadm["clusterConfiguration"]["dns"] = dns.clone();
        check(&world, &["write Corefile", "coredns  reading Corefile"]);
        // An interruption between the two.
        write_corefile(&mut world);
        check(&world, &["coredns  reading Corefile"]);
        world.reconcile(usize::MAX);
        assert_eq!(corefile(&world).text.as_deref(), Some(OLD));
        assert_eq!(core_dns(&world).image, old);
        assert_eq!(core_dns(&world).reads(), Some("Corefile"));
        check(&world, &[]);
        // What a user wrote meanwhile stays.
        let mut world = interrupted(true);
        let mine = OLD.replace("# ours", "# mine");
        world.corefile.as_mut().unwrap().text = Some(mine.clone());
        world.control_plane.kubeadm["clusterConfiguration"]["dns"] = dns;
        check(&world, &["coredns  reading Corefile"]);
        world.reconcile(usize::MAX);
        assert_eq!(corefile(&world).text, Some(mine));
    }
}

#[test]
fn an_interruption_between_any_two_steps_loses_no_corefile() {
    let whole = {
        let mut world = world("1.7.1", "v1.12.0", OLD);
        world.reconcile(usize::MAX);
        world.reconcile(usize::MAX);
        state(&world)
    };
    // Two actions for the Machine come before.
    for first in 0..=5 {
        for second in 0..=5 {
            let mut world = world("1.7.1", "v1.12.0", OLD);
            world.reconcile(first);
            world.reconcile(second);
            for _ in 0..3 {
                world.reconcile(usize::MAX);
            }
            let end = state(&world);
            assert_eq!(end, whole, "{first} {second}");
            check(&world, &[]);
        }
    }
}

#[test]
fn a_corefile_that_stays_as_it_is_keeps_its_text() {
    let text = "# ours\n.:53 {\n  forward . /etc/resolv.conf\n}\n";
    let mut world = world("v1.10.1", "v1.12.0", text);
    let image = "coredns registry.k8s.io/coredns/coredns:v1.12.0";
    check(&world, &["kubeadm-config dns", "write Corefile-backup", image]);
    world.reconcile(usize::MAX);
    check(&world, &[]);
    assert_eq!(corefile(&world).text.as_deref(), Some(text));
    assert_eq!(corefile(&world).backup.as_deref(), Some(text));
    // The next update replaces the backup.
    world.corefile.as_mut().unwrap().text = Some(text.replace("# ours", "# theirs"));
    world.control_plane.kubeadm["clusterConfiguration"]["dns"]["imageRepository"] = json!("my.io/");
    check(
        &world,
        &[
            "kubeadm-config dns",
            "write Corefile-backup",
            "coredns my.io/coredns:v1.12.0",
        ],
    );
}

#[test]
fn a_volume_of_the_users_own_is_left_alone() {
    let mut world = world("1.7.1", "v1.12.0", OLD);
    world.core_dns.as_mut().unwrap().items.clear();
    let image = "coredns registry.k8s.io/coredns/coredns:v1.12.0";
    check(&world, &["kubeadm-config dns", "write Corefile Corefile-backup", image]);
    // An interruption after the write: what is written already is no backup.
    write_corefile(&mut world);
    check(&world, &["kubeadm-config dns", image]);
    world.reconcile(usize::MAX);
    assert_eq!(corefile(&world).backup.unwrap(), OLD);
}

#[test]
fn without_a_request_or_with_the_annotation_nothing_is_asked() {
    let mut asked_for_nothing = world("v1.10.1", "", OLD);
    asked_for_nothing.core_dns = None;
    check(&asked_for_nothing, &[]);
    let mut skipped = world("v1.10.1", "v1.12.0", OLD);
    check(
        &skipped,
        &[
            "kubeadm-config dns",
            "write Corefile-backup",
            "coredns registry.k8s.io/coredns/coredns:v1.12.0",
        ],
    );
    let annotations = &mut skipped.control_plane.annotations;
    annotations.insert(SKIP_COREDNS.into(), String::new());
    check(&skipped, &[]);
}

#[test]
fn a_cluster_without_core_dns_of_kubeadm_has_none_to_update() {
    let mut world = world("v1.10.1", "v1.12.0", OLD);
    world.corefile = None;
    check(&world, &[]);
    world.core_dns = None;
    check(&world, &[]);
    assert!(world.plan().notes.is_empty(), "{:?}", world.plan().notes);
}

#[test]
fn what_keeps_core_dns_back_is_an_event_with_the_remedy() {
    let broken = |from: &str, to: &str, text: Option<&str>, why: &str| {
        let mut world = world(from, to, OLD);
        world.corefile.as_mut().unwrap().text = text.map(str::to_owned);
        assert!(actions(&world).is_empty(), "{why}");
        let plan = world.plan();
        assert!(plan.requeue.is_some_and(|wait| wait <= Duration::from_mins(10)));
        let [note] = plan.notes.as_slice() else {
            panic!("{:?}", plan.notes);
        };
        let text = format!("{note:?}");
        assert!(
            text.contains(why) && text.contains("clusterConfiguration.dns"),
            "{text}"
        );
        assert!(text.contains("CoreDNSNotUpdated"), "{text}");
    };
    broken("v1.12.0", "v1.10.1", Some(OLD), "1.10.1 is older than 1.12.0");
    broken(
        "latest",
        "v1.12.0",
        Some(OLD),
        "\\\"latest\\\" is no version of CoreDNS",
    );
    broken(
        "1.7.1",
        "v99.0.0",
        Some(OLD),
        "cannot migrate up to '99.0.0' from '1.7.1'",
    );
    broken("1.7.1", "v1.12.0", None, "has no key Corefile");
    broken(
        "1.7.1",
        "v1.12.0",
        Some(".:53 {\n"),
        "line 1: the block that begins here has no end",
    );
}

#[test]
fn core_dns_that_cannot_be_read_is_polled_rarely() {
    let world = world("v1.10.1", "v1.12.0", OLD);
    let changes = |action: &Action| {
        matches!(
            action,
            Action::Workload(WorkloadChange::KubeadmDns { .. } | WorkloadChange::CoreDns(_))
        )
    };
    let mut facts = world.facts();
    facts.answers.kube_proxy = Some(Seen::Found(world.kube_proxy.clone()));
    facts.answers.core_dns = Some(Seen::Failed("deployments.apps \"coredns\" is forbidden".into()));
    let unread = planned(&facts, &world);
    assert!(!unread.actions.iter().any(changes), "{:?}", unread.actions);
    assert_eq!(unread.requeue, Some(Duration::from_mins(10)));
    facts.answers.core_dns = Some(Seen::Found(core_dns(&world)));
    facts.answers.core_dns_objects = Some(Seen::Failed("request 2 timed out".into()));
    let unread = planned(&facts, &world);
    assert!(!unread.actions.iter().any(changes), "{:?}", unread.actions);
    assert!(format!("{:?}", unread.notes).contains("cannot be read"));
}
