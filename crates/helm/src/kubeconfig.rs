//! The kubeconfig for helm. Pure.
//!
//! It comes from a Secret. A user who may write Secrets in one namespace must not be able to run programs here, nor to send files of
//! this machine to another server. Helm gets the checked data, serialized again, and not the original text.

use serde_json::Value;
use windlass_gocompat::yaml;

use crate::words::Mask;
use crate::{HelmError, Kind, Secret};

/// Fields that refer to anything outside, in lower case.
const OUTSIDE: [&str; 6] = [
    "exec",
    "auth-provider",
    "tokenfile",
    "client-certificate",
    "client-key",
    "certificate-authority",
];

/// Secret fields.
const HIDDEN: [&str; 3] = ["token", "password", "client-key-data"];

/// Validates a kubeconfig and returns it as JSON. Its secrets are added to the mask.
pub(crate) fn read(text: &Secret, mask: &mut Mask) -> Result<Vec<u8>, HelmError> {
    let invalid = |why: String| HelmError::new(Kind::Invalid, format!("kubeconfig: {why}"));
    // The parser's error may quote the file.
    let config = yaml::read_plain(text.reveal()).map_err(|_| invalid("it is not valid YAML".to_owned()))?;
    let clusters = entries(&config, "clusters", "cluster");
    let users = entries(&config, "users", "user");
    if clusters.is_empty() {
        return Err(invalid("it names no cluster".to_owned()));
    }
    for fields in clusters.iter().chain(&users) {
        let outside = fields
            .keys()
            .find(|name| OUTSIDE.contains(&name.to_lowercase().as_str()));
        if let Some(name) = outside {
            let why = format!("{name} is not allowed, as it leads out of the kubeconfig: put the data itself into it");
            return Err(invalid(why));
        }
    }
    for fields in users {
        for name in HIDDEN {
            mask.hide(fields.get(name).and_then(Value::as_str).unwrap_or_default());
        }
    }
    Ok(config.to_string().into_bytes())
}

fn entries<'a>(config: &'a Value, list: &str, what: &str) -> Vec<&'a serde_json::Map<String, Value>> {
    let entries = config[list].as_array().into_iter().flatten();
    entries.filter_map(|entry| entry[what].as_object()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cluster: &str, user: &str) -> Result<Value, HelmError> {
        let text = format!(
            "{{clusters: [{{name: c, cluster: {{server: 'https://x', {cluster}}}}}], users: [{{name: u, user: {{{user}}}}}], \
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}], current-context: c}}"
        );
        let json = read(&Secret::new(text), &mut Mask::default())?;
        Ok(serde_json::from_slice(&json).unwrap())
    }

    #[test]
    fn a_kubeconfig_holds_all_it_needs() {
        let good = check("certificate-authority-data: eA==", "token: t").unwrap();
        assert_eq!(good["users"][0]["user"]["token"], "t");
        for user in [
            "exec: {command: sh}",
            "Exec: {command: sh}",
            "auth-provider: {name: gcp}",
            "tokenFile: /var/run/token",
            "client-certificate: /a, client-key: /b",
            "client-key: /b",
        ] {
            let error = check("", user).unwrap_err();
            let name = user.split(':').next().unwrap();
            assert!(
                error.message.starts_with(&format!("kubeconfig: {name} is not allowed")),
                "{error}"
            );
            assert_eq!(error.kind, Kind::Invalid);
        }
        assert!(check("certificate-authority: /etc/hosts", "token: t").is_err());
    }

    #[test]
    fn errors_do_not_quote_it_and_later_ones_hide_it() {
        let read = |text: &str| read(&Secret::new(text), &mut Mask::default()).unwrap_err().message;
        assert_eq!(read("hidden: ["), "kubeconfig: it is not valid YAML");
        assert_eq!(read("hidden"), "kubeconfig: it names no cluster");
        assert_eq!(read("a: 1\n---\nb: 2\n"), "kubeconfig: it is not valid YAML");
        let mut mask = Mask::default();
        let text = "{clusters: [{cluster: {}}], users: [{user: {token: abcdef, client-key-data: Z2hpamts}}]}";
        super::read(&Secret::new(text), &mut mask).unwrap();
        assert_eq!(crate::words::of("Error: abcdef Z2hpamts", &mask), "*** ***");
    }
}
