//! What is read for an ExtensionConfig. The only file of this controller that reads.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use parking_lot::Mutex;
use windlass_api::annotations::INJECT_CA_FROM_SECRET;
use windlass_api::meta::MetaExt as _;
use windlass_api::runtime::{ExtensionConfig, ExtensionHandler};
use windlass_controller_runtime::{Cx, ObjectKey, Seen};
use windlass_runtime_client::Extensions;

/// What one pass over an ExtensionConfig knows.
#[derive(Clone, Debug)]
pub(crate) struct Observed {
    /// The ExtensionConfig.
    pub(crate) config: Arc<ExtensionConfig>,
    /// The Secret that the annotation names, or why there is none; none without the annotation.
    pub(crate) secret: Option<Seen<Arc<Secret>>>,
    /// When this process last asked the extension, with success.
    pub(crate) asked: Option<Timestamp>,
    /// What the extension has answered now; none before it was asked.
    pub(crate) discovery: Option<Result<Vec<ExtensionHandler>, String>>,
}

/// A fact that the plan asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// The handlers of the extension.
    Discovery,
}

/// When this process last asked each extension, by uid.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<HashMap<String, Timestamp>>);

/// Namespace and name of the Secret in the annotation; none if it does not have that form.
pub(crate) fn secret_key(text: &str) -> Option<ObjectKey> {
    let (namespace, name) = text.split_once('/')?;
    let is_whole = !namespace.is_empty() && !name.is_empty() && !name.contains('/');
    is_whole.then(|| ObjectKey::new(namespace, name))
}

/// Reads what the caches have.
pub(crate) fn observe(cx: &Cx, config: Arc<ExtensionConfig>, memory: &Memory) -> Observed {
    let secret = config.metadata.annotation(INJECT_CA_FROM_SECRET).map(|text| {
        let Some(key) = secret_key(text) else {
            return Seen::Failed(format!("{text:?} has to be NAMESPACE/NAME of a Secret"));
        };
        match cx.scope().why_unread(&key.namespace) {
            Some(why) => Seen::Failed(why),
            None => cx.cache::<Secret>().get(&key).into(),
        }
    });
    let asked = memory.0.lock().get(config.metadata.uid()).copied();
    Observed {
        config,
        secret,
        asked,
        discovery: None,
    }
}

/// Asks the extension.
pub(crate) async fn discover(cx: &Cx, mut seen: Observed, extensions: &Extensions, memory: &Memory) -> Observed {
    let answer = extensions.discover(&seen.config).await;
    let mut asked = memory.0.lock();
    // Only those of ExtensionConfigs that exist are kept.
    let configs = cx.cache::<ExtensionConfig>().all();
    asked.retain(|uid, _| configs.iter().any(|config| config.metadata.uid() == uid));
    if answer.is_ok() {
        asked.insert(seen.config.metadata.uid().to_owned(), cx.now());
    }
    drop(asked);
    seen.discovery = Some(answer);
    seen
}
