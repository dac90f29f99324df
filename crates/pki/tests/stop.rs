//! The end of a process: a program of its own, as keys are made no more.

use std::sync::atomic::{AtomicUsize, Ordering};

use windlass_pki::{KeyAlgorithm, KeyPool, PkiError, PrivateKey, stop_generating};

static AT_WORK: AtomicUsize = AtomicUsize::new(0);
static MADE: AtomicUsize = AtomicUsize::new(0);

fn counted(_: KeyAlgorithm) -> Result<PrivateKey, PkiError> {
    AT_WORK.fetch_add(1, Ordering::SeqCst);
    let key = PrivateKey::generate(KeyAlgorithm::Rsa2048);
    MADE.fetch_add(1, Ordering::SeqCst);
    AT_WORK.fetch_sub(1, Ordering::SeqCst);
    key
}

#[test]
fn no_thread_makes_a_key_at_the_end_of_the_process() {
    let pool = KeyPool::with_source(4, KeyAlgorithm::Rsa2048, usize::MAX, counted);
    while MADE.load(Ordering::SeqCst) < 2 {
        std::thread::yield_now();
    }
    stop_generating();
    let made = MADE.load(Ordering::SeqCst);
    // In the time of some keys, the others would have made some.
    for _ in 0..3 {
        assert_eq!(AT_WORK.load(Ordering::SeqCst), 0);
        PrivateKey::generate(KeyAlgorithm::Rsa2048).unwrap();
    }
    assert_eq!(MADE.load(Ordering::SeqCst), made);
    // What leaks at the end of a process is what this is for.
    std::mem::forget(pool);
}
