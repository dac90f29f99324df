//! Cases of garbage collection.

use std::fmt::Write as _;

use serde_json::{Value, json};
use windlass_store::{Change, Expect, Limits, Store, Write as StoreWrite};

use super::*;

/// Plays steps against a store: `+name owner owner! owner=Kind/name ...` puts an object (a `!` blocks its owner), `~name
/// finalizer` marks it as being deleted with a finalizer, `-name` removes it, `?` shows the actions.
async fn check(steps: &str, want: &str) {
    let store = Store::memory(Limits::default());
    let resource: Arc<str> = "things".into();
    let mut feed = store.feed();
    let mut graph = Graph::new(|_| Some("Thing".to_owned()));
    let mut got = String::new();
    for step in steps
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .split(';')
        .map(str::trim)
    {
        if step == "?" {
            let actions: Vec<String> = graph.decide().iter().map(show).collect();
            let _ = write!(got, "[{}]", actions.join(", "));
            continue;
        }
        let (op, rest) = step.split_at(1);
        let mut words = rest.split(' ');
        let name = words.next().unwrap();
        let key = Key::new(&resource, "ns", name);
        let have = store.get("things", "ns", name);
        let expect = have.as_ref().map_or(Expect::Absent, |r| Expect::Revision(r.revision));
        let change = if op == "-" {
            Change::Delete(None)
        } else {
            let mut object: Value = have.as_ref().map_or_else(
                || json!({"metadata": {"name": name, "uid": name}}),
                |r| serde_json::from_slice(&r.value).unwrap(),
            );
            if op == "+" {
                let owner = |word: &str| {
                    let (uid, called) = word.split_once('=').unwrap_or((word, ""));
                    let uid = uid.trim_end_matches('!');
                    let mut owner = json!({"uid": uid, "blockOwnerDeletion": word.ends_with('!')});
                    if let Some((kind, name)) = called.split_once('/') {
                        owner["kind"] = kind.into();
                        owner["name"] = name.into();
                        owner["apiVersion"] = "v1".into();
                    }
                    owner
                };
                let owners: Vec<Value> = words.map(owner).collect();
                object["metadata"]["ownerReferences"] = owners.into();
            } else {
                object["metadata"]["deletionTimestamp"] = "now".into();
                object["metadata"]["finalizers"] = words.collect::<Vec<_>>().into();
            }
            Change::Put(crate::objects::encoding::draft(&object))
        };
        store.commit(vec![StoreWrite { key, expect, change }]).await.unwrap();
        graph.observe(&feed.try_recv().unwrap());
    }
    assert_eq!(got, want, "{steps}");
}

fn show(action: &Action) -> String {
    match action {
        Action::Delete { uid, unblock: true, .. } => format!("unblock {uid}"),
        Action::Delete { uid, foreground, .. } => {
            format!("delete {uid}{}", if *foreground { " foreground" } else { "" })
        }
        Action::Disown { uid, owners, .. } => format!("disown {uid} of {}", owners.join("+")),
        Action::Release { uid, finalizer, .. } => format!("release {uid} from {finalizer}"),
    }
}

#[tokio::test]
async fn dependents_follow_their_owner() {
    check("+a; +b a; +c b; ?; -a; ?; -b; ?", "[][delete b][delete c]").await;
}

#[tokio::test]
async fn an_object_whose_owner_never_was_is_deleted() {
    check("+b a; ?", "[delete b]").await;
}

#[tokio::test]
async fn one_living_owner_keeps_an_object() {
    check("+a; +b; +c a b; -a; ?", "[disown c of a]").await;
}

#[tokio::test]
async fn a_foreground_deletion_waits_for_those_that_block() {
    check(
        "+a; +b a!; +c a; ~a foregroundDeletion; ?; -b; ?; -c; ?",
        "[delete b, delete c][release a from foregroundDeletion][release a from foregroundDeletion]",
    )
    .await;
}

#[tokio::test]
async fn a_foreground_deletion_spreads_to_those_that_have_dependents() {
    check("+a; +b a!; +c b!; ~a foregroundDeletion; ?", "[delete b foreground]").await;
}

#[tokio::test]
async fn an_orphaning_owner_lets_go() {
    check(
        "+a; +b a; +c a; ~a orphan; ?; +b; +c; ?",
        "[disown b of a, disown c of a][release a from orphan]",
    )
    .await;
}

#[tokio::test]
async fn what_is_being_deleted_is_not_deleted_again() {
    check("+a; +b a; ~b x/y; -a; ?", "[]").await;
}

#[tokio::test]
async fn a_cycle_that_waits_for_itself_is_opened() {
    check(
        "+a b!; +b a!; ~a foregroundDeletion; ?; +b a; ?; -a; ?",
        "[unblock b][release a from foregroundDeletion, delete b foreground][delete b]",
    )
    .await;
}

#[tokio::test]
async fn who_has_the_uid_must_have_the_name_and_the_kind_too() {
    check("+a; +b a=Thing/a; ?", "[]").await;
    check("+a; +b a=Thing/other; ?", "[delete b]").await;
    check("+a; +b a=Other/a; ?", "[delete b]").await;
}

/// A second reference to an owner by another name does not hide that the first one is right.
#[tokio::test]
async fn of_several_references_to_an_owner_the_first_one_counts() {
    let both = "+a o=Thing/o o=Thing/x";
    check(&format!("+o; {both}; ?"), "[disown a of o]").await;
    // The owner is known by then, so its references are not decoded again.
    check(&format!("+o; {both}; {both}; ?"), "[]").await;
}

/// The writer of an object chooses how many owners it has. To compare each with each would take many minutes.
#[tokio::test]
async fn owners_are_not_searched_for_each_other() {
    const MANY: usize = 200_000;
    let store = Store::memory(Limits::default());
    let mut feed = store.feed();
    let mut graph = Graph::new(|_| Some("Thing".to_owned()));
    let key = Key::new(&"things".into(), "ns", "a");
    let begun = std::time::Instant::now();
    for first in 0..2 {
        let owner =
            |at: usize| json!({"uid": at.to_string(), "kind": "Thing", "name": "o", "blockOwnerDeletion": true});
        let owners: Vec<Value> = (first..first + MANY).map(owner).collect();
        let object = json!({"metadata": {"name": "a", "uid": "a", "ownerReferences": owners}});
        let have = store.get("things", "ns", "a");
        let write = StoreWrite {
            key: key.clone(),
            expect: have.map_or(Expect::Absent, |record| Expect::Revision(record.revision)),
            change: Change::Put(crate::objects::encoding::draft(&object)),
        };
        store.commit(vec![write]).await.unwrap();
        graph.observe(&feed.try_recv().unwrap());
    }
    let actions = graph.decide();
    let [Action::Delete { owners, .. }] = actions.as_slice() else {
        panic!("it has no owner: {} actions", actions.len());
    };
    assert_eq!(owners.len(), MANY);
    assert!(
        begun.elapsed() < std::time::Duration::from_mins(1),
        "{:?}",
        begun.elapsed()
    );
}
