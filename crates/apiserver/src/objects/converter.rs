//! Conversion of encoded objects in this process, for kinds that its user knows.

use std::collections::BTreeMap;

use crate::crds::definition::Definition;
use crate::crds::registry::Custom;

/// Converts encoded objects between the versions of their kinds, in place of a conversion webhook. It applies to definitions whose conversion
/// strategy is `None`.
pub trait Converter: std::fmt::Debug + Send + Sync + 'static {
    /// Whether objects of a kind are converted from one apiVersion to another one.
    fn knows(&self, kind: &str, from: &str, to: &str) -> bool;

    /// The object in another version, as one line of JSON that begins with its apiVersion, with the same metadata except for labels and
    /// annotations. The error is what a conversion webhook would answer: it names the object and the field.
    fn convert(&self, object: &[u8], wanted: &str, definitions: &dyn Definitions) -> Result<Vec<u8>, String>;
}

/// What a converter may ask about the definitions of the server.
pub trait Definitions {
    /// The labels of the definition of a kind, and its served versions. `None` if the server has no established definition of it.
    fn definition(&self, group: &str, kind: &str) -> Option<Defined<'_>>;
}

/// A definition, as far as converters need it.
#[derive(Debug)]
pub struct Defined<'a> {
    /// The labels of the definition.
    pub labels: &'a BTreeMap<String, String>,
    definition: &'a Definition,
}

impl Defined<'_> {
    /// Whether a version is served.
    pub fn serves(&self, version: &str) -> bool {
        self.definition.served.iter().any(|served| served.version == version)
    }
}

impl Definitions for Custom {
    fn definition(&self, group: &str, kind: &str) -> Option<Defined<'_>> {
        let definition = self.of_kind(group, kind)?;
        Some(Defined {
            labels: &definition.labels,
            definition,
        })
    }
}
