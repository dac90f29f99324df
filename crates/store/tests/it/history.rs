//! Revisions, preconditions, watches, lists of past revisions.

use proptest::prelude::*;
use windlass_store::{Change, CommitError, Draft, Expect, Header, Key, Limits, ListQuery, Store, Write};

use crate::support::{put, remove, set, text, things};

fn names(store: &Store, at: Option<u64>, after: Option<&str>) -> Vec<String> {
    let resource = things();
    let page = store
        .list(&ListQuery {
            resource: &resource,
            namespace: Some("ns"),
            after: after.map(|n| ("ns", n)),
            at,
        })
        .unwrap();
    page.items
        .iter()
        .map(|r| format!("{}@{}", r.key.name(), r.revision))
        .collect()
}

#[tokio::test]
async fn each_change_has_its_revision_in_its_value() {
    let store = Store::memory(Limits::default());
    let first = set(&store, "a", "x").await.unwrap();
    let second = set(&store, "a", "y").await.unwrap();
    assert_eq!(text(&first), format!(r#"{{"rv":"{}","text":"x"}}"#, first.revision));
    assert_eq!(second.revision, first.revision + 1);
    assert_eq!(store.revision(), second.revision);
}

#[tokio::test]
async fn sizes_are_those_of_the_stored_objects() {
    let store = Store::memory(Limits::default());
    let resource = things();
    assert_eq!(store.sizes(&resource), windlass_store::Sizes::default());
    let a = set(&store, "a", "x").await.unwrap();
    let b = set(&store, "b", "yy").await.unwrap();
    let bytes = a.value.len() + b.value.len();
    let is_more = |namespace: &str, most: usize| {
        let weigh = |record: &windlass_store::Record| record.value.len();
        store.is_more(&resource, Some(namespace), most, weigh)
    };
    assert_eq!(
        (store.sizes(&resource).objects, store.sizes(&resource).bytes),
        (2, bytes)
    );
    assert!(is_more("ns", bytes - 1) && !is_more("ns", bytes) && !is_more("other", 0));
    let changed = set(&store, "a", "longer").await.unwrap();
    let sizes = store.sizes(&resource);
    assert_eq!((sizes.objects, sizes.bytes), (2, changed.value.len() + b.value.len()));
    assert!(sizes.history > a.value.len(), "of what was");
    remove(&store, "b").await;
    assert_eq!(
        (store.sizes(&resource).objects, store.sizes(&resource).bytes),
        (1, changed.value.len())
    );
}

#[tokio::test]
async fn a_transaction_is_made_whole_or_not_at_all() {
    let store = Store::memory(Limits::default());
    let a = set(&store, "a", "x").await.unwrap();
    let before = store.revision();
    let writes = vec![
        put("b", "y", Expect::Absent),
        put("a", "z", Expect::Revision(a.revision + 7)),
    ];
    let refused = store.commit(writes).await.unwrap_err();
    assert!(matches!(refused, CommitError::Conflict { index: 1, .. }));
    assert_eq!(store.revision(), before);
    assert!(store.get(&things(), "ns", "b").is_none());
    let check = Write {
        key: Key::new(&things(), "ns", "a"),
        expect: Expect::Revision(a.revision),
        change: Change::Check,
    };
    let made = store.commit(vec![check, put("b", "y", Expect::Absent)]).await.unwrap();
    assert_eq!(made.len(), 1);
}

#[tokio::test]
async fn a_deletion_carries_the_last_value_with_a_new_revision() {
    let store = Store::memory(Limits::default());
    let mut watcher = store.watch(&things(), store.revision()).unwrap();
    for i in 0..9 {
        set(&store, "a", &i.to_string()).await.unwrap();
    }
    remove(&store, "a").await;
    let events = watcher.take().unwrap();
    let last = events.last().unwrap();
    assert!(last.deleted);
    assert_eq!(
        text(&last.record),
        format!(r#"{{"rv":"{}","text":"8"}}"#, store.revision())
    );
}

#[tokio::test]
async fn a_watcher_waits_for_its_resource_only() {
    let store = Store::memory(Limits::default());
    let mut watcher = store.watch(&things(), store.revision()).unwrap();
    let other = Write {
        key: Key::new(&"others".into(), "", "x"),
        expect: Expect::Absent,
        change: Change::Put(crate::support::draft("x")),
    };
    store.commit(vec![other]).await.unwrap();
    tokio::select! {
        biased;
        () = watcher.changed() => panic!("another resource changed"),
        () = tokio::task::yield_now() => {}
    }
    set(&store, "a", "x").await.unwrap();
    watcher.changed().await;
    assert_eq!(watcher.take().unwrap().len(), 1);
    assert_eq!(watcher.position(), store.revision());
}

#[tokio::test]
async fn what_is_forgotten_is_expired() {
    let limits = Limits {
        log_events: 3,
        log_bytes: 1 << 20,
        ..Limits::default()
    };
    let store = Store::memory(limits);
    let start = store.revision();
    let mut slow = store.watch(&things(), start).unwrap();
    for i in 0..5 {
        set(&store, "a", &i.to_string()).await.unwrap();
    }
    assert!(slow.take().is_err());
    assert!(store.watch(&things(), start).is_err());
    assert!(store.watch(&things(), store.revision() - 3).is_ok());
    let query = |at| ListQuery {
        resource: "things.example.com",
        namespace: None,
        after: None,
        at: Some(at),
    };
    assert!(store.list(&query(start)).is_err());
    assert!(store.list(&query(store.revision() - 3)).is_ok());
}

#[tokio::test]
async fn history_is_bounded_in_bytes_over_all_resources() {
    let limits = Limits {
        all_log_bytes: 100_000,
        ..Limits::default()
    };
    let store = Store::memory(limits);
    let quiet = Write {
        key: Key::new(&"quiet".into(), "", "x"),
        expect: Expect::Absent,
        change: Change::Put(crate::support::draft("x")),
    };
    let start = store.revision();
    store.commit(vec![quiet]).await.unwrap();
    let filler = "x".repeat(1_000);
    for _ in 0..500 {
        set(&store, "a", &filler).await.unwrap();
    }
    assert!(store.watch(&things(), start).is_err());
    let kept = (start..=store.revision())
        .filter(|r| store.watch(&things(), *r).is_ok())
        .count();
    assert!((40..80).contains(&kept), "{kept} changes of about 1.5 KiB in 100 kB");
    // Many changes of one resource do not shorten the history of others.
    assert_eq!(store.watch(&"quiet".into(), start).unwrap().take().unwrap().len(), 1);
}

#[derive(Debug, Clone)]
enum Step {
    Set(u8),
    Remove(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..6_u8, any::<bool>()).prop_map(|(n, set)| if set { Step::Set(n) } else { Step::Remove(n) });
    proptest::collection::vec(step, 1..40)
}

proptest! {
    /// A list at an earlier revision equals the list at that time.
    #[test]
    fn the_past_can_be_listed(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = Store::memory(Limits::default());
            let mut then = vec![(store.revision(), names(&store, None, None))];
            for step in &steps {
                match step {
                    Step::Set(n) => {
                        set(&store, &format!("o{n}"), "x").await.unwrap();
                    }
                    Step::Remove(n) => {
                        let name = format!("o{n}");
                        if store.get(&things(), "ns", &name).is_some() {
                            remove(&store, &name).await;
                        }
                    }
                }
                then.push((store.revision(), names(&store, None, None)));
            }
            for (revision, want) in then {
                assert_eq!(names(&store, Some(revision), None), want);
                let after: Vec<String> = want.iter().filter(|n| n.as_str() > "o2@99999").cloned().collect();
                assert_eq!(names(&store, Some(revision), Some("o2")), after);
            }
        });
    }
}

/// What is in memory is limited, and what makes it smaller is always possible.
#[tokio::test]
async fn a_store_in_memory_has_a_largest_size() {
    let store = Store::memory(Limits {
        object_bytes: 1_000,
        ..Limits::small()
    });
    let resource = things();
    let put = async |name: &str, size: usize| {
        let have = store.get(&resource, "", name);
        let write = Write {
            key: Key::new(&resource, "", name),
            expect: have.map_or(Expect::Absent, |record| Expect::Revision(record.revision)),
            change: Change::Put(Draft {
                header: Header::default(),
                value: vec![b' '; size],
                rv_at: 0,
            }),
        };
        store.commit(vec![write]).await
    };
    put("a", 500).await.unwrap();
    put("b", 490).await.unwrap();
    let Err(CommitError::Storage(refused)) = put("c", 20).await else {
        panic!("there is room");
    };
    assert!(
        refused.full && refused.message.contains("database space exceeded"),
        "{refused}"
    );
    put("a", 400).await.unwrap();
    put("c", 20).await.unwrap();
}
