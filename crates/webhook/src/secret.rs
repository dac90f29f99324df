//! The Secret with the generated certificates, shared by all processes that serve the webhooks.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_controller_runtime::{ApiClient, ObjectKey, RequestError};
use windlass_meta::Clock;

use crate::error::WebhookError;
use crate::material::{Due, Material};

/// The Secret's name.
pub const SECRET_NAME: &str = "windlass-webhook-certificate";
/// The label of our Secrets.
const LABEL: (&str, &str) = ("app.kubernetes.io/managed-by", "windlass");
/// Maximum number of lost races.
const TRIES: usize = 8;

/// Where the Secret is, and for which names.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) client: kube::Client,
    pub(crate) namespace: String,
    pub(crate) names: Vec<String>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Kept {
    fn what(&self) -> String {
        format!("Secret {}/{SECRET_NAME}", self.namespace)
    }

    fn failed(&self, verb: &'static str, source: RequestError) -> WebhookError {
        WebhookError::Request {
            verb,
            what: self.what(),
            needs: format!(
                "get, list, watch, create and update on secrets in namespace {}; or bring your own certificate with \
                 --webhook-certificate-dir",
                self.namespace
            ),
            source: Box::new(source),
        }
    }

    /// The material to serve: that of the Secret, created or renewed as needed. If the Secret was deleted, the material in use is
    /// stored in a new one.
    pub(crate) async fn obtain(&self, in_use: Option<&Material>) -> Result<Material, WebhookError> {
        let client = ApiClient::from(&self.client);
        let key = ObjectKey::new(self.namespace.as_str(), SECRET_NAME);
        for _ in 0..TRIES {
            let stored = client
                .get::<Secret>(&key)
                .await
                .map_err(|error| self.failed("read", error))?;
            let known = match &stored {
                Some(secret) => self.ours(secret)?,
                None => in_use.cloned(),
            };
            let now = self.clock.now();
            let due = known
                .as_ref()
                .map_or(Due::Everything, |material| material.due(&self.names, now));
            if let (Some(material), Some(_), Due::Nothing) = (&known, &stored, due) {
                return Ok(material.clone());
            }
            let material = Material::make(known.as_ref(), &self.names, now)?;
            let secret = self.secret(&material, stored.as_ref());
            let written = match &stored {
                Some(_) => client.replace(&secret).await,
                None => client.create("", &secret).await,
            };
            match written {
                Ok(()) => {
                    tracing::info!(secret = self.what(), "made a webhook certificate");
                    return Ok(material);
                }
                // Another process wrote or deleted the Secret first: read it again.
                Err(error) if error.code() == 409 => {}
                Err(error) if error.is_not_found() && stored.is_some() => {}
                Err(error) => return Err(self.failed("write", error)),
            }
        }
        Err(WebhookError::Contended(format!("{}/{SECRET_NAME}", self.namespace)))
    }

    /// The material in our Secret, as far as it exists.
    fn ours(&self, secret: &Secret) -> Result<Option<Material>, WebhookError> {
        let labels = secret.metadata.labels.as_ref();
        if labels.and_then(|labels| labels.get(LABEL.0)).map(String::as_str) != Some(LABEL.1) {
            return Err(WebhookError::NotOurs {
                namespace: self.namespace.clone(),
                name: SECRET_NAME.to_owned(),
                label: format!("{}={}", LABEL.0, LABEL.1),
            });
        }
        Ok(material(secret))
    }

    fn secret(&self, material: &Material, stored: Option<&Secret>) -> Secret {
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        let data = BTreeMap::from([
            ("ca.crt".to_owned(), bytes(&material.authorities)),
            ("ca.key".to_owned(), bytes(&material.authority_key)),
            ("tls.crt".to_owned(), bytes(&material.certificate)),
            ("tls.key".to_owned(), bytes(&material.key)),
        ]);
        let mut secret = stored.cloned().unwrap_or_else(|| Secret {
            metadata: ObjectMeta {
                name: Some(SECRET_NAME.to_owned()),
                namespace: Some(self.namespace.clone()),
                labels: Some(BTreeMap::from([(LABEL.0.to_owned(), LABEL.1.to_owned())])),
                ..ObjectMeta::default()
            },
            type_: Some("kubernetes.io/tls".to_owned()),
            ..Secret::default()
        });
        secret.metadata.managed_fields = None;
        secret.data = Some(data);
        secret
    }
}

/// The contents of a complete Secret.
pub(crate) fn material(secret: &Secret) -> Option<Material> {
    let text = |name: &str| String::from_utf8(secret.data.as_ref()?.get(name)?.0.clone()).ok();
    Some(Material {
        authorities: text("ca.crt")?,
        authority_key: text("ca.key")?,
        certificate: text("tls.crt")?,
        key: text("tls.key")?,
    })
}
