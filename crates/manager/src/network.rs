//! Clients for API servers over the network.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use crate::registry::install;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use tokio::net::TcpListener;
use windlass_controller_runtime::{Metrics, NameSource as _, SystemNames, transport};

use crate::ManagerError;

/// A configuration from a kubeconfig file or, without one, from the default places of `kubectl` (also inside a cluster).
pub async fn config(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<kube::Config, ManagerError> {
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    if kubeconfig.is_none()
        && context.is_none()
        && let Ok(inside) = kube::Config::incluster()
    {
        return Ok(inside);
    }
    let read = match kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let file = read.map_err(|source| unusable(kubeconfig, source))?;
    let known: Vec<String> = file.contexts.iter().map(|context| context.name.clone()).collect();
    let chosen = kube::Config::from_custom_kubeconfig(file, &options).await;
    chosen.map_err(|source| {
        let place = || kubeconfig.map_or_else(|| found().to_owned(), |path| path.display().to_string());
        match source {
            KubeconfigError::LoadContext(name) if !known.contains(&name) => ManagerError::NoContext {
                place: place(),
                name: Some(name),
                known,
            },
            KubeconfigError::CurrentContextNotSet => ManagerError::NoContext {
                place: place(),
                name: None,
                known,
            },
            other => unusable(kubeconfig, other),
        }
    })
}

/// Why the kubeconfig of an option, or that of kubectl, cannot be used.
fn unusable(kubeconfig: Option<&Path>, source: KubeconfigError) -> ManagerError {
    match (kubeconfig, source) {
        (Some(path), KubeconfigError::ReadConfig(cause, _)) if cause.kind() == std::io::ErrorKind::NotFound => {
            let path = path.to_owned();
            ManagerError::NoKubeconfig { path }
        }
        (Some(path), source) => ManagerError::Kubeconfig {
            path: path.to_owned(),
            source: Box::new(source),
        },
        (None, source) => ManagerError::DefaultKubeconfig {
            place: found(),
            source: Box::new(source),
        },
    }
}

/// The places of the default kubeconfig.
fn found() -> &'static str {
    let variable = std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty());
    variable.map_or("~/.kube/config", |_| "$KUBECONFIG")
}

/// A name of this process that no other one has: the host, and random digits.
pub fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let names = SystemNames;
    format!("{}_{}{}", host.trim(), names.suffix(8), names.suffix(8))
}

/// A client for controllers, whose requests share one HTTP/2 connection.
pub fn connect(config: &kube::Config, metrics: &Metrics) -> Result<kube::Client, ManagerError> {
    transport::connect(config, metrics).map_err(|source| failed(config, source))
}

/// A client for single requests, such as an installation: it retries while the server reports that it is not ready. The
/// server must answer.
pub async fn connect_patiently(config: &kube::Config) -> Result<kube::Client, ManagerError> {
    let client = transport::connect_patiently(config, &Metrics::new()).map_err(|source| failed(config, source))?;
    let version = client.apiserver_version().await;
    let version = version.map_err(|source| failed(config, source))?;
    if is_too_old(&version.major, &version.minor) {
        return Err(ManagerError::TooOld {
            url: config.cluster_url.to_string(),
            version: version.git_version,
        });
    }
    Ok(client)
}

/// Whether a server is older than v1.22, as v1.14 of Cluster API asks for: topologies need its server-side apply. Distributions add to the number
/// (`27+`). One that cannot be read is no reason.
fn is_too_old(major: &str, minor: &str) -> bool {
    let number = |text: &str| -> Option<u32> {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        text[..end].parse().ok()
    };
    matches!((number(major), number(minor)), (Some(major), Some(minor)) if (major, minor) < (1, 22))
}

fn failed(config: &kube::Config, source: kube::Error) -> ManagerError {
    ManagerError::Connect {
        url: config.cluster_url.to_string(),
        source: Box::new(source),
    }
}

/// Installs CRDs, or checks that they exist.
pub async fn definitions(
    client: &kube::Client,
    wanted: &[serde_json::Value],
    install_them: bool,
) -> Result<(), ManagerError> {
    if install_them {
        let sent = install::install(client, wanted, install::Conversion::Webhook)
            .await
            .map_err(ManagerError::Install)?;
        tracing::info!(applied = sent.len(), "CustomResourceDefinitions are up to date");
        return Ok(());
    }
    let missing = install::missing(client, wanted).await.map_err(ManagerError::Install)?;
    if missing.is_empty() {
        Ok(())
    } else {
        Err(ManagerError::NoDefinitions { missing })
    }
}

/// Listens on a TCP port. Errors name `option`, with which the user can choose another port.
pub async fn listen(address: SocketAddr, option: &'static str) -> Result<TcpListener, ManagerError> {
    let mut bound = TcpListener::bind(address).await;
    // A machine may have no IPv6.
    let is_taken = matches!(&bound, Err(error) if error.kind() == std::io::ErrorKind::AddrInUse);
    if bound.is_err() && !is_taken && address.ip() == Ipv6Addr::UNSPECIFIED {
        bound = TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await;
    }
    bound.map_err(|source| {
        if source.kind() == std::io::ErrorKind::AddrInUse {
            ManagerError::PortInUse { address, option }
        } else {
            ManagerError::Listen { address, source }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_too_old_before_1_22() {
        for (major, minor, expect) in [
            ("1", "21", true),
            ("0", "30", true),
            ("1", "22", false),
            ("1", "27+", false),
            ("2", "0", false),
        ] {
            assert_eq!(is_too_old(major, minor), expect, "{major}.{minor}");
        }
        assert!(!is_too_old("", "") && !is_too_old("1", "?"));
    }
}
