//! Conversion between API versions in the process of the embedded server.

use windlass_api_older::References;
use windlass_apiserver::{Converter, Definitions};
use windlass_contract::choose_version;
use windlass_meta::GroupKind;

/// Converts objects between the older versions and the hub versions of all kinds.
#[derive(Clone, Copy, Debug)]
pub struct OlderVersions;

impl Converter for OlderVersions {
    fn knows(&self, kind: &str, from: &str, to: &str) -> bool {
        windlass_api_older::knows(kind, from, to)
    }

    fn convert(&self, object: &[u8], wanted: &str, definitions: &dyn Definitions) -> Result<Vec<u8>, String> {
        let converted = windlass_api_older::convert(object, wanted, &Known(definitions));
        converted.map_err(|error| windlass_api_older::failure(object, wanted, &error))
    }
}

/// The definitions of the server: they are never behind.
struct Known<'a>(&'a dyn Definitions);

impl References for Known<'_> {
    fn api_version(&self, kind: &GroupKind) -> Result<String, String> {
        let Some(found) = self.0.definition(&kind.group, &kind.kind) else {
            return Err(windlass_api_older::undefined(kind));
        };
        let chosen = choose_version(found.labels, |version| found.serves(version));
        let (_, version) = chosen.ok_or_else(|| windlass_api_older::without_contract(kind))?;
        Ok(kind.with_version(version).api_version())
    }
}
