//! The fixed parts of a request, and the versions in which others have written.

use std::fmt;
use std::sync::Arc;

use windlass_schema::Schema;

use crate::field_set::{Elem, FieldSet};
use crate::typed::Comparison;

/// Which part of an object a request can change: nothing else is owned through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scope(&'static [&'static [&'static str]]);

impl Scope {
    /// All of it: kinds without a status subresource.
    pub const ALL: Self = Self(&[]);
    /// All but `status`: the main resource of kinds with a status subresource.
    pub const MAIN: Self = Self(&[&["status"]]);
    /// All but `spec`: the status subresource of most built-in kinds.
    pub const STATUS: Self = Self(&[&["spec"]]);
    /// Neither `spec` nor `metadata`: the status subresource of custom resources.
    pub const CUSTOM_STATUS: Self = Self(&[&["metadata"], &["spec"]]);

    /// All but these fields.
    pub const fn except(paths: &'static [&'static [&'static str]]) -> Self {
        Self(paths)
    }

    pub(crate) fn restrict(self, set: &mut FieldSet) {
        for path in self.0 {
            cut(set, path);
        }
    }

    pub(crate) fn restrict_comparison(self, comparison: &mut Comparison) {
        for set in [&mut comparison.added, &mut comparison.modified, &mut comparison.removed] {
            self.restrict(set);
        }
    }
}

/// Removes a path and all below it.
fn cut(set: &mut FieldSet, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    let elem = Elem::field(first);
    if rest.is_empty() {
        set.nodes.remove(&elem);
    } else if let Some(node) = set.nodes.get_mut(&elem) {
        cut(&mut node.below, rest);
        if node.is_empty() {
            set.nodes.remove(&elem);
        }
    }
}

/// The schemas of a kind's versions: managers may have written in another one than the request's.
#[derive(Clone, Copy)]
pub struct Versions<'a>(Option<&'a Lookup<'a>>);

/// From an apiVersion to its schema.
type Lookup<'a> = dyn Fn(&str) -> Option<Arc<Schema>> + 'a;

impl<'a> Versions<'a> {
    /// All versions are like that of the request.
    pub const ALIKE: Self = Self(None);

    /// Looks schemas up by apiVersion; who wrote in a version that has none is forgotten.
    pub fn of(lookup: &'a Lookup<'a>) -> Self {
        Self(Some(lookup))
    }

    /// The schema of another version: `Err` if the version is gone, `Ok(None)` if it is like the request's.
    pub(crate) fn get(self, api_version: &str) -> Result<Option<Arc<Schema>>, Gone> {
        match self.0 {
            None => Ok(None),
            Some(lookup) => lookup(api_version).map(Some).ok_or(Gone),
        }
    }
}

/// A version that is not served any more.
pub(crate) struct Gone;

impl fmt::Debug for Versions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Versions(..)"
        } else {
            "Versions::ALIKE"
        })
    }
}
