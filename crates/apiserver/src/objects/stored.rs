//! Stored objects of a kind, as the store has them.

use std::sync::Arc;

use windlass_store::{ListQuery, Record, Store};

/// Everything of a kind that is stored, in a namespace or anywhere.
pub(crate) fn all(store: &Store, storage: &str, namespace: Option<&str>) -> Vec<Arc<Record>> {
    let query = ListQuery {
        resource: storage,
        namespace,
        after: None,
        at: None,
    };
    // Only the past can be gone.
    store.list(&query).map(|page| page.items).unwrap_or_default()
}
