//! Bearer tokens and their users.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use windlass_rbac::user::UserInfo;

/// Bearer tokens by their hash, so that the time of a lookup does not depend on the token.
pub(crate) struct Tokens(BTreeMap<[u8; 32], Arc<UserInfo>>);

impl Tokens {
    pub(crate) fn new(tokens: &BTreeMap<String, UserInfo>) -> Self {
        Self(tokens.iter().map(|(t, u)| (hash(t), Arc::new(u.clone()))).collect())
    }

    pub(crate) fn find(&self, token: &str) -> Option<&Arc<UserInfo>> {
        self.0.get(&hash(token))
    }
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
