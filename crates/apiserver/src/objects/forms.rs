//! Stored objects in other versions, shared among the watches that show them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use windlass_store::Record;

use crate::error::ApiError;
use crate::objects::resource::Resource;

/// The number of objects that are kept, and their bytes. The last one may have any size.
const KEPT: usize = 1024;
const KEPT_BYTES: usize = 8 << 20;

/// The addresses of the object and of the resource. They are of no other value as long as the form refers to both.
type Place = (usize, usize);

/// One form. Others wait while it is made.
type Slot = Arc<Mutex<Option<Arc<Record>>>>;

struct Form {
    record: Weak<Record>,
    resource: Weak<Resource>,
    slot: Slot,
}

#[derive(Default)]
struct Kept {
    forms: HashMap<Place, Form>,
    /// The places from the oldest to the newest, with the bytes of the objects.
    order: VecDeque<(Place, usize)>,
    bytes: usize,
}

/// The most recent forms.
#[derive(Default)]
pub(crate) struct Forms(Mutex<Kept>);

impl Forms {
    /// The form of an object in the version of a resource: the one that another watch got, or that of `make`.
    pub(crate) fn get(
        &self,
        record: &Arc<Record>,
        resource: &Arc<Resource>,
        make: impl FnOnce() -> Result<Arc<Record>, ApiError>,
    ) -> Result<Arc<Record>, ApiError> {
        let slot = self.slot(record, resource);
        let mut form = slot.lock();
        if let Some(known) = &*form {
            return Ok(Arc::clone(known));
        }
        let made = make()?;
        *form = Some(Arc::clone(&made));
        Ok(made)
    }

    fn slot(&self, record: &Arc<Record>, resource: &Arc<Resource>) -> Slot {
        let place = (Arc::as_ptr(record).addr(), Arc::as_ptr(resource).addr());
        let mut kept = self.0.lock();
        if let Some(known) = kept.forms.get(&place) {
            debug_assert!(std::ptr::eq(known.record.as_ptr(), Arc::as_ptr(record)));
            debug_assert!(std::ptr::eq(known.resource.as_ptr(), Arc::as_ptr(resource)));
            return Arc::clone(&known.slot);
        }
        let size = record.value.len();
        kept.bytes += size;
        while kept.order.len() >= KEPT || kept.bytes > KEPT_BYTES {
            let Some((oldest, bytes)) = kept.order.pop_front() else {
                break;
            };
            kept.forms.remove(&oldest);
            kept.bytes -= bytes;
        }
        let slot = Slot::default();
        kept.order.push_back((place, size));
        let form = Form {
            record: Arc::downgrade(record),
            resource: Arc::downgrade(resource),
            slot: Arc::clone(&slot),
        };
        kept.forms.insert(place, form);
        slot
    }
}
