//! Objects and changes as stores hand them out: without their type, and with it.

use std::any::Any;
use std::sync::Arc;

use windlass_api::codec::{Codec, Stored};

/// An object of any kind.
pub(crate) type AnyObject = Arc<dyn Stored>;
/// A change of an object of any kind.
pub(crate) type AnyChange = Change<dyn Stored>;

/// One change of a cached object: only `new` when it was added, only `old` when it was deleted.
#[derive(Debug)]
pub struct Change<T: ?Sized> {
    /// The object before the change.
    pub old: Option<Arc<T>>,
    /// The object after the change.
    pub new: Option<Arc<T>>,
}

impl<T: ?Sized> Clone for Change<T> {
    fn clone(&self) -> Self {
        Self {
            old: self.old.clone(),
            new: self.new.clone(),
        }
    }
}

impl<T: ?Sized> Change<T> {
    /// The new object, or the old one after a deletion.
    pub fn object(&self) -> Option<&Arc<T>> {
        self.new.as_ref().or(self.old.as_ref())
    }
}

impl AnyChange {
    /// The same change with its type. `None` if the store has another type, which never happens.
    pub(crate) fn typed<T: Codec>(&self) -> Change<T> {
        Change {
            old: self.old.clone().and_then(typed),
            new: self.new.clone().and_then(typed),
        }
    }
}

/// The object as the type of its store.
pub(crate) fn typed<T: Codec>(object: AnyObject) -> Option<Arc<T>> {
    let object: Arc<dyn Any + Send + Sync> = object;
    object.downcast().ok()
}

/// [`typed`] for a reference.
pub(crate) fn typed_ref<T: Codec>(object: &dyn Stored) -> Option<&T> {
    let object: &dyn Any = object;
    object.downcast_ref()
}
