//! Searches what controllers log and write for the secrets of tests. Every test with a [`Server`](crate::Server) takes part.
//!
//! The secrets are the private keys that controllers take from the pools of this crate ([`keys`](crate::keys())), and what tests mark. They may be
//! written to Secrets only. Searched are the records of controllers, whatever the levels of the log that a person sees, and the writes of the
//! clients of a [`Server`](crate::Server) that have its administrator's rights.

use std::fmt::{Debug, Write as _};
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::FutureExt as _;
use http::Request;
use kube::client::Body;
use parking_lot::{Mutex, RwLock};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use windlass_envtest::WriteTo;
use windlass_pki::{KeyAlgorithm, PrivateKey};

/// Bytes of a secret that is looked for: a part of it is as bad as the whole.
const PART: usize = 48;

static LEAKS: LazyLock<Leaks> = LazyLock::new(Leaks::default);

/// Secrets, and where they were seen.
#[derive(Default)]
struct Leaks {
    forms: RwLock<Forms>,
    found: Mutex<Vec<String>>,
}

/// The forms of secrets, to be found in few passes: there are thousands, and thousands of records. They are in groups, each with at most half as
/// many as the one before it, so that another secret seldom builds the search of a large group again.
#[derive(Default)]
struct Forms(Vec<Group>);

/// Forms that are found in one pass.
struct Group {
    all: Vec<String>,
    search: AhoCorasick,
}

impl Forms {
    fn add(&mut self, mut all: Vec<String>) {
        while let Some(smaller) = self.0.pop_if(|group| group.all.len() < 2 * all.len()) {
            all.extend(smaller.all);
        }
        let search = AhoCorasick::new(&all).expect("the forms are few and short");
        self.0.push(Group { all, search });
    }

    fn is_in(&self, text: &str) -> bool {
        self.0.iter().any(|group| group.search.is_match(text))
    }
}

impl Leaks {
    /// Looks for a secret in all forms in which it may be written: as a text, in base64 as in a Secret or a kubeconfig, in base64 of
    /// base64, and as the numbers by which Rust shows bytes.
    fn add(&self, secret: &str) {
        let once = in_base64(secret);
        let twice = once.iter().flat_map(|one| in_base64(one));
        let numbers = format!("{:?}", secret.as_bytes());
        let numbers = numbers.trim_matches(['[', ']']).to_owned();
        let all = [secret.to_owned(), numbers].into_iter();
        let all = all.chain(once.iter().cloned()).chain(twice).collect();
        self.forms.write().add(all);
    }

    fn search(&self, text: &str, place: impl FnOnce() -> String) {
        if self.forms.read().is_in(text) {
            self.found.lock().push(place());
        }
    }
}

/// The text in base64 after zero, one and two other bytes, without the ends that depend on what is beside it.
fn in_base64(text: &str) -> Vec<String> {
    let encoded = |before: usize| {
        let encoded = BASE64_STANDARD.encode(format!("{}{text}", &"xx"[..before]));
        let end = encoded.trim_end_matches('=').len() - 1;
        encoded[4.min(end)..end].to_owned()
    };
    (0..3).map(encoded).collect()
}

/// Looks for a private key from now on, as it is in PEM.
pub(crate) fn mark_key(key: &PrivateKey) {
    let pem = key.to_pem();
    let mut lines = pem.lines().filter(|line| !line.starts_with('-'));
    let part = match key.algorithm() {
        // The scalar is in the first line, between what many keys have in common and the public key.
        KeyAlgorithm::EcdsaP256 | KeyAlgorithm::EcdsaP384 => lines.next().and_then(|line| line.get(12..44)),
        // The first lines have the modulus, which is public: it is the first quarter of the key. The last quarter is as secret as any.
        _ => lines.nth_back(4).and_then(|line| line.get(..PART)),
    };
    mark(part.expect("a key in PEM has lines of 64 characters"));
}

/// Looks for a secret of a test from now on. It has at least 16 bytes, which differ from all that is not secret.
pub fn mark(secret: &str) {
    assert!(secret.len() >= 16, "other texts may have so few letters by chance");
    LEAKS.add(secret);
}

/// Searches a write.
pub(crate) fn search(write: &WriteTo, request: Request<Body>) -> Request<Body> {
    if write.resource == "secrets" {
        return request;
    }
    let (head, body) = request.into_parts();
    let bytes = body.collect_bytes().now_or_never();
    let bytes = bytes
        .expect("what is written is in memory")
        .expect("memory can be read");
    LEAKS.search(&String::from_utf8_lossy(&bytes), || {
        let (agent, resource, name) = (write.agent, &write.resource, &write.name);
        format!("what {agent} wrote to {resource} {}/{name}", write.namespace)
    });
    Request::from_parts(head, Body::from(bytes.to_vec()))
}

/// Fails the test that drops it if a secret was seen somewhere.
#[derive(Debug)]
pub(crate) struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let found = std::mem::take(&mut *LEAKS.found.lock());
        assert!(
            found.is_empty(),
            "a secret of this test, or of one that runs beside it, is in {found:?}"
        );
    }
}

/// Searches all records.
pub(crate) struct Search;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Search {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        search_fields(attributes.metadata(), |fields| attributes.record(fields));
    }

    fn on_record(&self, span: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(metadata) = context.metadata(span) {
            search_fields(metadata, |fields| values.record(fields));
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        search_fields(event.metadata(), |fields| event.record(fields));
    }
}

fn search_fields(metadata: &Metadata<'_>, record: impl FnOnce(&mut dyn Visit)) {
    let mut fields = Fields(String::new());
    record(&mut fields);
    LEAKS.search(&fields.0, || {
        format!(
            "a record of {}:{}",
            metadata.file().unwrap_or_default(),
            metadata.line().unwrap_or_default()
        )
    });
}

/// The fields of a record as a text.
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // A text takes all that is written to it.
        let _ = write!(self.0, "{field}={value:?} ");
    }
}

/// Searches records from now on. Warnings are shown if a test fails; `RUST_LOG` sets another level.
pub(crate) fn start_logging() {
    LazyLock::force(&STARTED);
}

static STARTED: LazyLock<()> = LazyLock::new(|| {
    let level = std::env::var("RUST_LOG").ok().and_then(|level| level.parse().ok());
    // The client logs every error response as an error, but tests expect some of them and report failures themselves.
    let shown = Targets::new()
        .with_default(level.unwrap_or(LevelFilter::WARN))
        .with_target("kube_client::client::builder", LevelFilter::OFF);
    let lines = tracing_subscriber::fmt::layer().with_test_writer().with_filter(shown);
    // Those of other crates at these levels are many, and know neither keys nor credentials by themselves. The test of the built program
    // searches them, too.
    let searched = Targets::new()
        .with_default(LevelFilter::INFO)
        .with_target("windlass", LevelFilter::TRACE)
        .with_target("kube", LevelFilter::TRACE);
    let search = Search.with_filter(searched);
    let started = tracing_subscriber::registry().with(lines).with(search).try_init();
    if started.is_err() {
        // A command of `xtask`, whose records are for the person at it.
        return;
    }
    mark(CANARY);
    tracing::trace!(canary = CANARY);
    let found = LEAKS.found.lock().pop();
    assert!(found.is_some(), "records are searched");
});

/// A text that is logged once and must be found.
const CANARY: &str = "canary-of-the-search-for-secrets";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_in_all_its_forms() {
        let leaks = Leaks::default();
        let (secret, before) = ("marked-open-sesame-and-more", "some text: ");
        leaks.add(secret);
        let found = |text: &str| {
            leaks.search(text, || text.to_owned());
            leaks.found.lock().pop().is_some()
        };
        assert!(!found(before));
        assert!(found(&format!("{before}{secret}.")));
        assert!(found(&format!("{:?}", format!("{before}{secret}.").as_bytes())));
        for length in 0..before.len() {
            let once = BASE64_STANDARD.encode(format!("{}{secret}.", &before[..length]));
            assert!(found(&once));
            for more in 0..before.len() {
                let twice = BASE64_STANDARD.encode(format!("{}{once}.", &before[..more]));
                assert!(found(&twice), "{length} and {more}");
            }
        }
    }

    #[test]
    fn every_secret_is_found_in_few_groups() {
        let mut forms = Forms::default();
        for number in 0..200 {
            forms.add(vec![format!("secret-{number}."), format!("other-{number}.")]);
        }
        assert!((0..200).all(|number| forms.is_in(&format!("a secret-{number}. in a text"))));
        assert!(!forms.is_in("a secret-200. in a text"));
        assert!(forms.0.len() < 10, "{}", forms.0.len());
    }

    #[test]
    fn the_key_of_a_kubeconfig_is_found_in_a_record() {
        let records = tracing_subscriber::registry().with(Search);
        let _records = tracing::subscriber::set_default(records);
        for algorithm in [KeyAlgorithm::Rsa2048, KeyAlgorithm::EcdsaP256, KeyAlgorithm::EcdsaP384] {
            let key = PrivateKey::generate(algorithm).unwrap();
            mark_key(&key);
            let public = key.public_pem();
            tracing::trace!(?public, "a public key");
            assert_eq!(LEAKS.found.lock().len(), 0);
            let kubeconfig = format!("client-key-data: {}", BASE64_STANDARD.encode(key.to_pem()));
            tracing::trace!(?kubeconfig, "a kubeconfig");
            let found = std::mem::take(&mut *LEAKS.found.lock());
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains("leaks.rs"), "{found:?}");
        }
    }
}
