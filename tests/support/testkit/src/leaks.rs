//! Searches what controllers log and write for the secrets of tests. Every test with a [`Server`](crate::Server) takes part.
//!
//! The secrets are the private keys that controllers take from the pools of this crate ([`keys`](crate::keys())), the bootstrap tokens that they
//! make, and what tests mark. They may be written to Secrets only, and tokens to KubeadmConfigs, which have them in Cluster API. Searched are the
//! records of controllers, whatever the levels of the log that a person sees, and the writes of the clients of a [`Server`](crate::Server) that have
//! its administrator's rights.

use std::collections::{HashSet, VecDeque};
use std::fmt::{Debug, Write as _};
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::FutureExt as _;
use http::Request;
use kube::client::Body;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
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

/// Where a KubeadmConfig has its bootstrap token, and the field manager that makes one. Tokens of users come by others.
const TOKEN: (&str, &str) = (
    "/spec/joinConfiguration/discovery/bootstrapToken/token",
    "cabpk-manager",
);

/// Records that are kept: a token is known when it comes to its KubeadmConfig, after it was made and sent to the workload cluster.
const RECENT: usize = 1000;

/// Tokens of one generation: with all that a suite makes, the search would be built again for a second at a time.
const GENERATION: usize = 250;

static LEAKS: LazyLock<Leaks> = LazyLock::new(Leaks::default);

/// Secrets, and where they were seen.
#[derive(Default)]
struct Leaks {
    forms: RwLock<Forms>,
    /// Those of the newest tokens, and those of as many before them.
    token_forms: RwLock<[Forms; 2]>,
    tokens: Mutex<HashSet<String>>,
    recent: Mutex<VecDeque<(&'static Metadata<'static>, String)>>,
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

/// A secret in all forms in which it may be written: as a text, in base64 as in a Secret or a kubeconfig, in base64 of base64, and as the
/// numbers by which Rust shows bytes.
fn forms_of(secret: &str) -> Vec<String> {
    let once = in_base64(secret);
    let twice = once.iter().flat_map(|one| in_base64(one));
    let numbers = format!("{:?}", secret.as_bytes());
    let numbers = numbers.trim_matches(['[', ']']).to_owned();
    let all = [secret.to_owned(), numbers].into_iter();
    all.chain(once.iter().cloned()).chain(twice).collect()
}

impl Leaks {
    fn add(&self, secret: &str) {
        self.forms.write().add(forms_of(secret));
    }

    /// Looks for the secret half of a bootstrap token, also in the last records.
    fn add_token(&self, token: &str) {
        let Some((_, secret)) = token.split_once('.') else {
            return;
        };
        let mut tokens = self.tokens.lock();
        if !tokens.insert(secret.to_owned()) {
            return;
        }
        let is_full = tokens.len().is_multiple_of(GENERATION);
        drop(tokens);
        let forms = forms_of(secret);
        let mut before = Forms::default();
        before.add(forms.clone());
        let mut generations = self.token_forms.write();
        generations[0].add(forms);
        if is_full {
            let [newest, older] = &mut *generations;
            *older = std::mem::take(newest);
        }
        drop(generations);
        let recent = self.recent.lock();
        let found = recent.iter().filter(|(_, text)| before.is_in(text));
        self.found.lock().extend(found.map(|(metadata, _)| place(metadata)));
    }

    fn would_find(&self, text: &str) -> bool {
        self.forms.read().is_in(text) || self.has_token(text)
    }

    fn has_token(&self, text: &str) -> bool {
        self.token_forms.read().iter().any(|forms| forms.is_in(text))
    }

    fn search_record(&self, metadata: &'static Metadata<'static>, text: &str) {
        let mut recent = self.recent.lock();
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back((metadata, text.to_owned()));
        drop(recent);
        // After it is kept: a token that becomes known meanwhile is looked for there.
        if self.would_find(text) {
            self.found.lock().push(place(metadata));
        }
    }

    fn search_write(&self, write: &WriteTo, text: &str) {
        if write.resource == "secrets" {
            return;
        }
        let mut leaks = self.forms.read().is_in(text);
        if write.resource == "kubeadmconfigs" {
            self.learn_token(write, text);
        } else {
            leaks |= self.has_token(text);
        }
        if leaks {
            let (agent, resource, name) = (write.agent, &write.resource, &write.name);
            let found = format!("what {agent} wrote to {resource} {}/{name}", write.namespace);
            self.found.lock().push(found);
        }
    }

    /// Looks for the token that a write to a KubeadmConfig brings.
    fn learn_token(&self, write: &WriteTo, text: &str) {
        let (place, manager) = TOKEN;
        if write.manager == manager
            && let Ok(body) = serde_json::from_str::<Value>(text)
            && let Some(token) = body.pointer(place).and_then(Value::as_str)
        {
            self.add_token(token);
        }
    }
}

/// Where a record is made.
fn place(metadata: &Metadata<'_>) -> String {
    let (file, line) = (metadata.file().unwrap_or_default(), metadata.line().unwrap_or_default());
    format!("a record of {file}:{line}")
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

/// Whether a secret is in a text: a test that nothing is found has to know that something would be.
pub fn would_find(text: &str) -> bool {
    LEAKS.would_find(text)
}

/// Searches a write.
pub(crate) fn search(write: &WriteTo, request: Request<Body>) -> Request<Body> {
    let (head, body) = request.into_parts();
    let bytes = body.collect_bytes().now_or_never();
    let bytes = bytes
        .expect("what is written is in memory")
        .expect("memory can be read");
    LEAKS.search_write(write, &String::from_utf8_lossy(&bytes));
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

fn search_fields(metadata: &'static Metadata<'static>, record: impl FnOnce(&mut dyn Visit)) {
    let mut fields = Fields(String::new());
    record(&mut fields);
    LEAKS.search_record(metadata, &fields.0);
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
        let found = |text: &str| leaks.would_find(text);
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
    fn the_newest_tokens_are_looked_for() {
        let leaks = Leaks::default();
        let token = |number: usize| format!("abcdef.{number:016}");
        for number in 0..3 * GENERATION {
            leaks.add_token(&token(number));
            for before in number.saturating_sub(GENERATION - 1)..=number {
                assert!(
                    number % 50 != 0 || leaks.would_find(&token(before)),
                    "{before} of {number}"
                );
            }
        }
        assert!(!leaks.would_find(&token(0)));
    }

    fn write_to(resource: &str, manager: &str) -> WriteTo {
        WriteTo {
            verb: "apply",
            resource: resource.to_owned(),
            namespace: "default".to_owned(),
            name: "one".to_owned(),
            subresource: String::new(),
            manager: manager.to_owned(),
            agent: "controllers",
            code: 0,
        }
    }

    #[test]
    fn a_bootstrap_token_is_found_also_in_what_was_logged_before_it_was_known() {
        static RECORDS: Mutex<Vec<&'static Metadata<'static>>> = Mutex::new(Vec::new());
        struct Keep;
        impl<S: Subscriber> Layer<S> for Keep {
            fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
                RECORDS.lock().push(event.metadata());
            }
        }
        tracing::subscriber::with_default(tracing_subscriber::registry().with(Keep), || tracing::info!("a record"));
        let metadata = RECORDS.lock().pop().unwrap();

        let leaks = Leaks::default();
        let config = |token: &str| {
            let discovery = serde_json::json!({"bootstrapToken": {"token": token}});
            serde_json::json!({"spec": {"joinConfiguration": {"discovery": discovery}}}).to_string()
        };
        let (mine, theirs) = (config("abcdef.0123456789abcdef"), config("abcdef.fedcba9876543210"));
        let encoded = BASE64_STANDARD.encode("0123456789abcdef");
        leaks.search_record(metadata, &format!("token-secret: {encoded}"));
        leaks.search_record(metadata, "nothing");
        // The token of a user, who may have it in other places.
        leaks.search_write(&write_to("kubeadmconfigs", "test"), &theirs);
        assert_eq!(leaks.found.lock().len(), 0);
        leaks.search_write(&write_to("kubeadmconfigs", "cabpk-manager"), &mine);
        let found = std::mem::take(&mut *leaks.found.lock());
        assert!(found.len() == 1 && found[0].contains("leaks.rs"), "{found:?}");

        leaks.search_record(metadata, "the token is Token(abcdef)");
        leaks.search_write(&write_to("kubeadmconfigs", "cabpk-manager"), &mine);
        leaks.search_write(&write_to("secrets", ""), &mine);
        assert_eq!(leaks.found.lock().len(), 0);
        leaks.search_record(metadata, "the token is abcdef.0123456789abcdef");
        leaks.search_write(&write_to("events", ""), &mine);
        let found = std::mem::take(&mut *leaks.found.lock());
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[1], "what controllers wrote to events default/one");
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
