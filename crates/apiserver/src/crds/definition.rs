//! The resources of a CustomResourceDefinition.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::objects::resource::Resource;

/// The resources of a CRD.
#[derive(Debug, Clone, Default)]
pub(crate) struct Definition {
    /// The served versions, newest first.
    pub(crate) served: Vec<Arc<Resource>>,
    /// The storage version, served or not; `None` until the definition is established.
    pub(crate) stored: Option<Arc<Resource>>,
    /// A hash of the definition, to detect changes.
    pub(crate) fingerprint: u64,
    /// The labels of the definition.
    pub(crate) labels: BTreeMap<String, String>,
}

impl Definition {
    /// Ends the watches of its resources, because the definition has changed.
    pub(crate) fn retire(&self) {
        if let Some(conversion) = self.stored.as_ref().and_then(|r| r.conversion.as_ref()) {
            conversion.retired.cancel();
        }
    }
}
