//! Private keys of tests.
//!
//! The search for the primes of RSA keys would take a fifth of the time of the suites. The first keys of a process are generated,
//! and given in turn from then on: two clusters of a process may have the same key, two authorities of a cluster that is made never have.

use parking_lot::Mutex;
use windlass_pki::{KeyAlgorithm, KeyPool, PkiError, PrivateKey};

use crate::leaks;

/// More keys than the clusters have together that a test creates at a time.
const DIFFERENT: usize = 40;

/// The keys so far, and the number of those that were given.
static KEYS: Mutex<(Vec<PrivateKey>, usize)> = Mutex::new((Vec::new(), 0));

/// A pool of such keys.
pub fn keys() -> KeyPool {
    KeyPool::with_source(1, KeyAlgorithm::Rsa2048, 0, key)
}

/// A pool of keys of another algorithm, of which it has one ready. They are generated.
pub fn keys_of(algorithm: KeyAlgorithm) -> KeyPool {
    KeyPool::with_source(1, algorithm, 1, key)
}

fn key(algorithm: KeyAlgorithm) -> Result<PrivateKey, PkiError> {
    if algorithm != KeyAlgorithm::Rsa2048 {
        let key = PrivateKey::generate(algorithm)?;
        leaks::mark_key(&key);
        return Ok(key);
    }
    let mut keys = KEYS.lock();
    let (keys, given) = &mut *keys;
    if keys.len() < DIFFERENT {
        let key = PrivateKey::generate(algorithm)?;
        leaks::mark_key(&key);
        keys.push(key);
    }
    let key = keys[*given % keys.len()].clone();
    *given += 1;
    Ok(key)
}
