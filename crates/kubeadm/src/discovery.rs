//! The kubeconfig file of a machine that discovers its cluster by file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use windlass_api_kubeadm::bootstrap::{FileDiscovery, KubeConfigAuthExec, KubeConfigUser};

use crate::object::Object;
use windlass_gocompat::yaml;

use crate::WriteFile;

/// The default version of client authentication plugins.
const EXEC_API_VERSION: &str = "client.authentication.k8s.io/v1";

/// The file of a discovery with a kubeconfig; `None` if it names an existing file.
///
/// Unset fields of the cluster are filled in: its endpoint (`host:port`) and authority (PEM).
pub fn kubeconfig_file(discovery: &FileDiscovery, endpoint: &str, authority: &str) -> Option<WriteFile> {
    let config = discovery.kube_config.as_ref()?;
    let cluster = config.cluster.clone().unwrap_or_default();
    let server = cluster.server.unwrap_or_else(|| format!("https://{endpoint}"));
    let insecure = cluster.insecure_skip_tls_verify == Some(true);
    let authority = match cluster.certificate_authority_data {
        Some(data) => Some(data.0),
        // Clients refuse an authority together with "do not verify".
        None if insecure => None,
        None => Some(authority.as_bytes().to_vec()),
    };
    let cluster = Object::default()
        .value("server", server.into())
        .some(
            "certificate-authority-data",
            authority.map(|data| STANDARD.encode(data).into()),
        )
        .flag("insecure-skip-tls-verify", Some(insecure))
        .text("proxy-url", cluster.proxy_url.as_deref())
        .text("tls-server-name", cluster.tls_server_name.as_deref())
        .build();
    let document = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default", "cluster": cluster}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "current-context": "default",
        "users": [{"name": "default", "user": user(&config.user)}],
    });
    Some(WriteFile {
        path: discovery.kube_config_path.clone(),
        owner: "root:root".to_owned(),
        permissions: "0640".to_owned(),
        content: yaml::document(&document),
        ..WriteFile::default()
    })
}

fn user(user: &KubeConfigUser) -> Value {
    let provider = user.auth_provider.as_ref().map(|provider| {
        let config = (!provider.config.is_empty()).then(|| json!(provider.config));
        Object::default()
            .value("name", provider.name.as_str().into())
            .some("config", config)
            .build()
    });
    Object::default()
        .some("auth-provider", provider)
        .some("exec", user.exec.as_ref().map(exec))
        .build()
}

fn exec(exec: &KubeConfigAuthExec) -> Value {
    let env = exec
        .env
        .iter()
        .map(|env| json!({"name": env.name, "value": env.value}))
        .collect();
    Object::default()
        .value(
            "apiVersion",
            exec.api_version.as_deref().unwrap_or(EXEC_API_VERSION).into(),
        )
        .value("command", exec.command.as_str().into())
        .texts("args", &exec.args)
        .list("env", env)
        .value("interactiveMode", "Never".into())
        .value("provideClusterInfo", (exec.provide_cluster_info == Some(true)).into())
        .build()
}
