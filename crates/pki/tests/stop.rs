//! The end of a process: a program of its own, as keys are made no more.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use windlass_pki::{KeyAlgorithm, KeyPool, PkiError, PrivateKey, stop_generating};

static AT_WORK: AtomicUsize = AtomicUsize::new(0);
static MADE: AtomicUsize = AtomicUsize::new(0);

fn slowly(_: KeyAlgorithm) -> Result<PrivateKey, PkiError> {
    AT_WORK.fetch_add(1, Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(20));
    let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256);
    MADE.fetch_add(1, Ordering::SeqCst);
    AT_WORK.fetch_sub(1, Ordering::SeqCst);
    key
}

#[test]
fn no_thread_makes_a_key_at_the_end_of_the_process() {
    let pool = KeyPool::with_source(4, KeyAlgorithm::Rsa2048, usize::MAX, slowly);
    while MADE.load(Ordering::SeqCst) < 8 {
        std::thread::yield_now();
    }
    stop_generating();
    let made = MADE.load(Ordering::SeqCst);
    for _ in 0..10 {
        assert_eq!(AT_WORK.load(Ordering::SeqCst), 0);
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(MADE.load(Ordering::SeqCst), made);
    // What leaks at the end of a process is what this is for.
    std::mem::forget(pool);
}
