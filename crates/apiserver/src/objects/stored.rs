//! The stored objects of a kind.

use std::sync::Arc;

use windlass_store::{ListQuery, Record, Store};

/// All stored objects of a kind, in a namespace or in all.
pub(crate) fn all(store: &Store, storage: &str, namespace: Option<&str>) -> Vec<Arc<Record>> {
    let query = ListQuery {
        resource: storage,
        namespace,
        after: None,
        at: None,
    };
    // Only past revisions can be unavailable.
    store.list(&query).map(|page| page.items).unwrap_or_default()
}
