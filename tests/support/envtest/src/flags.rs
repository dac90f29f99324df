//! The flags of the programs. Pure.

use std::path::{Path, PathBuf};

/// Options of a control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether etcd syncs writes to the disk. Off by default: comparing answers needs no durability.
    pub fsync: bool,
    /// The parent of its folder: a real disk, if its speed matters. Defaults to the folder of temporary files.
    pub parent: Option<PathBuf>,
    /// Whether the controller manager runs: garbage collector, namespaces, aggregation of ClusterRoles. On by default.
    pub controllers: bool,
    /// `GOGC` of the programs: how many percent their heaps grow before garbage is collected. Theirs by default, as in production. Tests
    /// that use many control planes on few cores save a fifth of the processor time with 400.
    pub garbage_percent: Option<u16>,
    /// Feature gates, set for the API server and the controller manager.
    pub feature_gates: Vec<(String, bool)>,
    /// Additional flags of kube-apiserver, such as `--v=4`; the last one of a name wins.
    pub apiserver_flags: Vec<String>,
    /// Additional flags of kube-controller-manager.
    pub controller_manager_flags: Vec<String>,
    /// Additional flags of etcd.
    pub etcd_flags: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            fsync: false,
            parent: None,
            controllers: true,
            garbage_percent: None,
            feature_gates: Vec::new(),
            apiserver_flags: Vec::new(),
            controller_manager_flags: Vec::new(),
            etcd_flags: Vec::new(),
        }
    }
}

/// The ports of a control plane on the loopback interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) peer: u16,
    pub(crate) apiserver: u16,
    pub(crate) controller_manager: u16,
}

/// The controllers of a control plane: those that affect the answers of an API server, and none that simulate a cluster.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,clusterrole-aggregation-controller";

impl Options {
    /// The environment variables of the programs.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let percent = self.garbage_percent.map(|percent| ("GOGC", percent.to_string()));
        percent.into_iter().collect()
    }

    pub(crate) fn etcd(&self, folder: &Path, ports: Ports) -> Vec<String> {
        let (client, peer) = (local(ports.etcd), local(ports.peer));
        let mut flags = vec![
            flag("data-dir", &folder.join("etcd").to_string_lossy()),
            flag("listen-client-urls", &client),
            flag("advertise-client-urls", &client),
            flag("listen-peer-urls", &peer),
            flag("initial-advertise-peer-urls", &peer),
            flag("initial-cluster", &format!("default={peer}")),
            // Benchmarks store more than the default of two gigabytes.
            flag("quota-backend-bytes", &(8_u64 << 30).to_string()),
            flag("log-level", "warn"),
        ];
        if !self.fsync {
            flags.push("--unsafe-no-fsync".to_owned());
        }
        flags.extend(self.etcd_flags.iter().cloned());
        flags
    }

    pub(crate) fn apiserver(&self, folder: &Path, ports: Ports) -> Vec<String> {
        let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let mut flags = vec![
            flag("etcd-servers", &local(ports.etcd)),
            flag("secure-port", &ports.apiserver.to_string()),
            flag("bind-address", "127.0.0.1"),
            flag("advertise-address", "127.0.0.1"),
            flag("cert-dir", &file("run")),
            flag("client-ca-file", &file("ca.crt")),
            flag("tls-cert-file", &file("server.crt")),
            flag("tls-private-key-file", &file("server.key")),
            flag("service-account-key-file", &file("sa.pub")),
            flag("service-account-signing-key-file", &file("sa.key")),
            flag("service-account-issuer", "https://kubernetes.default.svc.cluster.local"),
            flag("service-cluster-ip-range", "10.0.0.0/16"),
            flag("authorization-mode", "RBAC"),
            // No controller creates service accounts here, but Pods must be admitted.
            flag("disable-admission-plugins", "ServiceAccount"),
            flag("allow-privileged", "true"),
            // Limits must not affect measurements and comparisons.
            flag("max-requests-inflight", "4000"),
            flag("max-mutating-requests-inflight", "2000"),
        ];
        flags.extend(self.gates());
        flags.extend(self.apiserver_flags.iter().cloned());
        flags
    }

    pub(crate) fn controller_manager(&self, folder: &Path, ports: Ports) -> Vec<String> {
        let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
        let mut flags = vec![
            flag("kubeconfig", &file("kubeconfig")),
            flag("authentication-kubeconfig", &file("kubeconfig")),
            flag("authorization-kubeconfig", &file("kubeconfig")),
            flag("bind-address", "127.0.0.1"),
            flag("secure-port", &ports.controller_manager.to_string()),
            flag("cert-dir", &file("run")),
            flag("tls-cert-file", &file("server.crt")),
            flag("tls-private-key-file", &file("server.key")),
            flag("leader-elect", "false"),
            flag("service-account-private-key-file", &file("sa.key")),
            flag("root-ca-file", &file("ca.crt")),
            flag("use-service-account-credentials", "false"),
            flag("controllers", CONTROLLERS),
            flag("kube-api-qps", "2000"),
            flag("kube-api-burst", "4000"),
        ];
        flags.extend(self.gates());
        flags.extend(self.controller_manager_flags.iter().cloned());
        flags
    }

    fn gates(&self) -> Option<String> {
        let gates: Vec<String> = self
            .feature_gates
            .iter()
            .map(|(name, on)| format!("{name}={on}"))
            .collect();
        (!gates.is_empty()).then(|| flag("feature-gates", &gates.join(",")))
    }
}

fn flag(name: &str, value: &str) -> String {
    format!("--{name}={value}")
}

fn local(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: Ports = Ports {
        etcd: 1,
        peer: 2,
        apiserver: 3,
        controller_manager: 4,
    };

    #[test]
    fn only_who_asks_for_durability_pays_for_it() {
        let has = |fsync| {
            let options = Options {
                fsync,
                ..Options::default()
            };
            let flags = options.etcd(Path::new("/x"), PORTS);
            flags.iter().any(|flag| flag == "--unsafe-no-fsync")
        };
        assert!(has(false) && !has(true));
    }

    #[test]
    fn gates_are_for_both_and_flags_of_the_caller_come_last() {
        let options = Options {
            feature_gates: vec![("A".to_owned(), true), ("B".to_owned(), false)],
            apiserver_flags: vec!["--v=4".to_owned()],
            ..Options::default()
        };
        let apiserver = options.apiserver(Path::new("/x"), PORTS);
        assert_eq!(
            apiserver[apiserver.len() - 2..],
            ["--feature-gates=A=true,B=false", "--v=4"]
        );
        let manager = options.controller_manager(Path::new("/x"), PORTS);
        assert_eq!(manager.last().unwrap(), "--feature-gates=A=true,B=false");
        assert_eq!(Options::default().gates(), None);
    }
}
