//! The decisions of the ClusterResourceSet controller, without a server.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use windlass_api::addons::{
    ClusterResourceSet, ClusterResourceSetBinding, ResourceRef, STRATEGY_APPLY_ONCE, STRATEGY_RECONCILE,
};
use windlass_cluster_cache::Workload;
use windlass_controller_runtime::{Decision, Seen};

use super::ContentsOf;
use super::contents::{Contents, of_config_map, of_secret};
use super::observed::{Observed, Read, Resource, Trace};
use super::plan::{Action, Bind, Item, Plan, plan, recorded, unrecorded};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn config_map(values: &[(&str, &str)]) -> ConfigMap {
    let data = values
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    ConfigMap {
        data: Some(data.collect()),
        ..ConfigMap::default()
    }
}

fn kinds(contents: &Contents) -> Vec<String> {
    let objects = contents.objects.as_ref().unwrap();
    objects
        .iter()
        .map(|one| one["kind"].as_str().unwrap().to_owned())
        .collect()
}

fn object(kind: &str) -> String {
    format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: a}}\n")
}

fn resource(name: &str) -> ResourceRef {
    ResourceRef {
        kind: "ConfigMap".to_owned(),
        name: name.to_owned(),
    }
}

fn contents(text: &str) -> Contents {
    of_config_map(&config_map(&[("a", text)]))
}

/// A set with one resource, which was read, and these Clusters.
fn seen(strategy: &str, read: Option<Read>, clusters: &[(&str, Workload<()>)]) -> Observed {
    let mut set = ClusterResourceSet::default();
    set.metadata.namespace = Some("default".to_owned());
    set.metadata.name = Some("set".to_owned());
    set.metadata.uid = Some("uid-1".to_owned());
    set.spec.strategy = Some(strategy.to_owned());
    set.spec.resources = vec![resource("one")];
    let owners = vec![windlass_controller_runtime::owner::owner_ref(&set)];
    let metadata = ObjectMeta {
        name: Some("one".to_owned()),
        owner_references: Some(owners),
        ..ObjectMeta::default()
    };
    let known = clusters.iter().map(|(name, known)| ((*name).to_owned(), known.clone()));
    Observed {
        set: Arc::new(set),
        chosen: Ok(known.collect()),
        bindings: BTreeMap::new(),
        unreadable: BTreeMap::new(),
        resources: vec![Resource {
            reference: resource("one"),
            found: Some(Arc::new(Trace::of(&metadata))),
            read,
        }],
    }
}

fn found(text: &str) -> Read {
    Read::Contents(Seen::Found(contents(text)))
}

/// The record of a Cluster that has got what a set has.
fn record(seen: &Observed, cluster: &str, text: &str, applied: bool) -> Arc<ClusterResourceSetBinding> {
    let bind = Bind {
        cluster: windlass_meta::ObjectKey::new("default", cluster),
        record: None,
        items: vec![Item {
            resource: resource("one"),
            contents: Some(contents(text)),
        }],
    };
    Arc::new(recorded(&seen.set, &bind, &[applied], at(1)).unwrap())
}

fn planned(seen: &Observed) -> Plan {
    match plan(seen) {
        Decision::Plan(plan) => plan,
        Decision::Ask(asked) => panic!("asks for {asked:?}"),
    }
}

fn binds(plan: &Plan) -> Vec<(&str, usize)> {
    let binds = plan.actions.iter().filter_map(|action| match action {
        Action::Bind(bind) => Some((bind.cluster.name.as_str(), bind.items.len())),
        _ => None,
    });
    binds.collect()
}

#[test]
fn objects_that_others_need_come_first_within_a_value() {
    let text = ["Service", "ConfigMap", "Namespace", "Deployment"]
        .map(object)
        .join("---\n");
    let map = config_map(&[("b", &object("Namespace")), ("a", &text)]);
    assert_eq!(
        kinds(&of_config_map(&map)),
        ["Namespace", "ConfigMap", "Service", "Deployment", "Namespace"]
    );
}

/// The digest of Cluster API, so that nothing is applied again after a change of the manager: SHA-256 of all values, by their keys.
#[test]
fn the_digest_is_that_of_cluster_api() {
    let map = config_map(&[("b", "x"), ("a", "y")]);
    // printf yx | sha256sum
    let expected = "sha256:ec6aded56b9556c0fac421d34acaaeeb25a67cdc29b626e1c19cf9d2b70be057";
    let hash = of_config_map(&map).hash;
    assert_eq!(hash, expected);
    assert_ne!(hash, of_config_map(&config_map(&[("a", "x"), ("b", "y")])).hash);
    let secret = Secret {
        data: Some(BTreeMap::from([("a".to_owned(), ByteString(b"yx".to_vec()))])),
        ..Secret::default()
    };
    assert_eq!(of_secret(&secret).hash, hash);
}

#[test]
fn an_error_does_not_show_the_text_of_a_secret() {
    let text = "kind: A\nmetadata: [word, {\n";
    let why = of_config_map(&config_map(&[("k", text)])).objects.unwrap_err();
    assert!(why.starts_with("data[k]: document 1"), "{why}");
    let secret = Secret {
        data: Some(BTreeMap::from([(
            "k".to_owned(),
            ByteString(b"a: b\n---\nword: *word\n---\n{}".to_vec()),
        )])),
        ..Secret::default()
    };
    let why = of_secret(&secret).objects.unwrap_err();
    assert!(why.starts_with("data[k]: document") && !why.contains("word"), "{why}");
    let none = of_config_map(&ConfigMap::default());
    assert_eq!(none.objects.unwrap_err(), "it has no data");
    assert_eq!(kinds(&contents("# a comment\n---\n")), [""; 0]);
}

#[test]
fn contents_are_read_only_when_a_cluster_needs_them() {
    let up = || [("a", Workload::Up(()))];
    let once = seen(STRATEGY_APPLY_ONCE, None, &up());
    assert_eq!(plan(&once), Decision::Ask(ContentsOf(vec![0])));
    let mut has = once.clone();
    has.bindings.insert("a".to_owned(), record(&once, "a", "", true));
    assert_eq!(planned(&has), Plan::default());
    let mut failed = once.clone();
    failed.bindings.insert("a".to_owned(), record(&once, "a", "", false));
    assert_eq!(plan(&failed), Decision::Ask(ContentsOf(vec![0])));
    // Only the contents tell whether they have changed.
    let mut reconciled = seen(STRATEGY_RECONCILE, None, &up());
    reconciled.bindings.insert("a".to_owned(), record(&once, "a", "", true));
    assert_eq!(plan(&reconciled), Decision::Ask(ContentsOf(vec![0])));
    reconciled.resources[0].read = Some(found(""));
    assert_eq!(planned(&reconciled), Plan::default());
    reconciled.resources[0].read = Some(found(&object("Pod")));
    assert_eq!(binds(&planned(&reconciled)), [("a", 1)]);
    assert_eq!(planned(&seen(STRATEGY_RECONCILE, None, &[])), Plan::default());
}

/// A Cluster that does not answer has a record, and gets its resources when it answers.
#[test]
fn a_cluster_that_does_not_answer_keeps_no_other_waiting() {
    let down = Workload::NotTried("no attempt yet".to_owned());
    let both = seen(
        STRATEGY_APPLY_ONCE,
        Some(found(&object("Pod"))),
        &[("a", down.clone()), ("b", Workload::Up(()))],
    );
    let plan = planned(&both);
    assert_eq!(binds(&plan), [("a", 0), ("b", 1)]);
    assert_eq!(plan.problems.len(), 1);
    assert_eq!(
        plan.problems[0].message,
        "Cluster a cannot be reached; its condition RemoteConnectionProbe has the reason"
    );
    // What it has already does not need it.
    let mut has = seen(STRATEGY_APPLY_ONCE, None, &[("a", down)]);
    has.bindings.insert("a".to_owned(), record(&has, "a", "", true));
    assert_eq!(planned(&has), Plan::default());
}

/// A resource that is gone after it was applied everywhere is no problem; one that cannot be read is tried again.
#[test]
fn what_is_not_there_and_what_cannot_be_read_differ() {
    let up = [("a", Workload::Up(()))];
    let mut gone = seen(STRATEGY_RECONCILE, None, &up);
    gone.resources[0].found = None;
    assert_eq!(planned(&gone).problems.len(), 1);
    assert!(planned(&gone).unread.is_none());
    gone.bindings.insert("a".to_owned(), record(&gone, "a", "", true));
    assert_eq!(planned(&gone), Plan::default());
    let failed = Some(Read::Contents(Seen::Failed("no answer".to_owned())));
    let plan = planned(&seen(STRATEGY_APPLY_ONCE, failed, &up));
    assert_eq!(plan.unread.as_deref(), Some("ConfigMap one cannot be read: no answer"));
}

/// What a Cluster has is unknown without its record: nothing is applied, and its read is tried again.
#[test]
fn a_record_that_cannot_be_read_is_not_missing() {
    let mut seen = seen(
        STRATEGY_APPLY_ONCE,
        Some(found(&object("Pod"))),
        &[("a", Workload::Up(()))],
    );
    seen.unreadable.insert("a".to_owned(), "no answer".to_owned());
    let plan = planned(&seen);
    assert_eq!(binds(&plan), []);
    let why = "ClusterResourceSetBinding a cannot be read: no answer";
    assert_eq!(
        (plan.unread.as_deref(), plan.problems[0].message.as_str()),
        (Some(why), why)
    );
    // A set that is deleted stays until it is out of all records.
    let mut set = (*seen.set).clone();
    set.metadata.deletion_timestamp = Some(Time(at(5)));
    seen.set = Arc::new(set);
    assert!(planned(&seen).actions.is_empty());
    seen.unreadable.clear();
    assert_eq!(planned(&seen).actions, [Action::RemoveFinalizer]);
}

/// A Secret of another type is not watched.
#[test]
fn a_missing_secret_is_looked_for_by_time() {
    let mut seen = seen(
        STRATEGY_APPLY_ONCE,
        Some(Read::Contents(Seen::NotFound)),
        &[("a", Workload::Up(()))],
    );
    assert!(windlass_controller_runtime::Plan::requeue(&planned(&seen)).is_none());
    seen.resources[0].reference.kind = "Secret".to_owned();
    assert!(windlass_controller_runtime::Plan::requeue(&planned(&seen)).is_some());
}

/// The schema of records allows 100 resources: those that the set has no more make room.
#[test]
fn a_record_does_not_grow_without_end() {
    let seen = seen(STRATEGY_APPLY_ONCE, None, &[]);
    let mut full = (*record(&seen, "a", "x", true)).clone();
    let one = full.spec.bindings[0].resources[0].clone();
    for number in 1..100 {
        let mut other = one.clone();
        other.name = format!("gone-{number}");
        full.spec.bindings[0].resources.push(other);
    }
    let bind = Bind {
        cluster: windlass_meta::ObjectKey::new("default", "a"),
        record: Some(Arc::new(full)),
        items: vec![Item {
            resource: resource("two"),
            contents: Some(contents("y")),
        }],
    };
    let record = recorded(&seen.set, &bind, &[true], at(2)).unwrap();
    let names: Vec<&str> = record.spec.bindings[0]
        .resources
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["one", "two"]);
}

#[test]
fn a_record_changes_only_with_what_it_says() {
    let seen = seen(STRATEGY_APPLY_ONCE, None, &[]);
    let again = |record: &Arc<ClusterResourceSetBinding>, text: &str, applied: bool| {
        let bind = Bind {
            cluster: windlass_meta::ObjectKey::new("default", "a"),
            record: Some(Arc::clone(record)),
            items: vec![Item {
                resource: resource("one"),
                contents: Some(contents(text)),
            }],
        };
        recorded(&seen.set, &bind, &[applied], at(9))
    };
    let failed = record(&seen, "a", "x", false);
    assert_eq!(again(&failed, "x", false), None);
    let time = |record: &ClusterResourceSetBinding| record.spec.bindings[0].resources[0].last_applied_time.clone();
    assert_eq!(time(&again(&failed, "y", false).unwrap()), Some(Time(at(9))));
    assert_eq!(time(&again(&failed, "x", true).unwrap()), Some(Time(at(9))));
    // A set that came back has another uid.
    let mut other = (*failed).clone();
    other.metadata.owner_references.as_mut().unwrap()[0].uid = "uid-0".to_owned();
    let renewed = again(&Arc::new(other), "x", false).unwrap();
    assert_eq!(renewed.metadata.owner_references.unwrap()[0].uid, "uid-1");
}

#[test]
fn the_last_set_takes_the_record() {
    let seen = seen(STRATEGY_APPLY_ONCE, None, &[]);
    let alone = record(&seen, "a", "x", true);
    assert_eq!(unrecorded(&seen.set, &alone), None);
    let mut shared = (*alone).clone();
    let mut second = shared.spec.bindings[0].clone();
    second.cluster_resource_set_name = "other".to_owned();
    shared.spec.bindings.push(second);
    let rest = unrecorded(&seen.set, &shared).unwrap();
    assert_eq!(rest.spec.bindings.len(), 1);
    assert!(rest.metadata.owner_references.unwrap().is_empty());
}
