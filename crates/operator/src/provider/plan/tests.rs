use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_api_operator::{ProviderObject, management, operator};
use windlass_controller_runtime::{ObjectKey, Timestamp};
use windlass_provider_repository::Files;

use super::*;
use crate::awaited::REMOTE;
use crate::kept::{Failure, Kept, Sealed};
use crate::peers::Peer;
use crate::provider::facts::{InUse, Installed, Other, Recipe, Unread};

const NOW: &str = "2026-06-01T00:00:00Z";

pub(crate) fn now() -> Timestamp {
    NOW.parse().unwrap()
}

pub(crate) fn moment() -> Moment {
    Moment::at(now())
}

/// The files of a version that follows v1beta2, with this hash of their content.
fn fetched(version: &str, content: &str) -> Fetched {
    Fetched {
        version: version.to_owned(),
        contract: "v1beta2".to_owned(),
        files: Files {
            components: String::new(),
            metadata: String::new(),
            from: "the shelf".to_owned(),
        },
        variables: BTreeMap::new(),
        recipe: Ok(Recipe {
            additional: None,
            content: content.to_owned(),
        }),
    }
}

fn ask_files(desired: &DesiredRelease, renew: bool) -> Decision<Plan, Question> {
    let desired = desired.clone();
    Decision::Ask(Question::Files { desired, renew })
}

fn rendered(release: Release) -> Rendered {
    Rendered {
        sealed: Sealed {
            release,
            packed: Vec::new(),
        },
        others: Vec::new(),
    }
}

/// The plan about some facts, which has to need no more of them.
pub(crate) fn decided(facts: &Facts, intent: Result<Intent, Blocked>) -> Plan {
    match decide(facts, intent, &moment()) {
        Decision::Plan(plan) => plan,
        Decision::Ask(question) => panic!("it asks for {question:?}"),
    }
}

fn object<P: ProviderObject>(name: &str, spec: &Value) -> P {
    P::from_json(&json!({
        "apiVersion": P::API_VERSION, "kind": P::KIND,
        "metadata": {"name": name, "namespace": "n", "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": spec,
    }))
    .unwrap()
}

pub(crate) fn release(version: &str, contract: &str) -> Release {
    serde_json::from_value(json!({"version": version, "contract": contract, "hash": "h", "made": NOW})).unwrap()
}

/// A provider of which this is declared, beside a core that follows v1beta2, with nothing installed.
pub(crate) fn facts<P: ProviderObject>(name: &str, spec: &Value) -> Facts {
    let object = object::<P>(name, spec);
    let mut core = Peer::of(&self::object::<operator::CoreProvider>("cluster-api", &json!({})));
    core.contract = Some("v1beta2".to_owned());
    Facts {
        declared: object.declared(),
        me: Peer::of(&object),
        generation: 1,
        conditions: Vec::new(),
        peers: vec![core],
        built_ins: Arc::default(),
        hash: "h".to_owned(),
        manager: Value::Null,
        version: None,
        locked: false,
        kept: Ok(Arc::new(Kept::default())),
        inventory: Ok(Vec::new()),
        watched: true,
        drifted: std::collections::BTreeSet::new(),
        doubted: false,
        repairs: Vec::new(),
        stirred: None,
        looked: None,
        // It has the claim, as every declaration without a rival has after its first plan.
        holder: Some(name.to_owned()),
        running: Vec::new(),
        in_use: Ok(Vec::new()),
        lost: Ok(Vec::new()),
        fetched: None,
        rendered: None,
        renewed: None,
    }
}

pub(crate) fn infra(spec: &Value) -> Facts {
    facts::<operator::InfrastructureProvider>("aws", spec)
}

pub(crate) fn with(mut facts: Facts, current: Option<Release>, next: Option<Release>) -> Facts {
    facts.kept = Ok(Arc::new(Kept {
        current,
        next,
        previous: None,
        ..Kept::default()
    }));
    facts
}

fn reason(facts: &Facts) -> &'static str {
    intent(facts, &moment()).map_or_else(|blocked| blocked.reason, |_| "")
}

fn desired(facts: &Facts) -> (Option<String>, Occasion) {
    match intent(facts, &moment()) {
        Ok(Intent::Render(desired)) => (desired.version, desired.occasion),
        other => panic!("{other:?}"),
    }
}

// OP-011, OP-058, OP-059, OP-139
#[test]
fn what_cannot_be_read_has_the_reason_of_its_field() {
    let check = |spec: Value, expect: &str| assert_eq!(reason(&infra(&spec)), expect, "{spec}");
    check(json!({"version": "1.2"}), "IncorrectVersionFormat");
    check(json!({"version": "latest"}), "IncorrectVersionFormat");
    check(json!({"fetchConfig": {}}), "FetchConfigValidationError");
    check(json!({"version": "v1.0.0-rc.1"}), "");
}

// OP-066, OP-129, OP-130, OP-131
#[test]
fn others_come_first() {
    let mut alone = infra(&json!({}));
    alone.peers.clear();
    assert_eq!(reason(&alone), "WaitingForCoreProviderReady");
    let mut twin = infra(&json!({}));
    twin.holder = None;
    twin.peers.push(Peer {
        uid: "twin".to_owned(),
        key: ObjectKey::new("a", "aws"),
        ..twin.me.clone()
    });
    let blocked = intent(&twin, &moment()).unwrap_err();
    assert_eq!(blocked.reason, "MoreThanOneExists");
    assert!(
        blocked.message.contains("InfrastructureProvider a/aws"),
        "{}",
        blocked.message
    );
    // The installed one stays, even if the other one was declared first.
    twin.me.contract = Some("v1beta2".to_owned());
    assert_eq!(reason(&twin), "");
    let mut second = facts::<management::CoreProvider>("other", &json!({}));
    second.holder = None;
    assert_eq!(reason(&second), "MoreThanOneExists");
}

// OP-012, OP-014, OP-079, OP-080, OP-107
#[test]
fn a_release_is_rendered_when_another_is_desired() {
    let check = |spec: Value, current: Option<(&str, &str)>, expect: (Option<&str>, Occasion)| {
        let current = current.map(|(version, hash)| Release {
            hash: hash.to_owned(),
            ..release(version, "v1beta2")
        });
        let found = desired(&with(infra(&spec), current, None));
        assert_eq!(found, (expect.0.map(str::to_owned), expect.1), "{spec}");
    };
    let upgrade = |from: &str| Occasion::Upgrade { from: from.to_owned() };
    check(json!({}), None, (None, Occasion::Install));
    check(
        json!({"version": "v1.1.0"}),
        Some(("v1.0.0", "h")),
        (Some("v1.1.0"), upgrade("v1.0.0")),
    );
    check(
        json!({"version": "v1.1.0"}),
        Some(("v1.1.2", "h")),
        (Some("v1.1.0"), upgrade("v1.1.2")),
    );
    check(json!({}), Some(("v1.0.0", "other")), (Some("v1.0.0"), Occasion::Change));
    let kept = with(infra(&json!({})), Some(release("v1.0.0", "v1beta2")), None);
    assert_eq!(intent(&kept, &moment()), Ok(Intent::Rest));
    let down = with(
        infra(&json!({"version": "v1.0.9"})),
        Some(release("v1.1.0", "v1beta2")),
        None,
    );
    assert_eq!(reason(&down), "UnsupportedProviderDowngradeReason");
}

#[test]
fn what_clusterctl_installed_is_adopted_where_it_is() {
    let check = |namespace: &str, spec: Value| {
        let mut facts = infra(&spec);
        facts.inventory = Ok(vec![Installed {
            is_built_in: false,
            namespace: namespace.to_owned(),
            version: "v1.2.0".to_owned(),
        }]);
        facts
    };
    let adopt = Occasion::Adopt {
        from: "v1.2.0".to_owned(),
    };
    assert_eq!(desired(&check("n", json!({}))), (Some("v1.2.0".to_owned()), adopt));
    let upgrade = Occasion::Upgrade {
        from: "v1.2.0".to_owned(),
    };
    assert_eq!(
        desired(&check("n", json!({"version": "v1.3.0"}))),
        (Some("v1.3.0".to_owned()), upgrade)
    );
    assert_eq!(reason(&check("other", json!({}))), "InstalledElsewhere");
}

#[test]
fn an_attempt_that_was_cut_off_is_finished_and_one_that_failed_waits() {
    let spec = json!({"version": "v1.1.0"});
    let mut next = release("v1.1.0", "v1beta2");
    let current = || Some(release("v1.0.0", "v1beta2"));
    next.state = State::Next;
    assert_eq!(
        intent(&with(infra(&spec), current(), Some(next.clone())), &moment()),
        Ok(Intent::Resume)
    );
    next.state = State::Failed;
    let failure = |generation, lasting| {
        Some(Failure {
            message: "why".to_owned(),
            generation,
            lasting,
            undone: true,
        })
    };
    next.failure = failure(1, false);
    assert_eq!(
        reason(&with(infra(&spec), current(), Some(next.clone()))),
        "ComponentsUpgradeError"
    );
    next.made = "2026-05-31T00:00:00Z".parse().unwrap();
    assert_eq!(
        desired(&with(infra(&spec), current(), Some(next.clone()))).0.as_deref(),
        Some("v1.1.0")
    );
    // One that was there and did not come up is tried again only with something else.
    next.failure = failure(1, true);
    next.content = "c".to_owned();
    let mut lasting = with(infra(&spec), current(), Some(next.clone()));
    lasting.looked = Some(now());
    let blocked = intent(&lasting, &moment()).unwrap_err();
    assert_eq!(
        (blocked.reason, blocked.until),
        ("ComponentsUpgradeError", Until::After(REMOTE.unsigned_abs()))
    );
    lasting.stirred = Some(1);
    let Ok(Intent::Render(desired)) = intent(&lasting, &moment()) else {
        panic!("it is looked at")
    };
    assert_eq!(desired.unless.as_deref(), Some("c"));
    lasting.generation = 2;
    let Ok(Intent::Render(desired)) = intent(&lasting, &moment()) else {
        panic!("it is tried")
    };
    assert_eq!(desired.unless, None);
    // A declaration of the old version brings it back.
    let back = with(infra(&json!({"version": "v1.0.0"})), current(), Some(next));
    assert_eq!(intent(&back, &moment()), Ok(Intent::Revert));
    let plan = decided(&back, Ok(Intent::Revert));
    assert_eq!(plan.actions.first(), Some(&Action::Discard));
}

// OP-082, OP-083, OP-086: what runs is stopped only after everything is rendered, checked and kept.
#[test]
fn nothing_is_touched_before_all_is_there() {
    use Action::{Check, Commit, Install, Keep, Migrate, Prune, Stop};
    let mut facts = with(
        infra(&json!({"version": "v1.1.0"})),
        Some(release("v1.0.0", "v1beta2")),
        None,
    );
    let Ok(Intent::Render(desired)) = intent(&facts, &moment()) else {
        panic!("a release is desired")
    };
    // The plan asks for the files, then for the release made of them, and then decides.
    let ask = plan(&facts, &moment());
    assert_eq!(ask, ask_files(&desired, false));
    facts.fetched = Some(Ok(fetched("v1.1.0", "c")));
    let ask = plan(&facts, &moment());
    assert_eq!(ask, Decision::Ask(Question::Render(desired.clone())));
    facts.rendered = Some(Ok(rendered(release("v1.1.0", "v1beta2"))));
    let done = decided(&facts, Ok(Intent::Render(desired.clone())));
    assert_eq!(done.actions, [Check, Keep, Migrate, Stop, Install, Prune, Commit]);
    assert!(done.looked);
    facts.rendered = Some(Err(Blocked::new(Stage::Install, "X", "y")));
    let blocked = decided(&facts, Ok(Intent::Render(desired)));
    assert!(blocked.looked);
    assert_eq!(blocked.actions, [Action::Settle], "what runs is looked after meanwhile");
    assert_eq!(blocked.blocked.map(|b| b.reason), Some("X"));
}

// OP-081, OP-089, OP-091, OP-092, OP-101, OP-133, OP-135, OP-146
#[test]
fn contracts_have_to_fit() {
    fn check<P: ProviderObject>(core: &str, mine: Option<&str>, target: &str, expect: &str) {
        let mut facts = facts::<P>("aws", &json!({}));
        facts.peers[0].contract = Some(core.to_owned());
        let facts = with(facts, mine.map(|mine| release("v1.0.0", mine)), None);
        let found = contract::check(&facts, "v1.0.0", target);
        assert_eq!(
            found.map_or_else(|blocked| blocked.reason, |()| ""),
            expect,
            "{core} {target}"
        );
    }
    type Old = management::InfrastructureProvider;
    type New = operator::InfrastructureProvider;
    check::<New>("v1beta2", None, "v1beta2", "");
    check::<New>("v1beta2", None, "v1beta1", "");
    check::<New>("v1beta1", None, "v1beta2", "WaitingForCoreProviderUpgrade");
    check::<New>("v1beta2", None, "v1alpha4", "CAPIVersionIncompatibility");
    check::<Old>("v1beta2", None, "v1beta1", "ContractMismatch");
    check::<Old>("v1beta2", Some("v1beta1"), "v1beta2", "NotAllProvidersPaused");
    check::<Old>("v1beta2", Some("v1beta2"), "v1beta2", "");
}

// OP-091, OP-099, OP-216: a provider that asked to come back too early does not stand in the way of those that it waits for.
#[test]
fn a_provider_that_has_to_stay_without_replicas_counts_as_paused() {
    let mut facts = facts::<management::InfrastructureProvider>("aws", &json!({"paused": true}));
    facts.peers = vec![Peer::of(&object::<management::CoreProvider>("cluster-api", &json!({})))];
    facts.peers[0].contract = Some("v1beta2".to_owned());
    let mut facts = with(facts, Some(release("v1.0.0", "v1beta1")), None);
    let blocked = contract::check(&facts, "v2.0.0", "v1beta2").unwrap_err();
    assert_eq!(blocked.reason, "NotAllProvidersPaused");
    assert!(
        blocked
            .message
            .ends_with("set spec.paused of CoreProvider n/cluster-api"),
        "{}",
        blocked.message
    );
    facts.peers[0].held = true;
    assert_eq!(contract::check(&facts, "v2.0.0", "v1beta2"), Ok(()));
}

#[test]
fn a_status_says_that_a_provider_has_to_stay_without_replicas() {
    let check = |reason: &str, held: bool| {
        let ready =
            json!({"type": "Ready", "status": "False", "reason": reason, "message": "", "lastTransitionTime": NOW});
        let mut object = object::<management::CoreProvider>("cluster-api", &json!({}));
        let mut whole = serde_json::to_value(&object).unwrap();
        whole["status"] = json!({"conditions": [ready]});
        object = serde_json::from_value(whole).unwrap();
        assert_eq!(Peer::of(&object).held, held, "{reason}");
    };
    check("UnpauseBlocked", true);
    check("Paused", false);
}

// OP-116, OP-117, OP-118
#[test]
fn what_is_needed_is_not_removed() {
    let mut facts = with(infra(&json!({})), Some(release("v1.0.0", "v1beta2")), None);
    facts.me.deleting = true;
    assert_eq!(intent(&facts, &moment()), Ok(Intent::Remove { lost: Vec::new() }));
    facts.in_use = Ok(vec![InUse {
        api_version: "infrastructure.cluster.x-k8s.io/v1beta2".to_owned(),
        kind: "AWSCluster".to_owned(),
        example: ObjectKey::new("a", "b"),
        more: true,
    }]);
    let blocked = intent(&facts, &moment()).unwrap_err();
    assert_eq!(blocked.reason, "ProviderInUse");
    assert!(
        blocked.message.contains("AWSCluster a/b and more"),
        "{}",
        blocked.message
    );
    facts.in_use = Err("no answer".to_owned());
    assert_eq!(reason(&facts), "ProviderInUse");
    let mut never = infra(&json!({}));
    never.me.deleting = true;
    assert_eq!(intent(&never, &moment()), Ok(Intent::Release));
    let mut core = self::facts::<operator::CoreProvider>("cluster-api", &json!({}));
    core.peers = vec![infra(&json!({})).me];
    core = with(core, Some(release("v1.0.0", "v1beta2")), None);
    core.me.deleting = true;
    assert_eq!(reason(&core), "OtherProvidersExist");
}

// OP-094, OP-096, OP-100
#[test]
fn paused_means_no_replicas_and_no_changes() {
    let paused = |spec: Value, hash: &str, held: bool| {
        let facts = facts::<management::InfrastructureProvider>("aws", &spec);
        let current = Release {
            hash: hash.to_owned(),
            paused: held,
            ..release("v1.0.0", "v1beta2")
        };
        with(facts, Some(current), None)
    };
    let actions = |facts: &Facts| decided(facts, intent(facts, &moment())).actions;
    let version = json!("v1.0.0");
    assert_eq!(
        actions(&paused(json!({"version": version, "paused": true}), "other", false)),
        [Action::Hold]
    );
    assert_eq!(
        actions(&paused(json!({"version": version, "paused": true}), "h", true)),
        []
    );
    let back = paused(json!({"version": version}), "h", true);
    assert_eq!(actions(&back)[0], Action::Restore);
}

#[test]
fn whichever_reconcile_writes_the_status_tells_of_an_upgrade() {
    use crate::provider::status::{Done, status};
    let upgraded = |replaces: bool| {
        let mut current = release("v1.1.0", "v1beta2");
        current.replaces = replaces;
        current.notes = vec!["a note".to_owned()];
        let facts = with(infra(&json!({"version": "v1.1.0"})), Some(current), None);
        let plan = decided(&facts, Ok(Intent::Rest));
        let done = Done {
            kept: facts.kept.as_deref().cloned().unwrap(),
            ..Done::default()
        };
        let status = status(&facts, &plan, &done, now()).unwrap();
        let conditions = status["conditions"].as_array().unwrap().clone();
        let of = |type_: &str| conditions.iter().find(|condition| condition["type"] == type_).cloned();
        let installed = of("ProviderInstalled").unwrap();
        assert_eq!(installed["message"], "version v1.1.0 is installed; a note");
        of("ProviderUpgraded").map(|condition| condition["status"].clone())
    };
    assert_eq!(upgraded(false), None);
    assert_eq!(upgraded(true), Some(json!("True")));
}

// OP-082
#[test]
fn what_worked_takes_the_place_of_what_never_comes_up() {
    use crate::objects::Running;
    let facts = |change: &dyn Fn(&mut Kept), overdue: bool| {
        let current = Release {
            replaces: true,
            ..release("v1.1.0", "v1beta2")
        };
        let running = Running {
            release: Some(current.id()),
            overdue: overdue.then(|| "too late".to_owned()),
            ..Running::default()
        };
        let mut kept = Kept {
            current: Some(current),
            next: None,
            previous: Some(release("v1.0.0", "v1beta2")),
            ..Kept::default()
        };
        change(&mut kept);
        let mut facts = infra(&json!({"version": "v1.1.0"}));
        facts.kept = Ok(Arc::new(kept));
        facts.running = vec![("d".to_owned(), Some(running))];
        facts
    };
    let check = |change: &dyn Fn(&mut Kept), overdue: bool, back: bool| {
        let intent = intent(&facts(change, overdue), &moment());
        assert_eq!(matches!(intent, Ok(Intent::Back(_))), back, "{intent:?}");
    };
    let current = |change: &dyn Fn(&mut Release)| {
        let mut facts = facts(&|_| {}, true);
        let mut kept = facts.kept.as_deref().cloned().unwrap();
        change(kept.current.as_mut().unwrap());
        facts.kept = Ok(Arc::new(kept));
        matches!(intent(&facts, &moment()), Ok(Intent::Back(_)))
    };
    check(&|_| {}, true, true);
    // Only the controller of Deployments says when it is too late, and only what it says of the installed release counts.
    check(&|_| {}, false, false);
    check(&|kept| kept.previous = None, true, false);
    assert!(!current(&|current| current.migrated = true), "it worked once");
    assert!(!current(&|current| current.paused = true));
    assert!(
        !current(&|current| current.failure = Some(Failure::default())),
        "there is no way back"
    );
    let told = decided(&facts(&|_| {}, true), Ok(Intent::Back("w".to_owned())));
    let obstacle = None;
    assert_eq!(
        told.actions,
        [Action::GoBack {
            why: "w".to_owned(),
            obstacle
        }]
    );
}

#[test]
fn there_is_no_going_back_where_others_could_not_follow() {
    fn check<P: ProviderObject>(name: &str, theirs: &str, old: &str, expect: Option<&str>) {
        let mut facts = facts::<P>(name, &json!({}));
        facts.peers[0].contract = Some(theirs.to_owned());
        facts.kept = Ok(Arc::new(Kept {
            current: Some(release("v1.1.0", "v1beta2")),
            next: None,
            previous: Some(release("v1.0.0", old)),
            ..Kept::default()
        }));
        let found = rollback::obstacle(&facts);
        assert_eq!(found.is_some(), expect.is_some(), "{found:?}");
        assert!(found.unwrap_or_default().contains(expect.unwrap_or_default()));
    }
    check::<operator::InfrastructureProvider>("aws", "v1beta2", "v1beta2", None);
    check::<operator::InfrastructureProvider>("aws", "v1beta2", "v1beta1", None);
    check::<management::InfrastructureProvider>("aws", "v1beta2", "v1beta1", Some("together"));
}

#[test]
fn a_status_that_is_stored_is_not_written_again() {
    use crate::provider::status::{Done, is_stored, status};
    let told = |deleting: bool| {
        let mut facts = with(
            infra(&json!({"version": "v1.0.0"})),
            Some(release("v1.0.0", "v1beta2")),
            None,
        );
        facts.me.deleting = deleting;
        let done = Done {
            kept: facts.kept.as_deref().cloned().unwrap(),
            ..Done::default()
        };
        let now = |text: &str| text.parse().unwrap();
        let first = status(&facts, &Plan::default(), &done, now("2026-06-01T00:00:00Z")).unwrap();
        facts.conditions = serde_json::from_value(first["conditions"].clone()).unwrap();
        let second = status(&facts, &Plan::default(), &done, now("2026-06-02T00:00:00Z")).unwrap();
        assert_eq!(first, second, "conditions keep their times");
        first
    };
    let status = told(true);
    told(false);
    let paused = |status: &Value, paused: &str| {
        let mut stored = status.clone();
        stored["conditions"]
            .as_array_mut()
            .unwrap()
            .insert(0, json!({"type": "Paused", "status": paused}));
        stored
    };
    assert!(is_stored(&paused(&status, "False"), &status, false));
    assert!(!is_stored(&paused(&status, "True"), &status, false));
    assert!(!is_stored(&paused(&status, "False"), &status, true));
    assert!(!is_stored(&status, &status, false));
    let mut more = paused(&status, "False");
    more["other"] = json!(1);
    assert!(!is_stored(&more, &status, false));
}

/// A declaration of another version of an installed provider.
fn upgrading() -> (Facts, DesiredRelease) {
    let spec = json!({"version": "v1.1.0"});
    let facts = with(infra(&spec), Some(release("v1.0.0", "v1beta2")), None);
    match intent(&facts, &moment()) {
        Ok(Intent::Render(desired)) => (facts, desired),
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_that_may_not_be_installed_are_not_rendered() {
    let (facts, desired) = upgrading();
    let check = |fetched: Result<Fetched, Blocked>, desired: &DesiredRelease, reason: &str, looked: bool| {
        let mut facts = facts.clone();
        let mut failed = release("v1.1.0", "v1beta2");
        failed.state = State::Failed;
        facts = with(facts.clone(), facts.current().cloned(), Some(failed));
        facts.fetched = Some(fetched);
        let plan = decided(&facts, Ok(Intent::Render(desired.clone())));
        assert_eq!(plan.blocked.map(|blocked| blocked.reason), Some(reason));
        assert_eq!(plan.looked, looked, "{reason}");
    };
    let unread = Blocked::new(Stage::Install, "Unread", "no answer").until(Until::Backoff);
    check(Err(unread), &desired, "Unread", false);
    check(Err(Blocked::new(Stage::Install, "Wrong", "w")), &desired, "Wrong", true);
    let mut old = fetched("v1.1.0", "c");
    old.contract = "v1alpha4".to_owned();
    // The contract comes before the rest, which may be missing as well.
    old.recipe = Err(Blocked::new(Stage::Install, "Missing", "m"));
    check(Ok(old.clone()), &desired, "CAPIVersionIncompatibility", true);
    old.contract = "v1beta2".to_owned();
    check(Ok(old), &desired, "Missing", true);
    let unless = DesiredRelease {
        unless: Some("c".to_owned()),
        ..desired
    };
    check(Ok(fetched("v1.1.0", "c")), &unless, "ComponentsUpgradeError", true);
}

#[test]
fn a_release_that_shares_objects_with_another_provider_is_not_installed() {
    let (mut facts, desired) = upgrading();
    facts.fetched = Some(Ok(fetched("v1.1.0", "c")));
    let object = ObjectRef::of(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}));
    let release = |objects: &[&ObjectRef]| {
        let mut release = release("v1.1.0", "v1beta2");
        release.index = objects.iter().copied().cloned().collect();
        release
    };
    let mut check = |objects: Result<Vec<ObjectRef>, Unread>, by_label: bool, expect: Option<&str>| {
        let mut answer = rendered(release(&[&object]));
        answer.others = vec![Other {
            peer: facts.peers[0].clone(),
            objects,
            by_label,
        }];
        facts.rendered = Some(Ok(answer));
        let plan = decided(&facts, Ok(Intent::Render(desired.clone())));
        assert_eq!(plan.blocked.as_ref().map(|blocked| blocked.reason), expect);
        assert_eq!(plan.actions.contains(&Action::Install), expect.is_none());
        assert!(plan.looked);
        let is_repeated = plan.blocked.is_some_and(|blocked| blocked.until == Until::Backoff);
        assert_eq!(is_repeated, by_label && expect.is_some());
    };
    for by_label in [false, true] {
        check(Ok(Vec::new()), by_label, None);
        check(Ok(vec![object.clone()]), by_label, Some("ComponentsShared"));
    }
    let unread = Unread {
        why: "no answer".to_owned(),
        stored: None,
    };
    check(Err(unread), true, Some("InstalledComponentsUnreadable"));
}

// OP-129
#[test]
fn a_declaration_without_a_rival_claims_the_provider_first() {
    let mut facts = with(infra(&json!({})), Some(release("v1.0.0", "v1beta2")), None);
    let claims = |facts: &Facts| match decided(facts, Ok(Intent::Rest)).actions.first() {
        Some(Action::Claim { holder }) => Some(holder.clone()),
        _ => None,
    };
    assert_eq!(claims(&facts), None, "it has the claim");
    facts.holder = None;
    assert_eq!(claims(&facts), Some(None));
    facts.holder = Some("gone".to_owned());
    assert_eq!(claims(&facts), Some(Some("gone".to_owned())));
    facts.peers.push(Peer {
        uid: "gone".to_owned(),
        contract: Some("v1beta2".to_owned()),
        ..facts.me.clone()
    });
    assert_eq!(claims(&facts), None, "the other one is installed");
    facts.peers.pop();
    facts.me.deleting = true;
    assert_eq!(claims(&facts), None);
}

// OP-123
#[test]
fn a_new_process_compares_what_is_installed_before_it_repairs() {
    let plan_of = |watched: bool, doubted: bool, left: &[&str]| {
        let mut current = release("v1.0.0", "v1beta2");
        current.migrated = true;
        current.left = left.iter().map(|left| (*left).to_owned()).collect();
        let mut facts = with(infra(&json!({"version": "v1.0.0"})), Some(current), None);
        (facts.watched, facts.doubted) = (watched, doubted);
        decided(&facts, Ok(Intent::Rest))
    };
    let plan = plan_of(false, false, &[]);
    assert_eq!(
        (plan.actions, plan.requeue),
        (vec![Action::TakeUp], Some(Duration::ZERO))
    );
    assert_eq!(plan_of(false, true, &[]).actions, [Action::Repair(None)]);
    assert_eq!(plan_of(false, false, &["a"]).actions, [Action::Repair(None)]);
    assert_eq!(plan_of(true, false, &[]), Plan::default());
}

#[test]
fn what_waits_for_a_time_is_looked_at_then() {
    let at = |text: &str| Some(text.parse::<Timestamp>().unwrap());
    let deadline = |facts: &Facts| {
        let moment = moment();
        plan(facts, &moment);
        moment.next_deadline()
    };
    // Certificates.
    let mut current = release("v1.0.0", "v1beta2");
    current.renew = at("2026-07-01T00:00:00Z");
    let declared = || infra(&json!({"version": "v1.0.0"}));
    let renewed = with(declared(), Some(current.clone()), None);
    assert_eq!(deadline(&renewed), current.renew);
    // A release that could not be installed five minutes ago.
    let mut failed = release("v1.1.0", "v1beta2");
    (failed.state, failed.made) = (State::Failed, "2026-05-31T23:55:00Z".parse().unwrap());
    let upgrade = |next: Release| {
        let current = Some(release("v1.0.0", "v1beta2"));
        with(infra(&json!({"version": "v1.1.0"})), current, Some(next))
    };
    assert_eq!(deadline(&upgrade(failed.clone())), at("2026-06-01T00:05:00Z"));
    // One that did not come up: its files are outside the cluster and are read again after an hour.
    failed.failure = Some(Failure {
        generation: 1,
        lasting: true,
        undone: true,
        ..Failure::default()
    });
    assert_eq!(deadline(&upgrade(failed.clone())), at("2026-06-01T00:55:00Z"));
    let mut looked = upgrade(failed.clone());
    looked.looked = at("2026-05-31T23:59:00Z");
    assert_eq!(deadline(&looked), at("2026-06-01T00:59:00Z"));
    looked.looked = at("2026-05-31T23:00:00Z");
    assert!(matches!(
        plan(&looked, &moment()),
        Decision::Ask(Question::Files { .. })
    ));
    // An attempt that is resumed is the last one after ten minutes.
    failed.state = State::Next;
    let resumed = upgrade(failed.clone());
    assert_eq!(deadline(&resumed), at("2026-06-01T00:05:00Z"));
    assert!(!decided(&resumed, Ok(Intent::Resume)).is_last_attempt);
    failed.made = "2026-05-31T23:50:00Z".parse().unwrap();
    assert!(decided(&upgrade(failed), Ok(Intent::Resume)).is_last_attempt);
}

#[test]
fn an_obstacle_is_an_event_and_a_note_about_settings_is_part_of_the_condition() {
    let blocked = Blocked::new(Stage::Install, "X", "y");
    let mut facts = infra(&json!({}));
    facts.locked = true;
    let notes = decided(&facts, Err(blocked)).notes;
    let events: Vec<_> = notes.iter().map(|note| note.event.as_ref().map(|e| e.reason)).collect();
    assert_eq!(events, [None, Some("X")]);
}

// OP-073
#[test]
fn certificates_that_are_due_are_asked_for_and_then_kept() {
    let mut current = release("v1.0.0", "v1beta2");
    (current.renew, current.migrated) = (Some(now()), true);
    let mut facts = with(infra(&json!({"version": "v1.0.0"})), Some(current.clone()), None);
    assert_eq!(plan(&facts, &moment()), Decision::Ask(Question::Renewal));
    let sealed = Sealed {
        release: release("v1.0.0", "v1beta2"),
        packed: Vec::new(),
    };
    facts.renewed = Some(Ok(sealed.clone()));
    assert_eq!(decided(&facts, Ok(Intent::Rest)).actions, [Action::Renew]);
    facts.renewed = Some(Err(Blocked::new(Stage::Install, "X", "y").until(Until::Backoff)));
    let failed = decided(&facts, Ok(Intent::Rest));
    assert_eq!(
        (failed.actions, failed.blocked.map(|b| b.reason)),
        (Vec::new(), Some("X"))
    );
    // Beside another obstacle, both are reported, and they are tried again without an event.
    let waits = Blocked::new(Stage::Preflight, "Z", "z");
    let both = decided(&facts, Err(waits));
    assert_eq!(
        both.blocked,
        Some(Blocked::new(Stage::Preflight, "Z", "z; y").until(Until::Backoff))
    );
    let told = Note::event(EventType::Warning, "Z", "z; y");
    assert_eq!((both.actions, both.notes), (Vec::new(), vec![told]));
    // Beside a desired release they are asked for with its files, so that two questions are enough.
    let mut facts = with(infra(&json!({"version": "v1.1.0"})), Some(current), None);
    let Ok(Intent::Render(desired)) = intent(&facts, &moment()) else {
        panic!("a release is desired")
    };
    assert_eq!(plan(&facts, &moment()), ask_files(&desired, true));
    facts.fetched = Some(Err(Blocked::new(Stage::Install, "X", "y")));
    facts.renewed = Some(Ok(sealed));
    assert_eq!(
        decided(&facts, Ok(Intent::Render(desired.clone()))).actions,
        [Action::Renew]
    );
    // They became due meanwhile: they are asked for in the next reconcile.
    facts.renewed = None;
    let late = decided(&facts, Ok(Intent::Render(desired)));
    assert_eq!((late.actions, late.requeue), (Vec::new(), Some(Duration::ZERO)));
}

#[test]
fn what_fails_again_and_again_keeps_nothing_else_from_being_looked_after() {
    let version = || Action::SetVersion("v1.0.0".to_owned());
    let check = |failed: Action, then: Action, expect: bool| {
        assert_eq!(then.is_independent_of(&failed), expect, "{then:?} after {failed:?}");
    };
    for failed in [version(), Action::Discard] {
        check(failed.clone(), Action::Hold, true);
        check(failed.clone(), Action::Repair(None), true);
        check(failed.clone(), Action::Settle, true);
        check(failed.clone(), Action::Renew, true);
        // A release is not replaced on behalf of a declaration that has changed meanwhile.
        check(failed.clone(), Action::Check, false);
        check(failed, Action::Install, false);
    }
    for failed in [Action::Restore, Action::TakeBack, Action::Repair(None), Action::Settle] {
        check(failed.clone(), Action::Renew, true);
        check(failed, Action::Settle, false);
    }
    check(Action::Claim { holder: None }, Action::Renew, false);
    check(Action::Stop, Action::Install, false);
    check(Action::Remove { lost: Vec::new() }, Action::Forget, false);
}
