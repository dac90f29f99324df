//! Makes authorities and the administrator's kubeconfig. Keys are ordered all at once, so that they are made side by side.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use windlass_controller_runtime::{Codec as _, Cx, ObjectKey};
use windlass_pki::purpose::{TLS_CRT, TLS_KEY};
use windlass_pki::rotation::{
    self, AUTHORITIES, NEXT_CRT, NEXT_KEY, ROTATION, ROTATION_DROPPED, ROTATION_HOLDS, ROTATION_SINCE, ROTATION_STAGE,
    ROTATION_WORKERS, SecretChange,
};
use windlass_pki::{KeyAlgorithm, KeyMaterial, KeyPool, Kubeconfig, LeafRequest, PendingKey, Purpose, RotationStage};

use super::ApplyError;
use crate::desired;
use crate::facts::Facts;
use crate::names::SECRETS_MANAGER;
use crate::observe::Observed;
use crate::plan::rotation::{RotatedKubeconfig, Signer, StageChange};
use crate::plan::{Action, Plan};

const DEFAULT_CA_DAYS: i32 = 3650;

pub(super) struct Maker<'a> {
    cx: &'a Cx,
    seen: &'a Observed,
    ordered: BTreeMap<Purpose, PendingKey>,
    made: BTreeMap<Purpose, KeyMaterial>,
}

impl<'a> Maker<'a> {
    pub(super) fn new(cx: &'a Cx, keys: &KeyPool, seen: &'a Observed, plan: &Plan) -> Self {
        let algorithm = seen.facts.as_ref().map(algorithm).unwrap_or_default();
        let ordered = plan.actions.iter().filter_map(|action| match action {
            Action::CreateCertificate { purpose } => Some((*purpose, keys.take(algorithm))),
            Action::WriteKubeconfig { .. } | Action::RotateKubeconfig(_) => {
                Some((Purpose::Kubeconfig, keys.take(algorithm)))
            }
            Action::StageAuthority(change) if change.makes_pair => Some((change.purpose, keys.take(algorithm))),
            _ => None,
        });
        Self {
            cx,
            seen,
            ordered: ordered.collect(),
            made: BTreeMap::new(),
        }
    }

    fn facts(&self) -> Result<&'a Facts, ApplyError> {
        let facts = self.seen.facts.as_ref();
        facts.ok_or_else(|| ApplyError::Gone("the Cluster is not known".to_owned()))
    }

    fn key(&self, purpose: Purpose) -> Result<ObjectKey, ApplyError> {
        let facts = self.facts()?;
        let name = purpose.secret_name(&facts.cluster.name);
        Ok(ObjectKey::new(facts.control_plane.namespace.as_str(), name))
    }

    fn order(&self, purpose: Purpose) -> Result<PendingKey, ApplyError> {
        let key = self.ordered.get(&purpose).cloned();
        key.ok_or_else(|| ApplyError::Gone("a key that was not ordered".to_owned()))
    }

    pub(super) async fn create(&mut self, purpose: Purpose) -> Result<(), ApplyError> {
        let material = self.generate(purpose).await?;
        self.write(purpose, &material.data()).await?;
        self.made.insert(purpose, material);
        Ok(())
    }

    async fn generate(&self, purpose: Purpose) -> Result<KeyMaterial, ApplyError> {
        let facts = self.facts()?;
        let days = &facts.control_plane.kubeadm["clusterConfiguration"]["caCertificateValidityPeriodDays"];
        let days = days.as_i64().and_then(|d| i32::try_from(d).ok());
        let key = self.order(purpose)?.await?;
        let now = self.cx.now();
        Ok(KeyMaterial::generate(
            purpose,
            key,
            days.unwrap_or(DEFAULT_CA_DAYS),
            now,
        )?)
    }

    async fn write(&self, purpose: Purpose, data: &BTreeMap<&'static str, Vec<u8>>) -> Result<(), ApplyError> {
        let facts = self.facts()?;
        let secret = purpose.secret(
            &facts.control_plane.namespace,
            &facts.cluster.name,
            &json!(desired::owner(&facts.control_plane)),
            data,
        );
        let secret: Secret = Secret::from_json(&secret).map_err(|e| ApplyError::Gone(e.to_string()))?;
        // Never applied: what another writer put there in the meantime must not be overwritten.
        self.cx.writer().create(SECRETS_MANAGER, &secret).await?;
        Ok(())
    }

    pub(super) async fn own(&self, purpose: Purpose, patch: &Value) -> Result<(), ApplyError> {
        self.change(purpose, patch).await
    }

    pub(super) async fn write_kubeconfig(&self, server: &str, replace: bool) -> Result<(), ApplyError> {
        let ca = self.authority()?;
        let text = self.kubeconfig(server, &ca.crt, &ca).await?;
        if !replace {
            let data = BTreeMap::from([("value", text.into_bytes())]);
            return self.write(Purpose::Kubeconfig, &data).await;
        }
        // The mark of a rotation tells of another certificate.
        let patch = json!({
            "metadata": { "annotations": { AUTHORITIES: null } },
            "data": { "value": STANDARD.encode(text) },
        });
        self.change(Purpose::Kubeconfig, &patch).await
    }

    /// An administrator's kubeconfig with a new client certificate.
    async fn kubeconfig(&self, server: &str, trusted: &str, signer: &KeyMaterial) -> Result<String, ApplyError> {
        let facts = self.facts()?;
        let key = self.order(Purpose::Kubeconfig)?.await?;
        let leaf = signer
            .authority()?
            .issue(&LeafRequest::administrator(), &key, self.cx.now())?;
        let kubeconfig = Kubeconfig {
            cluster: facts.cluster.name.clone(),
            server: server.to_owned(),
            authority: trusted.to_owned(),
            client_certificate: leaf.to_pem(),
            client_key: key.to_pem(),
        };
        Ok(kubeconfig.render())
    }

    async fn change(&self, purpose: Purpose, patch: &Value) -> Result<(), ApplyError> {
        let key = self.key(purpose)?;
        let writer = self.cx.writer();
        writer.merge_patch::<Secret>(SECRETS_MANAGER, &key, patch).await?;
        Ok(())
    }

    /// One write takes pair and stage along: an interruption leaves either the old stage or the new one.
    pub(super) async fn stage(&self, change: &StageChange) -> Result<(), ApplyError> {
        let current = self.pair(change.purpose, (TLS_CRT, TLS_KEY))?;
        let changed = match change.to {
            Some(RotationStage::Preparing) => {
                let next = if change.makes_pair {
                    self.generate(change.purpose).await?
                } else {
                    self.pair(change.purpose, (NEXT_CRT, NEXT_KEY))?
                };
                rotation::preparing(&current, &next)?
            }
            Some(RotationStage::Completing) => {
                let next = self.pair(change.purpose, (NEXT_CRT, NEXT_KEY))?;
                rotation::check(change.purpose, &next)?;
                rotation::completing(&current, &next)?
            }
            Some(RotationStage::Renewing) => SecretChange::default(),
            None if change.keeps_next => rotation::alone_again(&current)?,
            Some(RotationStage::Dropping) | None => rotation::alone(&current)?,
        };
        let crt = changed.0.get(TLS_CRT).and_then(Option::as_ref).unwrap_or(&current.crt);
        let holds = rotation::held(change.purpose, crt);
        let dropped = match change.to {
            Some(RotationStage::Dropping) => rotation::dropped(&current)?,
            _ => None,
        };
        let encoded = |value: &Option<String>| value.as_ref().map(|text| STANDARD.encode(text));
        let data: BTreeMap<_, _> = changed.0.iter().map(|(key, value)| (*key, encoded(value))).collect();
        let annotations = json!({
            ROTATION: change.to.map(|_| &change.name),
            ROTATION_STAGE: change.to.map(RotationStage::as_str),
            ROTATION_SINCE: change.to.map(|_| change.since.to_string()),
            ROTATION_WORKERS: null,
            ROTATION_HOLDS: change.to.map(|_| holds),
            ROTATION_DROPPED: dropped,
        });
        let patch = json!({
            "metadata": {
                "uid": change.uid,
                "resourceVersion": change.resource_version,
                "annotations": annotations,
            },
            "data": data,
        });
        self.change(change.purpose, &patch).await
    }

    pub(super) async fn mark_workers(&self, uid: &str, version: &str, before: Timestamp) -> Result<(), ApplyError> {
        let annotations = json!({ ROTATION_WORKERS: before.to_string() });
        let metadata = json!({ "uid": uid, "resourceVersion": version, "annotations": annotations });
        self.change(Purpose::ClusterCa, &json!({ "metadata": metadata })).await
    }

    pub(super) async fn rotate_kubeconfig(&self, rotated: &RotatedKubeconfig) -> Result<(), ApplyError> {
        let keys = match rotated.signer {
            Signer::Current => (TLS_CRT, TLS_KEY),
            Signer::Next => (NEXT_CRT, NEXT_KEY),
        };
        let signer = self.pair(Purpose::ClusterCa, keys)?;
        let text = self.kubeconfig(&rotated.server, &rotated.authorities, &signer).await?;
        let patch = json!({
            "metadata": { "annotations": { AUTHORITIES: rotated.mark } },
            "data": { "value": STANDARD.encode(text) },
        });
        self.change(Purpose::Kubeconfig, &patch).await
    }

    /// A pair in the Secret of an authority.
    fn pair(&self, purpose: Purpose, (crt, key): (&str, &str)) -> Result<KeyMaterial, ApplyError> {
        let secret = self.seen.secrets.get(&purpose);
        let gone = || ApplyError::Gone(format!("the Secret of authority {} is gone", purpose.suffix()));
        let secret = secret.ok_or_else(gone)?;
        let name = secret.metadata.name.as_deref().unwrap_or_default();
        let data = secret.data.as_ref();
        let material = KeyMaterial::read(name, |wanted| {
            let key = if wanted == TLS_CRT { crt } else { key };
            data.and_then(|data| data.get(key)).map(|bytes| bytes.0.as_slice())
        })?;
        Ok(material)
    }

    fn authority(&self) -> Result<KeyMaterial, ApplyError> {
        if let Some(made) = self.made.get(&Purpose::ClusterCa) {
            return Ok(made.clone());
        }
        self.pair(Purpose::ClusterCa, (TLS_CRT, TLS_KEY))
    }
}

fn algorithm(facts: &Facts) -> KeyAlgorithm {
    let name = &facts.control_plane.kubeadm["clusterConfiguration"]["encryptionAlgorithm"];
    // The schema knows the same names; anything else cannot be stored.
    name.as_str().unwrap_or_default().parse().unwrap_or_default()
}
