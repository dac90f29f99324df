use std::collections::BTreeSet;

use windlass_api_operator::{management, operator};
use windlass_conditions::get;
use windlass_controller_runtime::ObjectKey;

use super::*;
use crate::kept::State;
use crate::peers::Peer;
use crate::provider::facts::InUse;
use crate::provider::plan::tests::{decided, facts, infra, moment, now, release, with};
use crate::provider::plan::{self, contract};

/// The status that is written when nothing is done.
fn told(facts: &Facts) -> Value {
    let plan = decided(facts, plan::intent(facts, &moment()));
    let done = Done {
        kept: facts.kept.as_deref().cloned().unwrap_or_default(),
        running: facts.running.clone(),
        ..Done::default()
    };
    status(facts, &plan, &done, now()).unwrap()
}

fn of<'v>(status: &'v Value, type_: &str) -> &'v Value {
    let mut all = status["conditions"].as_array().unwrap().iter();
    all.find(|condition| condition["type"] == type_).unwrap_or(&Value::Null)
}

fn says(status: &Value, type_: &str) -> (String, String) {
    let text = |field: &str| of(status, type_)[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

fn is(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

// OP-062, OP-145
#[test]
fn whatever_a_status_says_it_says_of_one_generation() {
    // What was written of the generation before: all is well.
    let mut before = with(
        infra(&json!({"version": "v1.0.0"})),
        Some(release("v1.0.0", "v1beta2")),
        None,
    );
    before.generation = 6;
    let written = told(&before);
    assert_eq!(written["observedGeneration"], 6);
    assert_eq!(says(&written, "ProviderInstalled"), is("True", "ProviderInstalled"));

    // Then the declaration asks for a version that cannot be had.
    let mut after = with(
        infra(&json!({"version": "v0.1.0"})),
        Some(release("v1.0.0", "v1beta2")),
        None,
    );
    after.generation = 7;
    after.conditions = serde_json::from_value(written["conditions"].clone()).unwrap();
    assert!(get(&after.conditions, "PreflightCheckPassed").is_some_and(|c| c.status == "True"));
    let written = told(&after);
    assert_eq!(written["observedGeneration"], 7);
    for condition in written["conditions"].as_array().unwrap() {
        assert_eq!(condition["observedGeneration"], 7, "{condition}");
    }
    let reason = "UnsupportedProviderDowngradeReason";
    assert_eq!(says(&written, "PreflightCheckPassed"), is("False", reason));
    assert_eq!(says(&written, "ProviderUpgraded"), is("False", reason));
    // What runs is the version before, and is called so.
    assert_eq!(
        of(&written, "ProviderInstalled")["message"],
        "version v1.0.0 is installed"
    );
}

#[test]
fn a_status_keeps_what_is_installed_while_a_release_takes_its_place() {
    let next = Release {
        state: State::Next,
        ..release("v1.0.0", "v1beta2")
    };
    let mut facts = with(infra(&json!({"version": "v1.0.0"})), None, Some(next));
    let mut check = |contract: Option<&str>, version: Option<&str>| {
        facts.me.contract = contract.map(str::to_owned);
        facts.version = version.map(str::to_owned);
        let written = told(&facts);
        assert_eq!(written["contract"].as_str(), contract);
        assert_eq!(written["installedVersion"].as_str(), version);
        assert_eq!(written.get("contract").is_some(), contract.is_some());
    };
    check(Some("v1beta2"), Some("v1.0.0"));
    // It is the first one.
    check(None, None);
}

// OP-207
#[test]
fn a_status_says_that_changed_settings_wait_while_debugging() {
    let mut facts = with(
        infra(&json!({"version": "v1.0.0"})),
        Some(release("v1.0.0", "v1beta2")),
        None,
    );
    facts.locked = true;
    let written = told(&facts);
    let message = of(&written, "ProviderInstalled")["message"].as_str().unwrap();
    assert!(message.contains("spec.manager.debug is true"), "{message}");
}

// OP-102
#[test]
fn ready_is_true_only_while_what_runs_is_available() {
    let check = |paused: bool, available: Option<&str>, expect: (String, String)| {
        let spec = json!({"version": "v1.0.0", "paused": paused});
        let current = Release {
            paused,
            ..release("v1.0.0", "v1beta2")
        };
        let mut facts = with(
            facts::<management::InfrastructureProvider>("aws", &spec),
            Some(current),
            None,
        );
        let running = Running {
            observed: true,
            available: available.map(|status| (status.to_owned(), "Why".to_owned(), "because".to_owned())),
            ..Running::default()
        };
        facts.running = vec![("manager".to_owned(), Some(running))];
        assert_eq!(says(&told(&facts), "Ready"), expect);
    };
    check(true, Some("True"), is("False", "Paused"));
    check(false, None, is("False", "NoDeploymentAvailableConditionReason"));
    check(false, Some("False"), is("False", "Why"));
    check(false, Some("True"), is("True", "DeploymentAvailable"));
}

// OP-137: the rest is in the tests of fetching and rendering.
#[test]
fn each_problem_has_a_reason_of_its_own() {
    let mut reasons = BTreeSet::new();
    let mut has = |facts: &Facts, type_: &str, expect: &str| {
        let written = told(facts);
        assert_eq!(of(&written, type_)["reason"], expect, "{written:#}");
        assert_ne!(of(&written, type_)["message"], "", "{expect}");
        assert!(reasons.insert(expect.to_owned()), "{expect}");
    };
    let installed = |facts: Facts| with(facts, Some(release("v1.0.0", "v1beta2")), None);

    let mut alone = infra(&json!({}));
    alone.peers.clear();
    has(&alone, "PreflightCheckPassed", "WaitingForCoreProviderReady");
    let mut twin = infra(&json!({}));
    twin.holder = None;
    twin.peers.push(Peer {
        uid: "twin".to_owned(),
        key: ObjectKey::new("a", "aws"),
        ..twin.me.clone()
    });
    has(&twin, "PreflightCheckPassed", "MoreThanOneExists");
    has(
        &infra(&json!({"version": "1.2"})),
        "PreflightCheckPassed",
        "IncorrectVersionFormat",
    );
    has(
        &infra(&json!({"fetchConfig": {}})),
        "PreflightCheckPassed",
        "FetchConfigValidationError",
    );
    has(
        &infra(&json!({"manager": {"syncPeriod": "1"}})),
        "PreflightCheckPassed",
        "SpecValidationError",
    );
    let paused = facts::<management::InfrastructureProvider>("aws", &json!({"paused": true}));
    has(&paused, "ProviderInstalled", "Paused");
    let mut failed = installed(infra(&json!({"version": "v1.1.0"})));
    let next = Release {
        state: State::Failed,
        ..release("v1.1.0", "v1beta2")
    };
    failed.kept = Ok(std::sync::Arc::new(Kept {
        current: failed.current().cloned(),
        next: Some(next),
        previous: None,
        ..Kept::default()
    }));
    has(&failed, "ProviderUpgraded", "ComponentsUpgradeError");
    has(
        &installed(infra(&json!({"version": "v0.9.0"}))),
        "PreflightCheckPassed",
        "UnsupportedProviderDowngradeReason",
    );

    let mut behind = facts::<management::InfrastructureProvider>("aws", &json!({"version": "v1.0.0"}));
    let current = Release {
        paused: true,
        ..release("v1.0.0", "v1beta1")
    };
    behind = with(behind, Some(current), None);
    has(&behind, "Ready", "UnpauseBlocked");

    let mut used = installed(infra(&json!({})));
    used.me.deleting = true;
    used.in_use = Ok(vec![InUse {
        api_version: "infrastructure.cluster.x-k8s.io/v1beta2".to_owned(),
        kind: "AWSCluster".to_owned(),
        example: ObjectKey::new("a", "b"),
        more: false,
    }]);
    has(&used, "Deleting", "ProviderInUse");
    let mut core = installed(facts::<operator::CoreProvider>("cluster-api", &json!({})));
    core.peers = vec![Peer::of(&provider())];
    core.me.deleting = true;
    has(&core, "Deleting", "OtherProvidersExist");

    // What is only known once the release was fetched.
    let mut blocked = |facts: &Facts, contract: &str, expect: &str| {
        let found = contract::check(facts, "v1.0.0", contract).unwrap_err();
        assert_eq!(found.reason, expect);
        assert!(reasons.insert(expect.to_owned()), "{expect}");
    };
    let old = facts::<management::InfrastructureProvider>("aws", &json!({}));
    blocked(&old, "v1beta1", "ContractMismatch");
    blocked(&old, "v1alpha4", "CAPIVersionIncompatibility");
    let behind = with(old, Some(release("v1.0.0", "v1beta1")), None);
    blocked(&behind, "v1beta2", "NotAllProvidersPaused");
}

fn provider() -> operator::InfrastructureProvider {
    serde_json::from_value(json!({
        "apiVersion": "operator.cluster.x-k8s.io/v1alpha2", "kind": "InfrastructureProvider",
        "metadata": {"name": "aws", "namespace": "n", "uid": "other"}, "spec": {},
    }))
    .unwrap()
}
