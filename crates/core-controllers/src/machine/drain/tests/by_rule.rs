//! Cases for MachineDrainRules.

use std::sync::Arc;

use windlass_api::core::MachineDrainRule;
use windlass_contract::Labels;

use super::*;

fn rule(name: &str, spec: Value) -> Arc<MachineDrainRule> {
    Arc::new(serde_json::from_value(json!({"metadata": {"name": name, "namespace": "n"}, "spec": spec})).unwrap())
}

fn labels(all: Value) -> Labels {
    serde_json::from_value(all).unwrap()
}

/// Those of the rules that are about a Machine with `role=worker` of a Cluster with `stage=test`.
fn about(rules: &[Arc<MachineDrainRule>]) -> Result<Rules, String> {
    let (machine, cluster) = (labels(json!({"role": "worker"})), labels(json!({"stage": "test"})));
    Rules::about(rules, Some(&machine), Some(&cluster))
}

fn namespaces() -> Seen<Namespaces> {
    let of = |name: &str, team: &str| (name.to_owned(), labels(json!({ "team": team })));
    Seen::Found([of("a", "one"), of("b", "two")].into())
}

/// A running Pod in namespace `a`.
fn named(name: &str, all: Value) -> Value {
    let mut pod = pod(json!({ "labels": all }), "Running");
    pod["metadata"]["name"] = json!(name);
    pod
}

fn drained(rules: &[Arc<MachineDrainRule>], pods: Value) -> Result<Draining, String> {
    let beside = Beside {
        daemon_sets: &sets(&["d"]),
        rules: &about(rules)?,
        namespaces: &namespaces(),
        unreachable: false,
    };
    let pods: Vec<Pod> = serde_json::from_value(pods).unwrap();
    classify(&pods, &beside, &Moment::at(NOW.parse().unwrap()))
}

fn lines(rules: &[Arc<MachineDrainRule>], pods: Value) -> Vec<String> {
    drained(rules, pods).unwrap().lines(&Evictions::default())
}

fn skip(machines: Value) -> Value {
    let mut spec = json!({"drain": {"behavior": "Skip"}});
    if !machines.is_null() {
        spec["machines"] = machines;
    }
    spec
}

#[test]
fn a_rule_is_about_machines_and_clusters() {
    let check = |machines: Value, is_about: bool| {
        let done = drained(&[rule("r", skip(machines.clone()))], json!([named("p", json!({}))])).unwrap();
        assert_eq!(done.is_done(), is_about, "{machines}");
    };
    let selector = |key: &str, value: &str| json!({"matchLabels": {key: value}});
    check(Value::Null, true);
    check(json!([{"selector": selector("role", "worker")}]), true);
    check(json!([{"selector": selector("role", "other")}]), false);
    check(json!([{"clusterSelector": selector("stage", "test")}]), true);
    check(json!([{"clusterSelector": selector("stage", "prod")}]), false);
    // Both selectors of an entry, one of the entries; an empty selector is about all.
    let both = |role: &str, stage: &str| json!({"selector": selector("role", role), "clusterSelector": selector("stage", stage)});
    check(json!([both("worker", "prod")]), false);
    check(json!([both("other", "test")]), false);
    check(json!([both("worker", "prod"), both("worker", "test")]), true);
    check(json!([{"selector": {}, "clusterSelector": {}}]), true);
    let expression = json!({"matchExpressions": [{"key": "gpu", "operator": "DoesNotExist"}]});
    check(json!([{"selector": expression}]), true);
}

#[test]
fn a_rule_is_about_pods_and_namespaces() {
    let check = |pods: Value, is_about: bool| {
        let mut spec = skip(Value::Null);
        spec["pods"] = pods.clone();
        let pod = named("p", json!({"app": "x"}));
        let done = drained(&[rule("r", spec)], json!([pod])).unwrap();
        assert_eq!(done.is_done(), is_about, "{pods}");
    };
    let selector = |key: &str, value: &str| json!({"matchLabels": {key: value}});
    check(json!([{"selector": selector("app", "x")}]), true);
    check(json!([{"selector": selector("app", "y")}]), false);
    check(json!([{"namespaceSelector": selector("team", "one")}]), true);
    check(json!([{"namespaceSelector": selector("team", "two")}]), false);
    let both =
        |app: &str, team: &str| json!({"selector": selector("app", app), "namespaceSelector": selector("team", team)});
    check(json!([both("x", "two"), both("y", "one")]), false);
    check(json!([both("y", "one"), both("x", "one")]), true);
    check(json!([{"selector": {}}]), true);
}

#[test]
fn the_first_rule_by_name_decides_after_daemon_sets_and_labels() {
    let drain = |order: i32| json!({"drain": {"behavior": "Drain", "order": order}});
    let rules = [
        rule("b", json!({"drain": {"behavior": "Skip"}})),
        rule(
            "a",
            json!({"drain": {"behavior": "WaitCompleted"}, "pods": [{"selector": {"matchLabels": {"job": "yes"}}}]}),
        ),
        rule("c", drain(1)),
    ];
    assert_eq!(
        lines(
            &rules,
            json!([named("p", json!({"job": "yes"})), named("q", json!({}))])
        ),
        [COMPLETING]
    );
    // The label of a Pod comes before the rules, unless its value is unknown.
    let skipped = named("p", json!({"job": "yes", "cluster.x-k8s.io/drain": "skip"}));
    assert_eq!(lines(&rules, json!([skipped])), [""; 0]);
    let unknown = named("p", json!({"job": "yes", "cluster.x-k8s.io/drain": "never"}));
    assert_eq!(lines(&rules, json!([unknown])), [COMPLETING]);
    let daemon = pod(json!({"ownerReferences": of_daemon_set("d")}), "Running");
    assert_eq!(lines(&[rule("c", drain(1))], json!([daemon])), [""; 0]);
    // What has completed is not waited for.
    let completed = pod(json!({"labels": {"job": "yes"}}), "Succeeded");
    assert_eq!(lines(&rules, json!([completed])), [""; 0]);
}

#[test]
fn those_with_the_lowest_order_go_first() {
    let order = |app: &str, order: Value| {
        let mut drain = json!({"behavior": "Drain"});
        if !order.is_null() {
            drain["order"] = order;
        }
        rule(
            app,
            json!({"drain": drain, "pods": [{"selector": {"matchLabels": {"app": app}}}]}),
        )
    };
    let rules = [
        order("early", json!(-5)),
        order("late", json!(7)),
        order("zero", Value::Null),
        rule(
            "wait",
            json!({"drain": {"behavior": "WaitCompleted"}, "pods": [{"selector": {"matchLabels": {"app": "wait"}}}]}),
        ),
    ];
    let of = |app: &str| named(app, json!({ "app": app }));
    let going = |name: &str| format!("* Pod a/{name}: deletionTimestamp set, but still not removed from the Node");
    let later = "After above Pods have been removed from the Node,";
    let all = json!([of("early"), of("late"), of("zero"), of("wait"), of("none")]);
    assert_eq!(
        lines(&rules, all.clone()),
        [
            going("early"),
            format!("{later} the following Pods will be evicted: a/late, a/none, a/zero"),
            format!("{later} waiting for the following Pods to complete without eviction: a/wait"),
        ]
    );
    // One that is asked to go holds those after it back, and is waited for whenever its turn would be.
    let mut ending = all.clone();
    for at in [0, 1] {
        ending[at]["metadata"]["deletionTimestamp"] = json!(NOW);
    }
    let draining = drained(&rules, ending).unwrap();
    assert!(draining.evict.is_empty() && draining.evict_later.len() == 2);
    assert_eq!(draining.terminating.len(), 2);
    // Without it, those that are waited for have the turn of Pods without a rule.
    let rest = json!([of("late"), of("zero"), of("wait"), of("none")]);
    let draining = drained(&rules, rest).unwrap();
    let names = |pods: &BTreeSet<ObjectKey>| pods.iter().map(|pod| pod.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&draining.evict), ["none", "zero"]);
    assert_eq!(
        (names(&draining.completing), names(&draining.evict_later)),
        (vec!["wait".into()], vec!["late".into()])
    );
    assert!(!drained(&rules, json!([of("late")])).unwrap().evict.is_empty());
}

#[test]
fn what_cannot_be_decided_drains_nothing() {
    let near = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    // Whatever Machines the rule is about.
    let other = json!([{"selector": {"matchLabels": {"role": "other"}}}]);
    let mut spec = skip(other);
    spec["pods"] = json!([{"selector": {}}, {"namespaceSelector": near}]);
    let error = drained(&[rule("bad", spec)], json!([named("p", json!({}))])).unwrap_err();
    let expect = "failed to get matching MachineDrainRules: invalid selectors in MachineDrainRule bad: \
                  spec.pods[1].namespaceSelector.matchExpressions[0].operator: \"Near\": expected In, NotIn, Exists or DoesNotExist";
    assert_eq!(error, expect);
    let error = drained(
        &[rule("odd", json!({"drain": {"behavior": "Kill"}}))],
        json!([named("p", json!({}))]),
    );
    assert_eq!(
        error.unwrap_err(),
        "MachineDrainRule \"odd\" has unknown spec.drain.behavior: \"Kill\""
    );

    let mut spec = skip(Value::Null);
    spec["pods"] =
        json!([{"selector": {"matchLabels": {"app": "x"}}, "namespaceSelector": {"matchLabels": {"team": "one"}}}]);
    let rules = about(&[rule("r", spec)]).unwrap();
    assert!(rules.ask_for_namespaces() && !about(&[rule("s", skip(Value::Null))]).unwrap().ask_for_namespaces());
    let behavior = |app: &str, namespaces: &Seen<Namespaces>| {
        let pod: Pod = serde_json::from_value(named("p", json!({ "app": app }))).unwrap();
        rules.behavior(&pod, namespaces)
    };
    let failed = Seen::Failed("timeout".to_owned());
    assert_eq!(
        behavior("x", &failed).unwrap_err(),
        "failed to list Namespaces: timeout"
    );
    let gone = Seen::Found(Namespaces::new());
    assert_eq!(behavior("x", &gone).unwrap_err(), "Namespace a of a Pod does not exist");
    // Where they do not decide, they are not needed.
    assert_eq!(behavior("y", &failed), Ok(Behavior::Drain(0)));
}
