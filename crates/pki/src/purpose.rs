//! The Secrets with a workload cluster's keys: names, types, keys, and their files on a machine.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_api::labels::CLUSTER_NAME;

use crate::{CaRequest, CertificateAuthority, PkiError, PrivateKey};

/// Type of every Secret of Cluster API.
pub const SECRET_TYPE: &str = "cluster.x-k8s.io/secret";
/// Key of a certificate (or of the public service account key).
pub const TLS_CRT: &str = "tls.crt";
/// Key of a private key.
pub const TLS_KEY: &str = "tls.key";
/// Key of a kubeconfig or of bootstrap data.
pub const VALUE: &str = "value";

/// The purpose of a Secret of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// The Kubernetes authority.
    ClusterCa,
    /// The etcd authority.
    EtcdCa,
    /// The authority of the front proxy (API aggregation).
    FrontProxyCa,
    /// The key pair that signs service account tokens.
    ServiceAccount,
    /// The administrator's kubeconfig.
    Kubeconfig,
    /// Client certificate of API servers for an external etcd.
    ApiServerEtcdClient,
}

impl Purpose {
    /// The Secrets of a control plane with its own etcd, in the order of their files on machines.
    pub const CONTROL_PLANE: [Self; 4] = [Self::ClusterCa, Self::EtcdCa, Self::FrontProxyCa, Self::ServiceAccount];

    /// The suffix of the Secret's name.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::ClusterCa => "ca",
            Self::EtcdCa => "etcd",
            Self::FrontProxyCa => "proxy",
            Self::ServiceAccount => "sa",
            Self::Kubeconfig => "kubeconfig",
            Self::ApiServerEtcdClient => "apiserver-etcd-client",
        }
    }

    /// The Secret's name.
    pub fn secret_name(self, cluster: &str) -> String {
        format!("{cluster}-{}", self.suffix())
    }

    /// The files of certificate (or public key) and key below kubeadm's certificates folder; `None` for a kubeconfig.
    pub const fn files(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::ClusterCa => Some(("ca.crt", "ca.key")),
            Self::EtcdCa => Some(("etcd/ca.crt", "etcd/ca.key")),
            Self::FrontProxyCa => Some(("front-proxy-ca.crt", "front-proxy-ca.key")),
            Self::ServiceAccount => Some(("sa.pub", "sa.key")),
            Self::ApiServerEtcdClient => Some(("apiserver-etcd-client.crt", "apiserver-etcd-client.key")),
            Self::Kubeconfig => None,
        }
    }

    /// The whole Secret, ready to be created, with type, cluster label and controlling owner.
    pub fn secret(
        self,
        namespace: &str,
        cluster: &str,
        owner: &Value,
        data: &BTreeMap<&'static str, Vec<u8>>,
    ) -> Value {
        secret(namespace, &self.secret_name(cluster), cluster, owner, data)
    }
}

/// A Secret of Cluster API's type with any name (bootstrap data has the name of its machine).
pub fn secret(
    namespace: &str,
    name: &str,
    cluster: &str,
    owner: &Value,
    data: &BTreeMap<&'static str, Vec<u8>>,
) -> Value {
    let data: BTreeMap<_, _> = data.iter().map(|(key, value)| (*key, STANDARD.encode(value))).collect();
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": { (CLUSTER_NAME): cluster },
            "ownerReferences": [owner],
        },
        "type": SECRET_TYPE,
        "data": data,
    })
}

/// Content of a certificate Secret. `Debug` shows no key.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyMaterial {
    /// `tls.crt`: certificate, or public key for service accounts.
    pub crt: String,
    /// `tls.key`: private key; empty for an authority whose key is not available.
    pub key: String,
}

impl std::fmt::Debug for KeyMaterial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyMaterial").finish_non_exhaustive()
    }
}

impl KeyMaterial {
    /// New material for a purpose: an authority of this validity in days, or a bare key pair for service accounts.
    pub fn generate(purpose: Purpose, key: PrivateKey, ca_days: i32, now: Timestamp) -> Result<Self, PkiError> {
        if purpose == Purpose::ServiceAccount {
            return Ok(Self {
                crt: key.public_pem(),
                key: key.to_pem(),
            });
        }
        // All three authorities have the same common name, as in Cluster API; their keys differ.
        let request = CaRequest {
            common_name: "kubernetes".to_owned(),
            days: ca_days,
        };
        let authority = CertificateAuthority::self_signed(&request, key, now)?;
        Ok(Self {
            crt: authority.certificate().to_pem(),
            key: authority.key().to_pem(),
        })
    }

    /// Reads a Secret's decoded data. `get` returns the value of a key of the Secret.
    pub fn read<'a>(secret: &str, get: impl Fn(&str) -> Option<&'a [u8]>) -> Result<Self, PkiError> {
        let text = |key: &'static str| match get(key) {
            Some(bytes) => String::from_utf8(bytes.to_vec()).map_err(|_| PkiError::Malformed {
                what: "the Secret",
                why: format!("{key} of Secret {secret} is not text; it must be PEM"),
            }),
            None => Ok(String::new()),
        };
        let (crt, key) = (text(TLS_CRT)?, text(TLS_KEY)?);
        if crt.is_empty() {
            return Err(PkiError::Malformed {
                what: "the Secret",
                why: format!("Secret {secret} has no {TLS_CRT}; put a certificate in PEM form there"),
            });
        }
        Ok(Self { crt, key })
    }

    /// As data of a Secret.
    pub fn data(&self) -> BTreeMap<&'static str, Vec<u8>> {
        BTreeMap::from([
            (TLS_CRT, self.crt.clone().into_bytes()),
            (TLS_KEY, self.key.clone().into_bytes()),
        ])
    }

    /// As an authority that can sign.
    pub fn authority(&self) -> Result<CertificateAuthority, PkiError> {
        CertificateAuthority::from_pem(&self.crt, &self.key)
    }
}
