//! The scope of a request, and the schemas of other versions.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
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

/// The versions of a kind: managers may have written in another one than the request's.
#[derive(Clone, Copy)]
pub struct Versions<'a> {
    schemas: Option<&'a Lookup<'a>>,
    convert: Option<&'a Convert<'a>>,
}

/// A function from apiVersion to schema.
type Lookup<'a> = dyn Fn(&str) -> Option<Arc<Schema>> + 'a;
/// A function from an object and an apiVersion to the object in this version; `None` if it cannot be converted.
type Convert<'a> = dyn Fn(&Value, &str) -> Option<Value> + 'a;

impl<'a> Versions<'a> {
    /// All versions have the schema of the request.
    pub const ALIKE: Self = Self {
        schemas: None,
        convert: None,
    };

    /// Looks schemas up by apiVersion. Managers of versions without a schema are dropped.
    pub fn of(lookup: &'a Lookup<'a>) -> Self {
        Self {
            schemas: Some(lookup),
            convert: None,
        }
    }

    /// With a conversion of objects. Without one, objects of all versions have the same fields.
    #[must_use]
    pub fn converting(self, convert: &'a Convert<'a>) -> Self {
        Self {
            convert: Some(convert),
            ..self
        }
    }

    /// Whether objects of another version have other fields.
    pub(crate) fn converts(self) -> bool {
        self.convert.is_some()
    }

    /// An object in another version; `None` if it cannot be converted.
    pub(crate) fn converted<'v>(self, object: &'v Value, api_version: &str) -> Option<Cow<'v, Value>> {
        match self.convert {
            None => Some(Cow::Borrowed(object)),
            Some(convert) => convert(object, api_version).map(Cow::Owned),
        }
    }

    /// The schema of another version: `Err` if the version is not served, `Ok(None)` if it has the schema of the request.
    pub(crate) fn get(self, api_version: &str) -> Result<Option<Arc<Schema>>, Gone> {
        match self.schemas {
            None => Ok(None),
            Some(lookup) => lookup(api_version).map(Some).ok_or(Gone),
        }
    }
}

/// The version is no longer served.
pub(crate) struct Gone;

impl fmt::Debug for Versions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.schemas.is_some() {
            "Versions(..)"
        } else {
            "Versions::ALIKE"
        })
    }
}
