//! A cluster as the controllers would make it, without any controller: to measure the cost of one without clients.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use windlass_controller_runtime::ObjectKey;
use windlass_pki::{CaRequest, CertificateAuthority, KeyAlgorithm, PrivateKey};

use super::{Authorities, Authority, Before, Cloud, CloudError, Endpoint, Member, NodeSpec};

const VERSION: &str = "v1.35.0";

fn authority(cluster: &ObjectKey, name: &str, now: Timestamp) -> Result<Arc<Authority>, CloudError> {
    PrivateKey::generate(KeyAlgorithm::EcdsaP256)
        .and_then(|key| CertificateAuthority::self_signed(&CaRequest::new(name), key, now))
        .map(|authority| Arc::new(Authority::alone(authority)))
        .map_err(|error| CloudError::Certificates {
            cluster: cluster.clone(),
            why: error.to_string(),
        })
}

impl Cloud {
    /// Makes a cluster that rests: its API server, with control plane machines, their etcd members and Pods, workers, and all
    /// Nodes registered. No client is connected to it.
    pub async fn simulate(&self, name: &str, control_planes: usize, workers: usize) -> Result<(), CloudError> {
        let (key, now) = (ObjectKey::new("default", name), Timestamp::now());
        let address = self.create_load_balancer_on_free_port(&key, &BTreeSet::new()).await?;
        let authorities = Authorities {
            cluster: authority(&key, "kubernetes", now)?,
            etcd: Some(authority(&key, "etcd-ca", now)?),
        };
        let endpoint = Endpoint {
            host: address.ip().to_string(),
            port: address.port(),
        };
        for index in 0..control_planes + workers {
            let control_plane = index < control_planes;
            let machine = if control_plane {
                format!("{name}-control-plane-{index:05}")
            } else {
                format!("{name}-md-0-{index:010}")
            };
            self.start_vm(&key, &machine, now).await?;
            if control_plane {
                let member = Member {
                    name: &machine,
                    version: VERSION,
                    before: Before::Nothing,
                    endpoint: &endpoint,
                    since: now,
                    authorities: &authorities,
                    pins: &[],
                    external_etcd: false,
                    prepared: false,
                    others: &BTreeSet::new(),
                };
                self.start_control_plane(&key, &member, now).await?;
            }
            let node = NodeSpec {
                provider_id: format!("in-memory:////{machine}"),
                version: VERSION.to_owned(),
                control_plane,
                pins: Vec::new(),
                joined: false,
                name: machine,
            };
            self.register_node(&key, &node, now).await?;
        }
        Ok(())
    }
}
