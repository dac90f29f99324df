//! A cache stores and indexes objects, and calls its subscribers with changes.

use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::*;

fn store() -> Store {
    Store::of::<ConfigMap>(Gvk::from_api_version("v1", "ConfigMap"))
}

fn map(name: &str, version: u64, owner: Option<&str>, cluster: Option<&str>) -> AnyObject {
    Arc::new(ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some("n".to_owned()),
            uid: Some(format!("uid-{name}")),
            resource_version: Some(version.to_string()),
            owner_references: owner.map(|uid| {
                vec![OwnerReference {
                    uid: uid.to_owned(),
                    ..OwnerReference::default()
                }]
            }),
            labels: cluster.map(|c| [(CLUSTER_NAME.to_owned(), c.to_owned())].into()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    })
}

fn delete(store: &Store, name: &str, version: u64) {
    store.delete(&ObjectKey::new("n", name), Some(version));
}

fn names(objects: &[AnyObject]) -> Vec<&str> {
    objects.iter().map(|o| o.metadata().name.as_deref().unwrap()).collect()
}

/// resourceVersions before and after.
type Told = (Option<String>, Option<String>);

fn recorded(store: &Store) -> Arc<Mutex<Vec<Told>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let s = seen.clone();
    store.subscribe(Arc::new(move |change: &AnyChange| {
        let version = |o: &Option<AnyObject>| o.as_ref().and_then(|o| o.metadata().resource_version.clone());
        s.lock().push((version(&change.old), version(&change.new)));
    }));
    seen
}

fn waits(store: &Store, name: &str, need: Need) -> Arc<AtomicBool> {
    let met = Arc::new(AtomicBool::new(false));
    let m = met.clone();
    store.when(
        &ObjectKey::new("n", name),
        need,
        Latch::new(1, move || m.store(true, Ordering::SeqCst)),
    );
    met
}

#[test]
fn nothing_waits_for_versions_that_a_server_has_forgotten() {
    let store = store();
    store.apply(map("a", 70, None, None));
    let (version, gone) = (
        waits(&store, "a", Need::Version(80)),
        waits(&store, "a", Need::Gone("uid-a".to_owned())),
    );
    let old = || List {
        objects: vec![map("a", 5, None, None)],
        ..List::default()
    };
    assert!(store.replace(old(), 9, false).is_err());
    assert!(!version.load(Ordering::SeqCst));
    store.replace(old(), 9, true).unwrap();
    assert!(version.load(Ordering::SeqCst) && gone.load(Ordering::SeqCst));
    // Own writes are waited for again.
    let next = waits(&store, "a", Need::Version(10));
    assert!(!next.load(Ordering::SeqCst));
    store.saw(10);
    assert!(next.load(Ordering::SeqCst));
}

#[test]
fn indexes_follow_changes() {
    let store = store();
    let first = |c: &dyn Stored| {
        c.metadata()
            .name
            .iter()
            .filter_map(|n| n.get(..1).map(str::to_owned))
            .collect()
    };
    store.add_index("first letter", Box::new(first));
    store.apply(map("a1", 1, Some("o1"), Some("c1")));
    store.apply(map("a2", 2, Some("o1"), Some("c2")));
    store.apply(map("b", 3, None, None));
    let cluster = |name: &str| store.by_cluster(&ObjectKey::new("n", name));
    assert_eq!(names(&store.by_owner("o1")), ["a1", "a2"]);
    assert_eq!(names(&cluster("c1")), ["a1"]);
    assert_eq!(names(&store.by_index("first letter", "a")), ["a1", "a2"]);
    store.apply(map("a1", 4, Some("o2"), Some("c2")));
    assert_eq!(names(&store.by_owner("o1")), ["a2"]);
    assert_eq!(names(&cluster("c2")), ["a1", "a2"]);
    delete(&store, "a2", 5);
    assert!(store.by_owner("o1").is_empty());
    assert_eq!(names(&store.by_index("first letter", "a")), ["a1"]);
    assert_eq!(names(&store.list("n")), ["a1", "b"]);
    assert!(store.list("other").is_empty());
}

#[test]
fn an_index_added_later_knows_what_is_there() {
    let store = store();
    store.apply(map("a", 1, None, None));
    store.add_index("all", Box::new(|_| vec!["x".to_owned()]));
    assert_eq!(names(&store.by_index("all", "x")), ["a"]);
}

#[test]
fn subscribers_get_old_and_new_and_deletions_from_the_moment_they_come() {
    let store = store();
    store.apply(map("a", 1, None, None));
    let seen = recorded(&store);
    store.apply(map("a", 2, None, None));
    delete(&store, "a", 3);
    let v = |s: &str| Some(s.to_owned());
    assert_eq!(*seen.lock(), [(None, v("1")), (v("1"), v("2")), (v("2"), None)]);
}

#[test]
fn a_list_is_compared_with_what_was_there() {
    let store = store();
    store
        .replace(list([map("a", 1, None, None), map("b", 2, None, None)]), 5, false)
        .unwrap();
    let seen = recorded(&store);
    seen.lock().clear();
    store
        .replace(list([map("b", 2, None, None), map("c", 6, None, None)]), 7, false)
        .unwrap();
    let v = |s: &str| Some(s.to_owned());
    assert_eq!(*seen.lock(), [(None, v("6")), (v("1"), None)]);
    assert!(store.is_synced());
}

fn list<const N: usize>(objects: [AnyObject; N]) -> List {
    List {
        objects: objects.into(),
        ..List::default()
    }
}

#[test]
fn what_a_list_holds_and_cannot_be_decoded_stays() {
    let store = store();
    for name in ["a", "b", "c"] {
        store.apply(map(name, 1, None, None));
    }
    let key = |name: &str| ObjectKey::new("n", name);
    let name = |name: &str, uid: &str| Name {
        key: key(name),
        uid: uid.to_owned(),
        version: None,
        cluster: Some("c".to_owned()),
    };
    let unreadable = |store: &Store| store.unreadable(&key("c"));
    let mut undecodable = List {
        undecoded: vec![name("a", "uid-a"), name("b", "of another one"), name("new", "uid-new")],
        ..List::default()
    };
    undecodable.has_nameless = true;
    store.replace(undecodable, 5, false).unwrap();
    assert_eq!(store.len(), 3, "any of them may be the one without a name");
    let undecodable = List {
        undecoded: vec![name("a", "uid-a"), name("b", "of another one")],
        ..List::default()
    };
    store.replace(undecodable, 6, false).unwrap();
    assert!(store.get(&key("a")).is_some());
    assert_eq!(store.len(), 1, "\"b\" is another object now, and \"c\" is gone");
    assert_eq!(
        unreadable(&store),
        Some(key("b")),
        "there is one, and nothing is known of it"
    );
    assert_eq!(store.unreadable(&key("other")), None);
    store.undecodable(&name("a", "uid-a"));
    store.apply(map("b", 7, None, None));
    assert_eq!(unreadable(&store), None, "\"a\" is known, and \"b\" can be read again");
    store.undecodable(&name("d", "uid-d"));
    assert_eq!(unreadable(&store), Some(key("d")));
    store.delete(&key("d"), None);
    assert_eq!(unreadable(&store), None);
}

#[test]
fn a_list_from_the_past_is_refused() {
    let store = store();
    store.apply(map("a", 10, None, None));
    assert!(store.replace(List::default(), 9, false).is_err());
    assert_eq!(store.len(), 1);
    store.replace(List::default(), 9, true).unwrap();
    assert_eq!(store.len(), 0);
}

#[test]
fn needs_are_met_by_events_bookmarks_and_lists() {
    let store = store();
    store.apply(map("a", 5, None, None));
    assert!(
        waits(&store, "a", Need::Version(5)).load(Ordering::SeqCst),
        "already seen"
    );
    let by_event = waits(&store, "a", Need::Version(7));
    let by_bookmark = waits(&store, "a", Need::Version(9));
    let by_list = waits(&store, "a", Need::Version(11));
    store.apply(map("other", 7, None, None));
    assert!(by_event.load(Ordering::SeqCst) && !by_bookmark.load(Ordering::SeqCst));
    store.saw(9);
    assert!(by_bookmark.load(Ordering::SeqCst) && !by_list.load(Ordering::SeqCst));
    store.replace(List::default(), 11, false).unwrap();
    assert!(by_list.load(Ordering::SeqCst));
}

#[test]
fn a_deletion_is_seen_when_the_object_is_gone_or_another_one() {
    let store = store();
    store.apply(map("a", 5, None, None));
    let gone = waits(&store, "a", Need::Gone("uid-a".to_owned()));
    store.apply(map("a", 6, None, None));
    assert!(!gone.load(Ordering::SeqCst));
    delete(&store, "a", 7);
    assert!(gone.load(Ordering::SeqCst));
    assert!(waits(&store, "a", Need::Gone("uid-a".to_owned())).load(Ordering::SeqCst));
}

#[test]
fn memories_go_with_the_object() {
    let store = store();
    let key = ObjectKey::new("n", "a");
    store.apply(map("a", 5, None, None));
    let memo = Memo {
        desired: [1; 16],
        text: None,
        uid: "uid-a".to_owned(),
        version: "5".to_owned(),
        live: None,
    };
    store.remember(&key, "m", memo.clone());
    assert_eq!(store.memo(&key, "m"), Some(memo));
    assert_eq!(store.memo(&key, "other"), None);
    delete(&store, "a", 6);
    assert_eq!(store.memo(&key, "m"), None);
}
