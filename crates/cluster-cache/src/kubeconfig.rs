//! Reading the kubeconfig of a workload cluster.
//!
//! It comes from a Secret. A user who may write Secrets in one namespace must not be able to run programs as the manager, or to
//! send the manager's files to another server. So a kubeconfig must be self-contained and must not refer to anything outside.
//! It is read on a thread that also serves others. So its size is limited, and what aliases can make of it.

use kube::config::Kubeconfig;
use windlass_gocompat::yaml::bounded;
use windlass_http_client::Reach;
use windlass_meta::budget::KUBECONFIG_BYTES;

/// Nodes of YAML. A cluster, a user and a context have about 30.
const NODES: usize = 10_000;

/// Reads a self-contained kubeconfig. The error says which field refers to anything outside, and never quotes the file.
pub fn read(bytes: &[u8]) -> Result<Kubeconfig, String> {
    if bytes.len() > KUBECONFIG_BYTES {
        return Err(format!(
            "it has {} bytes, and a kubeconfig may have {KUBECONFIG_BYTES}; leave out clusters, users and contexts that are not used",
            bytes.len()
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text")?;
    let kubeconfig = parsed(text)?;
    match outside(&kubeconfig) {
        None => Ok(kubeconfig),
        Some((field, instead)) => Err(format!(
            "{field} is not allowed in the kubeconfig of a workload cluster: {instead}"
        )),
    }
}

/// Parses and merges the documents of a kubeconfig.
fn parsed(text: &str) -> Result<Kubeconfig, String> {
    let mut options = bounded(serde_saphyr::options! { with_snippet: false });
    if let Some(budget) = &mut options.budget {
        budget.max_nodes = NODES;
        budget.max_events = 3 * NODES;
    }
    // The error may quote the file, which holds keys.
    serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| {
            if is_too_much(&error) {
                "it has too many entries, anchors or aliases for a kubeconfig"
            } else {
                "it is not a valid kubeconfig"
            }
        })?
        .into_iter()
        .try_fold(Kubeconfig::default(), Kubeconfig::merge)
        .map_err(|_| "it is not a valid kubeconfig".to_owned())
}

/// Whether the parser has stopped at a limit.
fn is_too_much(error: &serde_saphyr::Error) -> bool {
    use serde_saphyr::Error;
    match error {
        Error::AliasError { error, .. } => is_too_much(error),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => true,
        _ => false,
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

    /// Their author may be a user of one namespace.
    #[test]
    fn a_kubeconfig_that_takes_long_to_read_is_refused() {
        let refused = |text: &str, want: &str| {
            let why = read(text.as_bytes()).unwrap_err();
            assert!(why.contains(want), "{why}");
        };
        let anchors: Vec<String> = (0..10_000).map(|n| format!("- &a{n} x\n")).collect();
        refused(
            &format!("x:\n{}", anchors.concat()),
            "too many entries, anchors or aliases",
        );
        let levels: Vec<String> = (1..10)
            .map(|n| format!("l{n}: &l{n} [{}]\n", vec![format!("*l{}", n - 1); 9].join(", ")))
            .collect();
        refused(
            &format!("l0: &l0 [x]\n{}", levels.concat()),
            "too many entries, anchors or aliases",
        );
        let entries = "- {}\n".repeat(20_000);
        refused(&format!("x:\n{entries}"), "too many entries, anchors or aliases");
        refused(&"x".repeat(KUBECONFIG_BYTES + 1), "it has 262145 bytes");
    }

    /// Tools that write kubeconfigs may share parts of them.
    #[test]
    fn a_kubeconfig_may_have_aliases_and_documents() {
        let text = "clusters: [{name: c, cluster: &c {server: 'https://x'}}, {name: d, cluster: *c}]\n---\ncurrent-context: c\n";
        let read = read(text.as_bytes()).unwrap();
        assert_eq!(read.clusters.len(), 2);
        assert_eq!(read.current_context.as_deref(), Some("c"));
    }

    #[test]
    fn errors_do_not_quote_the_file() {
        assert_eq!(read(b"users: secret").unwrap_err(), "it is not a valid kubeconfig");
        assert_eq!(read(&[0xff]).unwrap_err(), "it is not text");
    }
}
