//! Kubeconfigs in the form of Cluster API's Secret `<cluster>-kubeconfig`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use windlass_gocompat::yaml;

use crate::{Certificate, PkiError};

/// The contents of an administrator's kubeconfig.
#[derive(Clone)]
pub struct Kubeconfig {
    /// Name of the cluster; the context is `<cluster>-admin@<cluster>` and the user `<cluster>-admin`.
    pub cluster: String,
    /// URL of the API server.
    pub server: String,
    /// Certificates to trust, PEM.
    pub authority: String,
    /// Client certificate, PEM.
    pub client_certificate: String,
    /// Client key, PEM.
    pub client_key: String,
}

impl std::fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kubeconfig")
            .field("cluster", &self.cluster)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Kubeconfig {
    /// The text, with keys in the order of Kubernetes tools.
    pub fn render(&self) -> String {
        let cluster = scalar(&self.cluster);
        let user = scalar(&format!("{}-admin", self.cluster));
        let context = scalar(&format!("{0}-admin@{0}", self.cluster));
        let authority = STANDARD.encode(&self.authority);
        let certificate = STANDARD.encode(&self.client_certificate);
        let key = STANDARD.encode(&self.client_key);
        let server = scalar(&self.server);
        format!(
            "apiVersion: v1\n\
             clusters:\n\
             - cluster:\n    certificate-authority-data: {authority}\n    server: {server}\n  name: {cluster}\n\
             contexts:\n\
             - context:\n    cluster: {cluster}\n    user: {user}\n  name: {context}\n\
             current-context: {context}\n\
             kind: Config\n\
             users:\n\
             - name: {user}\n  user:\n    client-certificate-data: {certificate}\n    client-key-data: {key}\n"
        )
    }

    /// The client certificate in a kubeconfig, to decide on its rotation.
    pub fn client_certificate_of(text: &str) -> Result<Certificate, PkiError> {
        let config = parsed(text)?;
        let user = in_context(&config, "users", "user")?;
        let pem = decoded(&user["user"], "client-certificate-data")?;
        Certificate::from_pem(&pem)
    }

    /// The certificates that a kubeconfig trusts, PEM.
    pub fn authorities_of(text: &str) -> Result<String, PkiError> {
        let config = parsed(text)?;
        let cluster = in_context(&config, "clusters", "cluster")?;
        decoded(&cluster["cluster"], "certificate-authority-data")
    }

    /// The URL of the API server in a kubeconfig, which a renewal keeps.
    pub fn server_of(text: &str) -> Result<String, PkiError> {
        let config = parsed(text)?;
        let cluster = in_context(&config, "clusters", "cluster")?;
        match text_of(&cluster["cluster"]["server"]) {
            "" => Err(PkiError::Kubeconfig("clusters: the server is missing".to_owned())),
            server => Ok(server.to_owned()),
        }
    }
}

/// A PEM text that a field has in Base64.
fn decoded(of: &Value, field: &str) -> Result<String, PkiError> {
    let data = STANDARD
        .decode(text_of(&of[field]))
        .map_err(|error| PkiError::Kubeconfig(format!("{field}: {error}")))?;
    String::from_utf8(data).map_err(|_| PkiError::Kubeconfig(format!("{field} is not PEM")))
}

fn parsed(text: &str) -> Result<Value, PkiError> {
    yaml::read_plain(text).map_err(|_| PkiError::Kubeconfig("not a kubeconfig in YAML".to_owned()))
}

/// The entry of a list that the current context refers to by `key`.
fn in_context<'a>(config: &'a Value, list: &str, key: &str) -> Result<&'a Value, PkiError> {
    let named = |list: &str, name: &str| {
        let mut entries = config[list].as_array().into_iter().flatten();
        let found = entries.find(|entry| entry["name"] == name);
        found.ok_or_else(|| PkiError::Kubeconfig(format!("{list}: \"{name}\" is missing")))
    };
    let context = named("contexts", text_of(&config["current-context"]))?;
    named(list, text_of(&context["context"][key]))
}

/// Quotes a string that YAML would read as another type: a cluster may be named `1234` or `on`.
fn scalar(text: &str) -> String {
    let starts_plain = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let plain_inside = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '@' | '/' | '_') || c == ':')
        && !text.ends_with(':');
    let word = matches!(
        text.to_ascii_lowercase().as_str(),
        "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null"
    );
    if starts_plain && plain_inside && !word {
        text.to_owned()
    } else {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
