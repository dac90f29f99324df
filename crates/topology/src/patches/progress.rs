//! How far patches were applied when an extension was asked. With the answer, the next plan goes on from there: each patch is applied once, and
//! all of them share one budget, however many extensions a class names.

use std::sync::Arc;

use serde_json::Value;
use windlass_gotemplate::Budget;

use super::Item;
use crate::variables::Values;

/// What is kept of one item while patches are applied.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Work {
    /// The values that the patches of the item see, as the data of templates. They are put together when the first patch matches.
    pub(super) inputs: Option<Arc<Value>>,
    /// The template before the first patch, if extensions are asked, or before the first one that may change what is not taken over.
    pub(super) original: Option<Value>,
}

/// The state of all templates at a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Progress {
    /// Values for the whole Cluster.
    pub(super) global: Values,
    /// The templates as patched so far.
    pub(super) items: Vec<Item>,
    pub(super) works: Vec<Work>,
    /// What the patches after it may cost.
    pub(crate) left: Budget,
    /// The number of the step that asks.
    pub(super) step: usize,
}

impl Progress {
    /// Whether the patches began with these values and templates. A hook that blocks changes them: then all extensions are asked again.
    pub(super) fn began_with(&self, global: &Values, items: &[Item]) -> bool {
        let same = |(now, (then, work)): (&Item, (&Item, &Work))| {
            let template = work.original.as_ref().unwrap_or(&then.template);
            now.template == *template
                && now.place == then.place
                && now.holder == then.holder
                && now.api_version == then.api_version
                && now.variables == then.variables
        };
        self.global == *global
            && self.items.len() == items.len()
            && items.iter().zip(self.items.iter().zip(&self.works)).all(same)
    }
}
