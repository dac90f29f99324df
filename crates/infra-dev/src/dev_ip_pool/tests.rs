//! Cases for the plan of pools of addresses.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::observe::{Claim, Observed};
use super::plan::{Action, Plan, plan};

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn reference() -> Value {
    json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevIPPool", "name": "pool"})
}

fn claim(name: &str) -> Claim {
    let object = json!({
        "metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}"), "finalizers": ["ipam.cluster.x-k8s.io/release-address"]},
        "spec": {"clusterName": "c", "poolRef": reference()},
    });
    Claim {
        object: Arc::new(from(object)),
        held: None,
    }
}

fn address(name: &str, address: &str) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-a-{name}"), "finalizers": ["ipam.cluster.x-k8s.io/protect-address"],
            "ownerReferences": [
                {"apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddressClaim", "name": name, "uid": format!("uid-{name}"), "controller": true},
                {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "DevIPPool", "name": "pool", "uid": "uid-pool"},
            ],
        },
        "spec": {"address": address, "prefix": 24, "claimRef": {"name": name}, "poolRef": reference()},
    })
}

fn seen(claims: Vec<Claim>, addresses: Vec<Value>) -> Observed {
    Observed {
        pool: Arc::new(from(json!({
            "metadata": {"name": "pool", "namespace": "ns", "uid": "uid-pool"},
            "spec": {"first": "10.0.0.1", "last": "10.0.0.3", "prefix": 24, "gateway": "10.0.0.254"},
        }))),
        claims,
        addresses: addresses.into_iter().map(|one| Arc::new(from(one))).collect(),
    }
}

fn planned(seen: &Observed) -> Plan {
    plan(seen, Timestamp::UNIX_EPOCH)
}

/// The addresses that a plan gives, by claim.
fn given(plan: &Plan) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let given = plan.actions.iter().filter_map(|action| match action {
        Action::Apply(one) => Some((text(&one["metadata"]["name"]), text(&one["spec"]["address"]))),
        _ => None,
    });
    given.collect()
}

/// The reasons that a plan reports.
fn reasons(plan: &Plan) -> Vec<String> {
    let reports = plan.actions.iter().filter_map(|action| match action {
        Action::Report(_, status) => Some(status["conditions"][0]["reason"].as_str().unwrap().to_owned()),
        _ => None,
    });
    reports.collect()
}

#[test]
fn each_claim_gets_an_address_of_its_own_until_there_is_none() {
    let all = ["a", "b", "c", "d"].map(claim).to_vec();
    let plan = planned(&seen(all, vec![address("b", "10.0.0.1")]));
    let pairs = [("a", "10.0.0.2"), ("c", "10.0.0.3")].map(|(name, one)| (name.to_owned(), one.to_owned()));
    assert_eq!(given(&plan), pairs);
    assert_eq!(reasons(&plan), ["Ready", "Ready", "Ready", "PoolExhausted"]);
    assert_eq!((plan.used, plan.free), (3, 0));
}

#[test]
fn an_address_is_what_the_contract_says() {
    let mut fresh = claim("a");
    Arc::make_mut(&mut fresh.object).metadata.finalizers = None;
    let plan = planned(&seen(vec![fresh], Vec::new()));
    let [Action::Hold(_), Action::Apply(one), Action::Report(_, status)] = plan.actions.as_slice() else {
        panic!("{plan:?}")
    };
    assert_eq!(status["addressRef"], json!({"name": "a"}));
    assert_eq!(
        one["metadata"]["finalizers"],
        json!(["ipam.cluster.x-k8s.io/protect-address"])
    );
    let owners = one["metadata"]["ownerReferences"].as_array().unwrap();
    let facts = |owner: &Value| {
        (
            owner["kind"].clone(),
            owner["controller"].clone(),
            owner["blockOwnerDeletion"].clone(),
        )
    };
    assert_eq!(facts(&owners[0]), (json!("IPAddressClaim"), json!(true), json!(true)));
    assert_eq!(facts(&owners[1]), (json!("DevIPPool"), json!(false), json!(true)));
    assert_eq!(one["spec"]["gateway"], "10.0.0.254");
}

#[test]
fn what_is_held_stays_as_it_is() {
    let mut held = claim("a");
    held.held = Some("its Cluster is paused");
    assert_eq!(planned(&seen(vec![held.clone()], Vec::new())).actions, []);
    let time = from(json!("2026-03-01T09:59:00Z"));
    Arc::make_mut(&mut held.object).metadata.deletion_timestamp = Some(time);
    assert_eq!(planned(&seen(vec![held], vec![address("a", "10.0.0.1")])).actions, []);
}

#[test]
fn an_address_is_taken_until_it_is_gone() {
    let mut leaving = claim("a");
    let time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time = from(json!("2026-03-01T09:59:00Z"));
    Arc::make_mut(&mut leaving.object).metadata.deletion_timestamp = Some(time.clone());
    let mut one = address("a", "10.0.0.1");
    let plan = planned(&seen(vec![leaving.clone(), claim("b")], vec![one.clone()]));
    assert!(matches!(plan.actions[0], Action::DeleteAddress(_)));
    assert_eq!(given(&plan), [("b".to_owned(), "10.0.0.2".to_owned())]);
    one["metadata"]["deletionTimestamp"] = json!("2026-03-01T09:59:00Z");
    let plan = planned(&seen(vec![leaving.clone()], vec![one]));
    assert!(matches!(plan.actions[..], [Action::ReleaseAddress(_)]));
    let plan = planned(&seen(vec![leaving], Vec::new()));
    assert!(matches!(plan.actions[..], [Action::Release(_)]));
}

#[test]
fn a_pool_stays_until_its_addresses_are_given_back() {
    let mut leaving = seen(vec![claim("a"), claim("b")], vec![address("a", "10.0.0.1")]);
    let time = from(json!("2026-03-01T09:59:00Z"));
    Arc::make_mut(&mut leaving.pool).metadata.deletion_timestamp = Some(time);
    let plan = planned(&leaving);
    assert_eq!(
        (given(&plan), reasons(&plan)),
        (Vec::new(), vec!["Ready".to_owned(), "PoolNotReady".to_owned()])
    );
    assert!(!plan.actions.contains(&Action::RemoveFinalizer));
    leaving.addresses.clear();
    leaving.claims.remove(0);
    assert!(planned(&leaving).actions.contains(&Action::RemoveFinalizer));
}

#[test]
fn families_and_borders() {
    let with = |first: &str, last: &str| {
        let mut all = seen(vec![claim("a")], Vec::new());
        let spec = &mut Arc::make_mut(&mut all.pool).spec;
        (spec.first, spec.last) = (first.to_owned(), last.to_owned());
        let plan = planned(&all);
        (given(&plan).pop().map(|(_, one)| one), plan.free)
    };
    assert_eq!(with("fd00::ff", "fd00::100"), (Some("fd00::ff".to_owned()), 1));
    assert_eq!(
        with("255.255.255.255", "255.255.255.255"),
        (Some("255.255.255.255".to_owned()), 0)
    );
    assert_eq!(with("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff").1, i64::MAX - 1);
    // Stored before admission was there: no address, and no panic.
    assert_eq!(with("10.0.0.9", "10.0.0.1"), (None, 0));
    assert_eq!(with("x", "10.0.0.1"), (None, 0));
}

#[test]
fn an_address_without_its_claim_stays_until_it_is_deleted() {
    let mut restored = address("a", "10.0.0.1");
    let plan = planned(&seen(vec![claim("b")], vec![restored.clone()]));
    assert_eq!(given(&plan), [("b".to_owned(), "10.0.0.2".to_owned())]);
    let touches = |action: &Action| matches!(action, Action::DeleteAddress(_) | Action::ReleaseAddress(_));
    assert!(!plan.actions.iter().any(touches), "{plan:?}");
    restored["metadata"]["deletionTimestamp"] = json!("2026-03-01T09:59:00Z");
    let plan = planned(&seen(Vec::new(), vec![restored]));
    assert!(matches!(plan.actions[..], [Action::ReleaseAddress(_)]));
}
