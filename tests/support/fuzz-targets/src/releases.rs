//! What a workload cluster keeps as a release of Helm: read or refused, as it is and encoded as Helm does.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use windlass_helm::release;

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(data: &[u8]) {
    let secret = |stored: Vec<u8>| Secret {
        type_: Some("helm.sh/release.v1".to_owned()),
        data: Some([("release".to_owned(), ByteString(stored))].into()),
        ..Secret::default()
    };
    let _ = release::decode(&secret(data.to_vec()));
    let encoded = BASE64_STANDARD.encode(data).into_bytes();
    if let Ok(found) = release::decode(&secret(encoded)) {
        assert!(found.has_values(&found.values), "values are equal to themselves");
    }
}
