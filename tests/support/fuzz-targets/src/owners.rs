//! Owner references of an object as it is created and as it is then changed, each JSON, separated by a zero byte.

use serde_json::{Value, json};

use crate::served::{self, request};

const PATH: &str = "/api/v1/namespaces/default/configmaps";
/// What an answer may have beside what was sent.
const MOST: usize = 1 << 20;

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(data: &[u8]) {
    let mut requests = Vec::new();
    for (step, part) in data.split(|byte| *byte == 0).take(3).enumerate() {
        let Ok(owners) = serde_json::from_slice::<Value>(part) else {
            return;
        };
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "o", "namespace": "default", "ownerReferences": owners},
        });
        requests.push(match step {
            0 => request("POST", PATH, &object),
            1 => request("PUT", &format!("{PATH}/o"), &object),
            _ => {
                let mut patch = request("PATCH", &format!("{PATH}/o?fieldManager=f&force=true"), &object);
                let apply = http::HeaderValue::from_static("application/apply-patch+yaml");
                patch.headers_mut().insert("content-type", apply);
                patch
            }
        });
    }
    requests.push(request("DELETE", &format!("{PATH}/o"), &json!({})));
    for answer in served::answers(requests) {
        assert!(
            answer.bytes.len() <= MOST + 4 * data.len(),
            "{} bytes for {}",
            answer.bytes.len(),
            data.len()
        );
    }
}
