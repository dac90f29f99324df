//! What it costs to read stored objects, by the bytes of their encodings. Nothing is decoded to know it.

use windlass_meta::budget::{LIGHT_BYTES, LIGHT_COPIED_BYTES, LIGHT_LIST};
use windlass_store::{Record, Store};

use crate::objects::convert::is_ready;
use crate::objects::resource::Resource;
use crate::verbs::options::ListOptions;
use crate::verbs::pods::BUDGETS;

/// The objects of a resource, in a namespace or in all.
pub(crate) struct Cost<'a> {
    pub(crate) store: &'a Store,
    pub(crate) resource: &'a Resource,
    pub(crate) namespace: Option<&'a str>,
}

impl Cost<'_> {
    /// Whether it costs much to read one object. `decodes` says that it is needed in another form than the stored one.
    pub(crate) fn of_one(&self, name: &str, decodes: bool) -> bool {
        let namespace = self.namespace.unwrap_or("");
        let stored = self.store.get(&self.resource.storage, namespace, name);
        stored.is_some_and(|record| {
            record.value.len() > LIGHT_BYTES
                && (decodes || self.resource.converts() || !is_ready(self.resource, &record))
        })
    }

    /// Whether it costs much to evict a pod: the disruption budgets of its namespace are read.
    pub(crate) fn of_eviction(&self, name: &str) -> bool {
        let weigh = |record: &Record| record.value.len();
        self.of_one(name, true) || self.store.is_more(BUDGETS, self.namespace, LIGHT_BYTES, weigh)
    }

    /// Whether it costs much to list objects. `decodes` says that they are needed in another form than the stored one.
    pub(crate) fn of_list(&self, options: &ListOptions, decodes: bool) -> bool {
        let sizes = self.store.sizes(&self.resource.storage);
        // What was is made from the history.
        let past = if options.may_be_past() { sizes.history } else { 0 };
        let decodes = decodes || self.resource.converts() || options.needs_objects();
        sizes.objects > LIGHT_LIST
            || sizes.bytes + past > LIGHT_BYTES && self.decodes_much(options, decodes, past)
            || sizes.bytes + past > LIGHT_COPIED_BYTES
                && self.is_more(LIGHT_COPIED_BYTES, past, |record| record.value.len())
    }

    /// Whether it costs much to select the objects with which a watch begins. They are encoded later.
    pub(crate) fn of_watch(&self, options: &ListOptions) -> bool {
        let sizes = self.store.sizes(&self.resource.storage);
        let decodes = options.needs_objects();
        sizes.objects > LIGHT_LIST
            || sizes.bytes > LIGHT_BYTES && options.is_selective() && self.decodes_much(options, decodes, 0)
    }

    /// Whether many bytes are decoded: of the objects that are selected by name, if `decodes`, and of all that are not stored as they are
    /// served.
    fn decodes_much(&self, options: &ListOptions, decodes: bool, past: usize) -> bool {
        if !decodes && self.resource.conversion.is_none() {
            return false;
        }
        let name = options.fields.exact("metadata.name");
        let is_selected = |record: &Record| decodes && name.is_none_or(|name| name == record.key.name());
        self.is_more(LIGHT_BYTES, if decodes { past } else { 0 }, |record| {
            if is_selected(record) || !is_ready(self.resource, record) {
                record.value.len()
            } else {
                0
            }
        })
    }

    /// Whether the objects weigh more than `most`, with what is known of them.
    fn is_more(&self, most: usize, known: usize, weigh: impl Fn(&Record) -> usize) -> bool {
        let (resource, namespace) = (&self.resource.storage, self.namespace);
        most.checked_sub(known)
            .is_none_or(|most| self.store.is_more(resource, namespace, most, weigh))
    }
}
