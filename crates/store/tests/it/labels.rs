//! Objects that are found by labels.

use std::collections::BTreeMap;

use proptest::prelude::*;
use windlass_store::{Change, Draft, Expect, Header, Key, Limits, ListQuery, Store, Write};

use crate::support::{draft, things};

/// The labels of an object: the cluster that it is of, if any, and whether it has a mark.
type Marks = (Option<u8>, bool);

fn labels((cluster, is_marked): Marks) -> BTreeMap<String, String> {
    let cluster = cluster.map(|number| ("cluster".to_owned(), format!("c{number}")));
    let mark = is_marked.then(|| ("owned".to_owned(), String::new()));
    cluster.into_iter().chain(mark).collect()
}

async fn write(store: &Store, namespace: &str, name: &str, marks: Option<Marks>) {
    let known = store.get(&things(), namespace, name);
    let change = match marks {
        None if known.is_none() => return,
        None => Change::Delete(None),
        Some(marks) => {
            let sorted = labels(marks).into_iter().map(|(key, value)| (key.into(), value.into()));
            Change::Put(Draft {
                header: Header {
                    labels: sorted.collect(),
                    ..Header::default()
                },
                ..draft("x")
            })
        }
    };
    let write = Write {
        key: Key::new(&things(), namespace, name),
        expect: known.map_or(Expect::Absent, |record| Expect::Revision(record.revision)),
        change,
    };
    store.commit(vec![write]).await.unwrap();
}

/// What a search through all objects finds, and what the index does.
fn found(store: &Store, namespace: &str, wanted: &BTreeMap<String, String>) -> [Vec<String>; 2] {
    let resource = things();
    let page = store.list(&ListQuery {
        resource: &resource,
        namespace: Some(namespace),
        after: None,
        at: None,
    });
    let names = |record: &windlass_store::Record| format!("{}@{}", record.key.name(), record.revision);
    let has = |record: &windlass_store::Record, key: &str, value: &str| {
        let mut known = record.header.labels.iter();
        known.any(|(known, of)| &**known == key && &**of == value)
    };
    let all = page.unwrap().items;
    let searched = all
        .iter()
        .filter(|record| wanted.iter().all(|(key, value)| has(record, key, value)));
    let indexed = store.labelled(&resource, namespace, wanted);
    [
        searched.map(|record| names(record)).collect(),
        indexed.iter().map(|record| names(record)).collect(),
    ]
}

fn some_writes() -> impl Strategy<Value = Vec<(usize, usize, Option<Marks>)>> {
    let marks = proptest::option::weighted(0.8, (proptest::option::of(0u8..3), any::<bool>()));
    proptest::collection::vec((0usize..2, 0usize..6, marks), 0..60)
}

proptest! {
    // Whether an index is made before, between or after the writes, it finds what a search through all objects finds.
    #[test]
    fn an_index_finds_what_a_search_finds(writes in some_writes(), asks in proptest::collection::vec(any::<bool>(), 60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = Store::memory(Limits::default());
            let wanted = [labels((Some(1), true)), labels((Some(1), false)), labels((None, true)), labels((None, false))];
            for ((namespace, name, marks), asks) in writes.into_iter().zip(asks.into_iter().chain(std::iter::repeat(false))) {
                write(&store, ["a", "ab"][namespace], &format!("o{name}"), marks).await;
                for wanted in wanted.iter().filter(|_| asks) {
                    let [searched, indexed] = found(&store, "a", wanted);
                    assert_eq!(searched, indexed, "{wanted:?}");
                }
            }
            for namespace in ["a", "ab", "none"] {
                for wanted in &wanted {
                    let [searched, indexed] = found(&store, namespace, wanted);
                    assert_eq!(searched, indexed, "{wanted:?}");
                }
            }
        });
    }
}

#[tokio::test]
async fn a_label_without_an_index_is_found_as_well() {
    let store = Store::memory(Limits::default());
    write(&store, "a", "o", Some((Some(1), true))).await;
    for number in 0..20 {
        let other = BTreeMap::from([(format!("key-{number}"), "x".to_owned())]);
        assert!(store.labelled(&things(), "a", &other).is_empty());
    }
    let [searched, indexed] = found(&store, "a", &labels((Some(1), false)));
    assert_eq!((searched.len(), &searched), (1, &indexed));
}
