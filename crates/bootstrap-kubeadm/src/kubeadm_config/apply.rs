//! All writes, in the order of the plan.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use windlass_api::core::v1beta2::Cluster;
use windlass_api_kubeadm::bootstrap::KubeadmConfig;
use windlass_cluster_cache::{Outage, Workload};
use windlass_controller_runtime::owner::controller_ref;
use windlass_controller_runtime::{
    ApiClient, Codec, Cx, ObjectKey, PatchKind, ReconcileError, RequestError, Seen, key_of,
};
use windlass_pki::{KeyAlgorithm, KeyMaterial, KeyPool, PkiError, Purpose, authority};

use crate::workload::WorkloadClusters;

use super::observed::Observed;
use super::plan::{Action, Plan};
use super::status::{Done, Failure};
use super::{MANAGER, token};

/// Carries a plan out; stops at the first failure.
pub(super) async fn apply(
    cx: &Cx,
    clusters: &dyn WorkloadClusters,
    keys: &KeyPool,
    seen: &Observed,
    plan: &Plan,
) -> Done {
    let mut done = Done::default();
    for (index, action) in plan.actions.iter().enumerate() {
        let step = Step {
            cx,
            clusters,
            keys,
            seen,
        };
        match step.carry_out(action).await {
            Ok(generation) => done.generation = generation.or(done.generation),
            Err(error) => {
                let lost_lock = error.lost_lock;
                done.failed = Some(Failure {
                    action: index,
                    lost_lock,
                    error: error.error,
                });
                break;
            }
        }
    }
    done
}

struct Step<'a> {
    cx: &'a Cx,
    clusters: &'a dyn WorkloadClusters,
    keys: &'a KeyPool,
    seen: &'a Observed,
}

struct StepError {
    lost_lock: bool,
    error: ReconcileError,
}

impl<E: Into<ReconcileError>> From<E> for StepError {
    fn from(error: E) -> Self {
        Self {
            lost_lock: false,
            error: error.into(),
        }
    }
}

impl Step<'_> {
    /// Does one action; answers with the generation of the config if its spec was written.
    async fn carry_out(&self, action: &Action) -> Result<Option<i64>, StepError> {
        match action {
            Action::TakeLock { stale, object } => self.take_lock(stale.as_deref(), object).await?,
            Action::ReleaseLock { key, uid } => self.delete_lock(key, uid).await?,
            Action::GenerateCertificates(purposes) => self.generate(purposes).await?,
            Action::CreateToken { token, expires } => self.create_token(token.secret(*expires)).await?,
            Action::ExtendToken { token, expires } => {
                let key = ObjectKey::new(token::NAMESPACE, token.secret_name());
                let patch = token::extension(*expires);
                self.workload()?
                    .patch::<Secret>("", &key, PatchKind::Merge, &patch)
                    .await
                    .map_err(|error| remote("extend the bootstrap token", &error))?;
            }
            Action::ApplySpec(object) => {
                let config: KubeadmConfig = decode(object)?;
                let applied = self.cx.writer().apply(MANAGER, &config).await?;
                return Ok(applied.object.metadata.generation);
            }
            Action::CreateData(content) => {
                let secret: Secret = decode(&content.0)?;
                self.cx.writer().create(MANAGER, &secret).await?;
            }
            Action::ReplaceData { uid, content } => self.replace_data(uid, &content.0).await?,
            Action::AdoptData { secret, owners } => {
                let patch = json!({
                    "metadata": {
                        "uid": secret.uid,
                        "resourceVersion": secret.resource_version,
                        "ownerReferences": owners,
                    },
                });
                let key = key_of(secret);
                self.cx.writer().merge_patch::<Secret>(MANAGER, &key, &patch).await?;
            }
        }
        Ok(None)
    }

    async fn take_lock(&self, stale: Option<&str>, object: &Value) -> Result<(), StepError> {
        let lock: ConfigMap = decode(object)?;
        if let Some(uid) = stale {
            self.delete_lock(&key_of(&lock.metadata), uid).await?;
        }
        match self.cx.writer().create(MANAGER, &lock).await {
            Ok(_) => Ok(()),
            Err(error) => Err(StepError {
                lost_lock: error.is_already_exists(),
                error: error.into(),
            }),
        }
    }

    async fn delete_lock(&self, key: &ObjectKey, uid: &str) -> Result<(), StepError> {
        let lock = ConfigMap {
            metadata: ObjectMeta {
                name: Some(key.name.clone()),
                namespace: Some(key.namespace.clone()),
                uid: Some(uid.to_owned()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        self.cx.writer().delete(&lock).await?;
        Ok(())
    }

    /// All keys are asked for at once, so that they are made side by side.
    async fn generate(&self, purposes: &[Purpose]) -> Result<(), StepError> {
        let Seen::Found(cluster) = &self.seen.cluster else {
            return Ok(());
        };
        let spec = self.seen.config.spec.clone().unwrap_or_default();
        let configuration = spec.cluster_configuration.unwrap_or_default();
        let algorithm: KeyAlgorithm = configuration
            .encryption_algorithm
            .as_deref()
            .unwrap_or_default()
            .parse()
            .map_err(|error| crypto(&error))?;
        let days = configuration
            .ca_certificate_validity_period_days
            .unwrap_or(authority::DEFAULT_CA_DAYS);
        let pending: Vec<_> = purposes
            .iter()
            .map(|purpose| (*purpose, self.keys.take(algorithm)))
            .collect();
        let owner = json!(controller_ref(&*self.seen.config));
        for (purpose, key) in pending {
            let key = key.await.map_err(|error| crypto(&error))?;
            let material = KeyMaterial::generate(purpose, key, days, self.cx.now()).map_err(|error| crypto(&error))?;
            let name = cluster.metadata.name.as_deref().unwrap_or_default();
            let secret = purpose.secret(namespace(cluster), name, &owner, &material.data());
            let secret: Secret = decode(&secret)?;
            match self.cx.writer().create(MANAGER, &secret).await {
                // One that came from elsewhere meanwhile is as good: it will be seen and used.
                Err(error) if error.is_already_exists() => {}
                other => {
                    other?;
                }
            }
        }
        Ok(())
    }

    /// The workload cluster, in which tokens are.
    fn workload(&self) -> Result<ApiClient, ReconcileError> {
        let key = self.seen.cluster_key().unwrap_or_default();
        match self.clusters.workload(&key) {
            Workload::Up(client) => Ok(ApiClient::from(&client)),
            Workload::Down(Outage { why, .. }) | Workload::NotTried(why) => {
                Err(ReconcileError::new("NotConnected", why))
            }
        }
    }

    async fn create_token(&self, secret: Value) -> Result<(), StepError> {
        let secret: Secret = decode(&secret)?;
        self.workload()?
            .create("", &secret)
            .await
            .map_err(|error| remote("create the bootstrap token in the workload cluster", &error))?;
        Ok(())
    }

    async fn replace_data(&self, uid: &str, content: &Value) -> Result<(), StepError> {
        let metadata = &content["metadata"];
        let mut patch = json!({
            "metadata": {
                "uid": uid,
                "labels": metadata["labels"],
                "ownerReferences": metadata["ownerReferences"],
            },
            "data": content["data"],
        });
        if let Some(annotations) = metadata.get("annotations") {
            patch["metadata"]["annotations"] = annotations.clone();
        }
        let key = ObjectKey::new(
            metadata["namespace"].as_str().unwrap_or_default(),
            metadata["name"].as_str().unwrap_or_default(),
        );
        self.cx.writer().merge_patch::<Secret>(MANAGER, &key, &patch).await?;
        Ok(())
    }
}

fn namespace(cluster: &Cluster) -> &str {
    cluster.metadata.namespace.as_deref().unwrap_or_default()
}

fn decode<T: Codec>(value: &Value) -> Result<T, ReconcileError> {
    T::from_json(value).map_err(|error| ReconcileError::new("Encoding", error.to_string()))
}

fn crypto(error: &PkiError) -> ReconcileError {
    ReconcileError::new("Certificates", format!("Failed to make certificates: {error}"))
}

fn remote(what: &str, error: &RequestError) -> ReconcileError {
    ReconcileError::new("Remote", format!("failed to {what}: {error}"))
}
