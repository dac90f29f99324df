//! The kubeconfig of a workload cluster: read or refused, and what is read refers to nothing outside of it.

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(data: &[u8]) {
    match windlass_cluster_cache::kubeconfig::read(data) {
        Ok(read) => {
            let users = read.auth_infos.iter().filter_map(|named| named.auth_info.as_ref());
            for user in users {
                assert!(user.exec.is_none() && user.auth_provider.is_none() && user.token_file.is_none());
                assert!(user.client_key.is_none() && user.client_certificate.is_none());
            }
        }
        // The file may hold keys, so the message never quotes it.
        Err(why) => assert!(why.len() < 300, "{why}"),
    }
}
