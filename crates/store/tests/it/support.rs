//! Helpers that write small objects.

use std::sync::Arc;

use windlass_store::{Change, CommitError, Draft, Expect, Header, Key, Record, Store, Write};

pub(crate) fn things() -> Arc<str> {
    "things.example.com".into()
}

pub(crate) fn draft(text: &str) -> Draft {
    let value = format!("{{\"rv\":\"\",\"text\":\"{text}\"}}").into_bytes();
    Draft {
        header: Header {
            uid: text.into(),
            ..Header::default()
        },
        value,
        rv_at: 7,
    }
}

pub(crate) fn put(name: &str, text: &str, expect: Expect) -> Write {
    Write {
        key: Key::new(&things(), "ns", name),
        expect,
        change: Change::Put(draft(text)),
    }
}

/// Writes an object, regardless of the stored one.
pub(crate) async fn set(store: &Store, name: &str, text: &str) -> Result<Arc<Record>, CommitError> {
    let expect = store
        .get(&things(), "ns", name)
        .map_or(Expect::Absent, |r| Expect::Revision(r.revision));
    store
        .commit(vec![put(name, text, expect)])
        .await
        .map(|mut r| r.remove(0))
}

pub(crate) async fn remove(store: &Store, name: &str) {
    let record = store.get(&things(), "ns", name).unwrap();
    let write = Write {
        key: record.key.clone(),
        expect: Expect::Revision(record.revision),
        change: Change::Delete(None),
    };
    store.commit(vec![write]).await.unwrap();
}

pub(crate) fn text(record: &Record) -> String {
    String::from_utf8(record.value.to_vec()).unwrap()
}
