//! Plans of rollouts that are no usual replacement of Machines, and of changes that are given in another way than by files.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use windlass_api::core::Machine;
use windlass_preview::Change;
use windlass_preview::model::{MachineChange, Report, Verdict};
use windlass_preview::render::text;
use windlass_testkit::{ClusterOf, Env};

use super::compare::{self, State};
use super::subject::{Edit, NAME, Subject};
use crate::extensions::{Served, config, is_discovered};
use crate::in_place::{Mood, Updated, extension};
use crate::life::workload;
use crate::machine_pools::{add_pool_class, pool_name, wait_whole};

fn machines(report: &Report) -> Vec<&MachineChange> {
    let phases = report.groups.iter().flat_map(|group| &group.plan.phases);
    phases.flat_map(|phase| &phase.machines).collect()
}

fn replaced<'a>(changes: &[&'a MachineChange]) -> BTreeSet<&'a str> {
    let all = changes.iter().flat_map(|change| &change.replaced);
    all.map(|one| one.name.as_str()).collect()
}

async fn stored(env: &Env, kind: &str, name: &str) -> Value {
    serde_json::to_value(env.dynamic(kind).get(name).await.unwrap()).unwrap()
}

/// The uids of all Machines.
async fn uids(env: &Env) -> BTreeSet<String> {
    let all = env.list::<Machine>().await;
    all.into_iter().filter_map(|machine| machine.metadata.uid).collect()
}

#[tokio::test]
async fn machines_that_only_users_replace_are_named_and_stay_until_then() {
    let mut subject = Subject::start("v1.35.0").await;
    let on_delete = subject.change(|subject| {
        subject.topology()["workers"]["machineDeployments"][0]["rollout"] = json!({"strategy": {"type": "OnDelete"}});
    });
    let report = subject.plan(&on_delete).await;
    assert_eq!(machines(&report), [] as [&MachineChange; 0], "{}", text::text(&report));
    subject.env().apply(&on_delete[0]).await;
    subject.settled().await;

    for edit in [Edit::NodeLabel("blue"), Edit::Version("v1.36.0")] {
        let changed = subject.change(|subject| subject.edit(edit));
        let report = subject.plan(&changed).await;
        let shown = text::text(&report);
        let of_workers: Vec<_> = machines(&report)
            .into_iter()
            .filter(|one| one.owner.kind == "MachineDeployment")
            .collect();
        assert_eq!(of_workers.len(), 1, "{shown}");
        assert_eq!(of_workers[0].how, "when users delete them (OnDelete)", "{shown}");
        let named = replaced(&of_workers);
        assert_eq!(named.len(), 2, "{shown}");
        let before = State::of(subject.env()).await;
        for document in &changed {
            subject.env().apply(document).await;
        }
        // The control plane goes on by itself, and the workers do not.
        let is_outdated = |machine: &Machine| {
            let conditions = machine.status.iter().flat_map(|status| &status.conditions);
            let mut all = conditions.into_iter();
            all.any(|one| one.type_ == "UpToDate" && one.status == "False")
        };
        let waiting = subject
            .env()
            .wait_all::<Machine>("outdated Machines", |all| {
                let outdated = all.iter().filter(|one| is_outdated(one));
                let names = outdated.filter_map(|one| one.metadata.name.as_deref());
                names.collect::<BTreeSet<_>>() == named
            })
            .await;
        subject.env().rest().await;
        let now = uids(subject.env()).await;
        let kept = waiting.iter().filter(|one| is_outdated(one));
        assert!(
            kept.clone()
                .all(|one| now.contains(one.metadata.uid.as_deref().unwrap())),
            "{shown}"
        );
        for name in named {
            subject.env().delete("Machine", name).await;
        }
        subject.settled().await;
        compare::compare(&report, &before, &State::of(subject.env()).await, &shown);
    }
    subject.stop().await;
}

// TO-370: templates are replaced as without an extension, and their Machines stay. Without one, the other plans show, all Machines are replaced.
#[tokio::test]
async fn machines_that_extensions_can_update_are_named_with_the_handlers_and_stay() {
    const ONE_MORE: &str = "with updates in place, one more is made first and one goes";
    let mut subject = Subject::start("v1.35.0").await;
    let (updated, client) = (Updated::default(), Arc::new(OnceLock::new()));
    let cluster = ClusterOf::new(NAME, 1, 2);
    client.set(workload(subject.env(), &cluster).await).ok().unwrap();
    let served = Served::start(extension(Mood::default(), Arc::clone(&updated), client)).await;
    subject.env().apply(&served.config("updater")).await;
    config(subject.env(), "discovered", is_discovered).await;
    let (workers, all) = (
        vec!["can-update.updater"],
        vec!["can-update-one.updater", "can-update.updater"],
    );
    // How many workers may come in addition, and how many Machines stay of the three that there are.
    let cases = [
        (1, Edit::NodeLabel("blue"), &workers, 2),
        (0, Edit::NodeLabel("red"), &workers, 3),
        (0, Edit::StartupDuration("1ms"), &all, 2),
    ];
    for (surge, edit, handlers, expected) in cases {
        let strategy = subject.change(|subject| {
            let limits = json!({"maxSurge": surge, "maxUnavailable": 1 - surge});
            let strategy = json!({"type": "RollingUpdate", "rollingUpdate": limits});
            subject.topology()["workers"]["machineDeployments"][0]["rollout"] = json!({"strategy": strategy});
        });
        for document in strategy {
            subject.env().apply(&document).await;
        }
        subject.settled().await;
        let changed = subject.change(|subject| subject.edit(edit));
        let report = subject.plan(&changed).await;
        let shown = text::text(&report);
        let planned = machines(&report);
        let named: Vec<&str> = planned
            .iter()
            .flat_map(|one| &one.in_place)
            .map(String::as_str)
            .collect();
        assert_eq!(named, *handlers, "{shown}");
        assert!(handlers.iter().all(|handler| shown.contains(handler)), "{shown}");
        assert_eq!(shown.contains(ONE_MORE), expected == 2, "{shown}");
        assert!(report.summary.rotated > 0, "{shown}");
        let before = State::of(subject.env()).await;
        let uids_before = uids(subject.env()).await;
        updated.lock().unwrap().clear();
        for document in &changed {
            subject.env().apply(document).await;
        }
        subject.settled().await;
        let after = uids(subject.env()).await;
        assert_eq!(
            (after.len(), after.intersection(&uids_before).count()),
            (3, expected),
            "{shown}"
        );
        let asked = updated.lock().unwrap().keys().cloned().collect::<Vec<_>>();
        let names = replaced(&planned);
        assert!(!asked.is_empty(), "{shown}");
        assert!(
            asked.iter().all(|name| names.contains(name.as_str())),
            "{asked:?} {shown}"
        );
        compare::compare_objects(&report, &before, &State::of(subject.env()).await, &shown);
    }
    subject.stop().await;
}

#[tokio::test]
async fn pools_are_planned_as_they_are_made_scaled_upgraded_and_removed() {
    let mut subject = Subject::start("v1.35.0").await;
    add_pool_class(subject.env()).await;
    subject.settled().await;
    let cases: [(&str, Value, Option<i32>); 5] = [
        (
            "v1.35.0",
            json!([{"class": "pool", "name": "mp-0", "replicas": 2}]),
            Some(2),
        ),
        (
            "v1.35.0",
            json!([{"class": "pool", "name": "mp-0", "replicas": 3}]),
            Some(3),
        ),
        (
            "v1.35.0",
            json!([{"class": "pool", "name": "mp-0", "replicas": 1}]),
            Some(1),
        ),
        (
            "v1.36.0",
            json!([{"class": "pool", "name": "mp-0", "replicas": 1}]),
            Some(1),
        ),
        ("v1.36.0", json!([]), None),
    ];
    let mut had = 0;
    for (version, pools, replicas) in cases {
        let changed = subject.change(|subject| {
            subject.topology()["version"] = version.into();
            subject.topology()["workers"]["machinePools"] = pools;
        });
        let report = subject.plan(&changed).await;
        let shown = text::text(&report);
        assert_eq!(report.verdict(), Verdict::Changes, "{shown}");
        let of_pool = machines(&report)
            .into_iter()
            .filter(|one| one.owner.kind == "MachinePool");
        let more: i32 = of_pool
            .map(|one| one.added - one.surplus - i32::try_from(one.removed.len()).unwrap())
            .sum();
        let before = State::of(subject.env()).await;
        subject.env().apply(&changed[0]).await;
        if let Some(replicas) = replicas {
            wait_whole(subject.env(), &pool_name(subject.env()).await, replicas, version).await;
        } else {
            subject
                .env()
                .wait_all::<windlass_api::core::MachinePool>("no pool", <[_]>::is_empty)
                .await;
        }
        let number = replicas.unwrap_or_default();
        assert_eq!(more, number - had, "{shown}");
        had = number;
        subject.settled().await;
        compare::compare_objects(&report, &before, &State::of(subject.env()).await, &shown);
    }
    subject.stop().await;
}

#[tokio::test]
async fn fields_of_a_stored_class_and_moves_to_another_one_are_planned_as_they_happen() {
    let subject = Subject::start("v1.35.0").await;
    // A field that the class has, by the name of its item.
    let change = Change {
        class: Some("quick-start".to_owned()),
        set: vec!["spec.patches[name=node-label].enabledIf=\"true\"".to_owned()],
        ..Change::default()
    };
    let report = subject
        .plan_and_see(change, async |env| {
            let mut class = stored(env, "ClusterClass", "quick-start").await;
            for patch in class["spec"]["patches"].as_array_mut().unwrap() {
                if patch["name"] == "node-label" {
                    patch["enabledIf"] = "true".into();
                }
            }
            let patches = json!({"spec": {"patches": class["spec"]["patches"]}});
            env.merge("ClusterClass", "quick-start", &patches).await;
        })
        .await;
    assert_eq!(report.summary.machines_replaced, 2, "{}", text::text(&report));

    // A field that no ClusterClass has is refused as the server would.
    let change = Change {
        class: Some("quick-start".to_owned()),
        set: vec!["spec.infrastructure.templateReff=x".to_owned()],
        ..Change::default()
    };
    let report = subject.plan_change(change).await;
    assert_eq!(report.verdict(), Verdict::Problems);
    assert!(
        report.refused[0].message.contains("templateReff"),
        "{:?}",
        report.refused
    );

    // Another class, with another template for the Machines of the control plane.
    let mut class = stored(subject.env(), "ClusterClass", "quick-start").await;
    let machines = &mut class["spec"]["controlPlane"]["machineInfrastructure"]["templateRef"]["name"];
    let mut template = stored(subject.env(), "DevMachineTemplate", machines.as_str().unwrap()).await;
    *machines = "larger".into();
    for object in [&mut template, &mut class] {
        let (name, spec) = (
            if object["kind"] == "ClusterClass" {
                "next"
            } else {
                "larger"
            },
            object["spec"].take(),
        );
        *object = json!({
            "apiVersion": object["apiVersion"], "kind": object["kind"],
            "metadata": {"name": name, "namespace": object["metadata"]["namespace"]}, "spec": spec,
        });
    }
    template["spec"]["template"]["spec"]["backend"]["inMemory"]["vm"]["provisioning"]["startupJitter"] = "0.2".into();
    for object in [&template, &class] {
        subject.env().apply(object).await;
    }
    subject.settled().await;
    let change = Change {
        rebase: vec![format!("{NAME}=next")],
        ..Change::default()
    };
    let report = subject
        .plan_and_see(change, async |env| {
            let rebase = json!({"spec": {"topology": {"classRef": {"name": "next"}}}});
            env.merge("Cluster", NAME, &rebase).await;
        })
        .await;
    assert_eq!(
        (report.summary.rotated, report.summary.machines_replaced),
        (1, 1),
        "{}",
        text::text(&report)
    );
    subject.stop().await;
}
