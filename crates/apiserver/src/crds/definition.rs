//! What a CustomResourceDefinition defines.

use std::sync::Arc;

use crate::objects::resource::Resource;

/// What a CRD defines.
#[derive(Debug, Default)]
pub(crate) struct Definition {
    /// The versions that are served, newest first.
    pub(crate) served: Vec<Arc<Resource>>,
    /// The version that is written to the store, served or not; nothing until the definition is established.
    pub(crate) stored: Option<Arc<Resource>>,
    /// Tells whether a definition says the same.
    pub(crate) fingerprint: u64,
}

impl Definition {
    /// Ends the watches of what it defines: something else is there now.
    pub(crate) fn retire(&self) {
        if let Some(conversion) = self.stored.as_ref().and_then(|r| r.conversion.as_ref()) {
            conversion.retired.cancel();
        }
    }
}
