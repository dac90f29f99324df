//! The scope of a request, and the schemas of other versions.

use std::fmt;
use std::sync::Arc;

use windlass_schema::Schema;

use crate::field_set::{Elem, FieldSet};
use crate::typed::Comparison;

/// The part of an object that a request can change. No other fields are owned by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scope(&'static [&'static [&'static str]]);

impl Scope {
    /// The whole object: kinds without a status subresource.
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

/// Removes a path and everything below it.
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

/// A function from apiVersion to schema.
type Lookup<'a> = dyn Fn(&str) -> Option<Arc<Schema>> + 'a;

impl<'a> Versions<'a> {
    /// All versions have the schema of the request.
    pub const ALIKE: Self = Self(None);

    /// Looks schemas up by apiVersion. Managers of versions without a schema are dropped.
    pub fn of(lookup: &'a Lookup<'a>) -> Self {
        Self(Some(lookup))
    }

    /// The schema of another version: `Err` if the version is not served, `Ok(None)` if it has the schema of the request.
    pub(crate) fn get(self, api_version: &str) -> Result<Option<Arc<Schema>>, Gone> {
        match self.0 {
            None => Ok(None),
            Some(lookup) => lookup(api_version).map(Some).ok_or(Gone),
        }
    }
}

/// The version is no longer served.
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
