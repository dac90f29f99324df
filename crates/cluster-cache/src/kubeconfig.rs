//! Reading the kubeconfig of a workload cluster.
//!
//! It comes from a Secret. A user who may write Secrets in one namespace must not be able to run programs as the manager, or to
//! send the manager's files to another server. So a kubeconfig must be self-contained and must not refer to anything outside.

use kube::config::Kubeconfig;
use windlass_http_client::Reach;

/// Reads a self-contained kubeconfig. The error says which field refers to anything outside, and never quotes the file.
pub fn read(bytes: &[u8]) -> Result<Kubeconfig, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text")?;
    // The parser's error may quote the file, which holds keys.
    let kubeconfig = Kubeconfig::from_yaml(text).map_err(|_| "it is not a valid kubeconfig")?;
    match outside(&kubeconfig) {
        None => Ok(kubeconfig),
        Some((field, instead)) => Err(format!(
            "{field} is not allowed in the kubeconfig of a workload cluster: {instead}"
        )),
    }
}

/// Checks the servers of a kubeconfig, and their proxies, before another program uses it.
pub(crate) async fn check(kubeconfig: &Kubeconfig, reach: &Reach) -> Result<(), String> {
    let uri = |text: &str| {
        text.parse::<http::Uri>()
            .map_err(|_| "an address in it cannot be read".to_owned())
    };
    for cluster in kubeconfig.clusters.iter().filter_map(|named| named.cluster.as_ref()) {
        let server = uri(cluster.server.as_deref().unwrap_or_default())?;
        let proxy = cluster.proxy_url.as_deref().filter(|proxy| !proxy.is_empty());
        let proxy = proxy.map(uri).transpose()?;
        let checked = reach.check_server(&server, proxy.as_ref()).await;
        checked.map_err(|refused| refused.to_string())?;
    }
    Ok(())
}

/// The first field that refers to anything outside, and its replacement.
fn outside(kubeconfig: &Kubeconfig) -> Option<(&'static str, &'static str)> {
    const TOKEN: &str = "set token, or client-certificate-data and client-key-data";
    let users = kubeconfig
        .auth_infos
        .iter()
        .filter_map(|named| named.auth_info.as_ref());
    let clusters = kubeconfig.clusters.iter().filter_map(|named| named.cluster.as_ref());
    let of_users = users.flat_map(|user| {
        [
            (user.exec.is_some(), "user.exec", TOKEN),
            (user.auth_provider.is_some(), "user.auth-provider", TOKEN),
            (user.token_file.is_some(), "user.tokenFile", "set token"),
            (
                user.client_certificate.is_some(),
                "user.client-certificate",
                "set client-certificate-data",
            ),
            (user.client_key.is_some(), "user.client-key", "set client-key-data"),
        ]
    });
    let of_clusters = clusters.flat_map(|cluster| {
        let server = cluster.server.as_deref().unwrap_or_default();
        [
            (
                cluster.certificate_authority.is_some(),
                "cluster.certificate-authority",
                "set certificate-authority-data",
            ),
            // Addresses are logged.
            (server.contains('@'), "a user in cluster.server", "set user.token"),
        ]
    });
    of_users
        .chain(of_clusters)
        .find(|(there, ..)| *there)
        .map(|(_, field, instead)| (field, instead))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cluster: &str, user: &str, want: Option<&str>) {
        let text = format!(
            "{{clusters: [{{name: c, cluster: {{server: 'https://x', {cluster}}}}}], users: [{{name: u, user: {{{user}}}}}], \
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}], current-context: c}}"
        );
        match (read(text.as_bytes()), want) {
            (Ok(_), None) => {}
            (Err(why), Some(want)) => assert!(why.starts_with(want), "{why}"),
            (got, want) => panic!("{text}: {got:?}, expected {want:?}"),
        }
    }

    #[test]
    fn a_kubeconfig_may_not_point_to_anything_outside() {
        let text = "{clusters: [{name: c, cluster: {server: 'https://u:p@x'}}]}";
        let why = read(text.as_bytes()).unwrap_err();
        assert!(
            why.starts_with("a user in cluster.server is not allowed") && !why.contains("u:p"),
            "{why}"
        );
        check("certificate-authority-data: eA==", "token: t", None);
        check("", "client-certificate-data: eA==, client-key-data: eA==", None);
        check(
            "",
            "exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}",
            Some("user.exec"),
        );
        check("", "auth-provider: {name: gcp, config: {}}", Some("user.auth-provider"));
        check("", "tokenFile: /var/run/token", Some("user.tokenFile"));
        check(
            "",
            "client-certificate: /a, client-key: /b",
            Some("user.client-certificate"),
        );
        check("", "client-key: /b", Some("user.client-key"));
        check(
            "certificate-authority: /a",
            "token: t",
            Some("cluster.certificate-authority"),
        );
    }

    #[test]
    fn errors_do_not_quote_the_file() {
        assert_eq!(read(b"users: secret").unwrap_err(), "it is not a valid kubeconfig");
        assert_eq!(read(&[0xff]).unwrap_err(), "it is not text");
    }
}
