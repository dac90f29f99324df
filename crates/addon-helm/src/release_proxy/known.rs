//! The parsed values of objects: parsed once for each generation. Only digests are kept.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use windlass_api_ext::addons::HelmReleaseProxy;
use windlass_controller_runtime::{ObjectKey, key_of};
use windlass_helm::values;

use super::digest::Digest;
use super::facts;
use super::observed::Values;

/// The values of all objects.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<HashMap<ObjectKey, Read>>);

#[derive(Debug)]
struct Read {
    /// The uid and generation of the object.
    of: (String, i64),
    digest: Result<Digest, String>,
}

impl Known {
    /// The desired values of an object; else what is wrong with them. The data are included only when they may be merged into those of the
    /// release.
    pub(super) fn values(&self, proxy: &HelmReleaseProxy) -> Result<Arc<Values>, String> {
        if facts::reuses_values(proxy) {
            let data = parsed(proxy)?;
            let digest = Digest::of_values(&data);
            return Ok(Arc::new(Values {
                data: Some(data),
                digest,
            }));
        }
        let digest = self.digest(proxy)?;
        Ok(Arc::new(Values { data: None, digest }))
    }

    fn digest(&self, proxy: &HelmReleaseProxy) -> Result<Digest, String> {
        let read = || parsed(proxy).map(|data| Digest::of_values(&data));
        let meta = &proxy.metadata;
        let (Some(uid), Some(generation)) = (meta.uid.clone(), meta.generation) else {
            return read();
        };
        let (key, of) = (key_of(meta), (uid, generation));
        if let Some(known) = self.0.lock().get(&key).filter(|known| known.of == of) {
            return known.digest.clone();
        }
        let digest = read();
        let known = Read {
            of,
            digest: digest.clone(),
        };
        self.0.lock().insert(key, known);
        digest
    }

    /// The object is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }
}

fn parsed(proxy: &HelmReleaseProxy) -> Result<Map<String, Value>, String> {
    values::parse(proxy.spec.values.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn proxy(uid: &str, generation: i64, spec: &Value) -> HelmReleaseProxy {
        let mut object = json!({
            "metadata": {"name": "web", "namespace": "fleet", "uid": uid, "generation": generation},
            "spec": {"clusterRef": {}, "chartName": "a", "repoURL": "https://a.example"},
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            object["spec"][key] = value.clone();
        }
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn values_are_read_once_for_each_generation() {
        let known = Known::default();
        let digest = |text: &str| Digest::of_values(&values::parse(text).unwrap());
        let check = |uid: &str, generation, text: &str, expect: &str| {
            let found = known
                .values(&proxy(uid, generation, &json!({ "values": text })))
                .unwrap();
            assert_eq!(
                (found.digest, &found.data),
                (digest(expect), &None),
                "{uid} {generation} {text}"
            );
        };
        check("one", 1, "a: 1", "a: 1");
        // No server changes values without the generation: this proves that the text is not parsed again.
        check("one", 1, "a: 2", "a: 1");
        check("one", 2, "a: 2", "a: 2");
        check("other", 2, "a: 3", "a: 3");
        known.forget(&ObjectKey::new("fleet", "web"));
        check("other", 2, "a: 4", "a: 4");
        assert_eq!(known.0.lock().len(), 1);
    }

    #[test]
    fn an_error_is_repeated_and_ends_with_the_generation() {
        let known = Known::default();
        let of = |generation, text: &str| known.values(&proxy("one", generation, &json!({ "values": text })));
        let first = of(1, "- a").unwrap_err();
        assert_eq!(of(1, "a: 1").unwrap_err(), first);
        assert!(of(2, "a: 1").is_ok());
    }

    #[test]
    fn values_that_are_merged_include_their_data() {
        let known = Known::default();
        let upgrade = json!({"values": "a: 1", "options": {"upgrade": {"reuseValues": true}}});
        let found = known.values(&proxy("one", 1, &upgrade)).unwrap();
        assert_eq!(found.data, values::parse("a: 1").ok());
    }
}
