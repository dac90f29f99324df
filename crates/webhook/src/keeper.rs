//! Background work of a webhook server: renews certificates, and repairs the webhook configurations and the conversions of definitions.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use rustls::sign::CertifiedKey;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_admission::Rule;
use windlass_controller_runtime::{ApiClient, Cache, Codec, Dynamic, ObjectKey, RequestError, Tasks, gvk_from, gvk_of};
use windlass_meta::Clock;
use windlass_meta::repeats::Repeats;
use windlass_pki::Certificate;

use crate::certified::{Served, accepted, certified};
use crate::configuration::{Configuration, FIELD_MANAGER, corrected, desired, is_current};
use crate::definitions::{self, Definitions};
use crate::error::WebhookError;
use crate::files::Files;
use crate::material::Material;
use crate::secret::{self, SECRET_NAME, material};
use crate::target::Target;

/// The shortest pause.
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause after failures, and between corrections when another writer changes it back.
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// Where the certificate comes from.
pub(crate) enum Source {
    Secret(secret::Kept),
    Folder { folder: PathBuf, names: Vec<String> },
}

/// The last read certificate.
pub(crate) struct Current {
    pub(crate) certified: Arc<CertifiedKey>,
    /// The authorities for the configuration.
    authorities: Option<String>,
    from: From,
}

#[derive(PartialEq, Eq)]
enum From {
    Secret(Material),
    Files(Files),
}

impl Source {
    /// Reads it, and creates or renews a generated certificate when due.
    pub(crate) async fn read(&self, in_use: Option<&Current>, now: Timestamp) -> Result<Current, WebhookError> {
        match self {
            Self::Secret(kept) => {
                let in_use = in_use.and_then(|current| match &current.from {
                    From::Secret(material) => Some(material),
                    From::Files(_) => None,
                });
                let material = kept.obtain(in_use).await?;
                Ok(Current {
                    certified: certified(&material.certificate, &material.key).map_err(WebhookError::Tls)?,
                    authorities: Some(material.authorities.clone()),
                    from: From::Secret(material),
                })
            }
            Self::Folder { folder, names } => {
                let failed = |why: String| WebhookError::Files {
                    folder: folder.clone(),
                    why,
                };
                let files = Files::read(folder).map_err(failed)?;
                Ok(Current {
                    certified: files.certified(names, now).map_err(failed)?,
                    authorities: files.authorities.clone(),
                    from: From::Files(files),
                })
            }
        }
    }
}

/// The time of the next attempt.
#[derive(Default)]
struct Pause {
    delay: Duration,
    last: Option<Instant>,
}

impl Pause {
    /// The time of the next attempt. Each attempt soon after another doubles the pause, so that two conflicting writers
    /// do not keep an API server busy.
    fn next(&self) -> Instant {
        self.last.map_or_else(Instant::now, |last| last + self.delay)
    }

    fn tried(&mut self) {
        let now = Instant::now();
        let again = self.last.is_some_and(|last| now < last + self.delay + MAX_PAUSE);
        self.delay = if again {
            (self.delay * 2).clamp(MIN_PAUSE, MAX_PAUSE)
        } else {
            Duration::ZERO
        };
        self.last = Some(now);
    }
}

/// Maintains the certificate and the configuration.
pub(crate) struct Keeper {
    client: kube::Client,
    rules: Vec<Rule>,
    target: Target,
    source: Source,
    current: Current,
    /// The failures, as far as they were logged.
    said: Repeats,
    served: Served,
    /// The authorities of the served certificate, as in the configurations.
    trusted: Option<String>,
    /// When a certificate that is not served yet may be.
    waiting: Option<Instant>,
    is_served: bool,
    /// How long API servers may take to follow a configuration.
    spread: Duration,
    clock: Arc<dyn Clock>,
    /// Whether the certificate may have changed.
    look_again: bool,
    certificate_pause: Pause,
    configurations: [Kept; 2],
    definitions: definitions::Kept,
    definitions_pause: Pause,
    /// Changes with every change of a definition.
    defined: watch::Receiver<()>,
}

/// A configuration that is kept as desired.
struct Kept {
    of: Configuration,
    /// Its last observed state.
    seen: Option<Value>,
    pause: Pause,
}

impl Kept {
    fn new(of: Configuration) -> Self {
        Self {
            of,
            seen: None,
            pause: Pause::default(),
        }
    }

    fn is_current(&self, want: &Value) -> bool {
        self.seen.as_ref().is_some_and(|seen| is_current(want, seen))
    }

    fn saw(&mut self, followed: &Followed<Dynamic>) {
        if !followed.cache.is_synced() {
            return;
        }
        // The last write is newer than events that are still to come.
        let known = self.seen.as_ref().and_then(revision);
        if known.is_some_and(|known| known > followed.cache.version()) {
            return;
        }
        self.seen = followed.seen().map(|object| object.value().clone());
    }

    async fn read(&mut self, client: &kube::Client) -> Result<(), WebhookError> {
        let found = ApiClient::from(client).get_value(&self.of.path()).await;
        self.seen = found.map_err(|error| failed(self.of, "read", error))?;
        Ok(())
    }

    async fn write(&mut self, client: &kube::Client, want: &Value) -> Result<(), WebhookError> {
        let client = ApiClient::from(client);
        let applied = client.apply_value(&self.of.path(), FIELD_MANAGER, want).await;
        let mut stored = applied.map_err(|error| failed(self.of, "apply", error))?;
        if !is_current(want, &stored) {
            // Fields that other managers added to our webhooks are theirs, so an apply does not remove them.
            let replaced = client.replace_value(&self.of.path(), &corrected(want, &stored)).await;
            stored = replaced.map_err(|error| failed(self.of, "replace", error))?;
        }
        tracing::info!(name = self.of.name(), "wrote the webhook configuration");
        self.seen = Some(stored);
        Ok(())
    }
}

fn failed(of: Configuration, verb: &'static str, source: RequestError) -> WebhookError {
    WebhookError::Request {
        verb,
        what: format!("{} {}", of.kind(), of.name()),
        needs: format!(
            "get, list, watch, create, patch and update on {}.admissionregistration.k8s.io",
            of.resource()
        ),
        source: Box::new(source),
    }
}

fn revision(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

/// One object, followed by a watch. The receiver changes with every change of the object, and with the first list.
struct Followed<T> {
    cache: Cache<T>,
    key: ObjectKey,
    changed: watch::Receiver<()>,
}

impl<T: Codec> Followed<T> {
    fn new(cache: Cache<T>, key: ObjectKey, tasks: &Tasks) -> Self {
        let (tell, changed) = watch::channel(());
        let told = tell.clone();
        cache.subscribe(move |_| told.send_replace(()));
        let listed = cache.listed();
        tasks.spawn("first list", async move {
            if listed.await {
                tell.send_replace(());
            }
        });
        Self { cache, key, changed }
    }

    /// Resolves when the object may have changed; never after the end of the watch.
    async fn changed(&mut self) {
        if self.changed.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The last state of the object. Call it only after the first list.
    fn seen(&self) -> Option<Arc<T>> {
        self.cache.get(&self.key)
    }
}

impl Keeper {
    pub(crate) fn new(
        client: kube::Client,
        rules: Vec<Rule>,
        target: Target,
        source: Source,
        current: Current,
        (served, definitions): (Served, Definitions),
        (clock, spread): (Arc<dyn Clock>, Duration),
    ) -> Self {
        let (tell, defined) = watch::channel(());
        definitions.cache().subscribe(move |_| tell.send_replace(()));
        Self {
            client,
            rules,
            target,
            source,
            trusted: current.authorities.clone(),
            waiting: None,
            is_served: true,
            spread,
            current,
            said: Repeats::default(),
            served,
            clock,
            look_again: false,
            certificate_pause: Pause::default(),
            configurations: Configuration::ALL.map(Kept::new),
            definitions: definitions::Kept::new(definitions),
            definitions_pause: Pause::default(),
            defined,
        }
    }

    fn desired(&self, of: Configuration) -> Value {
        desired(of, &self.rules, &self.target, self.current.authorities.as_deref())
    }

    /// The desired conversion of our kinds with older versions.
    fn conversion(&self) -> Value {
        definitions::desired(&self.target, self.current.authorities.as_deref())
    }

    fn is_current(&self) -> bool {
        let is_current = |kept: &Kept| kept.is_current(&self.desired(kept.of));
        self.configurations.iter().all(is_current) && self.definitions.outdated(&self.conversion()).is_empty()
    }

    /// Writes the configurations that differ.
    pub(crate) async fn begin(&mut self) -> Result<(), WebhookError> {
        for at in 0..self.configurations.len() {
            let want = self.desired(self.configurations[at].of);
            let kept = &mut self.configurations[at];
            kept.read(&self.client).await?;
            if !kept.is_current(&want) {
                kept.write(&self.client, &want).await?;
            }
        }
        let conversion = self.conversion();
        for name in self.definitions.names() {
            self.definitions.correct(&self.client, &name, &conversion).await?;
        }
        Ok(())
    }

    /// Runs until it is stopped.
    pub(crate) async fn run(mut self, look: Duration, stop: CancellationToken) {
        let tasks = Tasks::new();
        let [mut mutating, mut validating] = Configuration::ALL.map(|of| {
            let (client, gvk) = (
                self.client.clone(),
                gvk_from("admissionregistration.k8s.io/v1", of.kind()),
            );
            let cache = Cache::<Dynamic>::stand_alone_object(client, of.collection(), gvk, of.name(), &tasks);
            Followed::new(cache, ObjectKey::cluster_scoped(of.name()), &tasks)
        });
        let mut secrets = match &self.source {
            Source::Secret(kept) => {
                let url = format!("/api/v1/namespaces/{}/secrets", kept.namespace);
                let (client, gvk) = (self.client.clone(), gvk_of::<Secret>());
                let cache = Cache::<Secret>::stand_alone_object(client, url, gvk, SECRET_NAME, &tasks);
                let key = ObjectKey::new(kept.namespace.as_str(), SECRET_NAME);
                Some(Followed::new(cache, key, &tasks))
            }
            Source::Folder { .. } => None,
        };
        let is_folder = matches!(self.source, Source::Folder { .. });
        let mut looks = tokio::time::interval(look);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let next = self.next_try();
            let again = async {
                match next {
                    Some(next) => tokio::time::sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            let secret_changed = async {
                match &mut secrets {
                    Some(secrets) => secrets.changed().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return tasks.stop(),
                () = mutating.changed() => self.configurations[0].saw(&mutating),
                () = validating.changed() => self.configurations[1].saw(&validating),
                Ok(()) = self.defined.changed() => {}
                () = secret_changed => self.saw_secret(secrets.as_ref()),
                _ = looks.tick() => self.look_again |= is_folder || self.is_due(),
                () = again => {}
            }
            self.catch_up().await;
        }
    }

    /// The time of the next repair.
    fn next_try(&self) -> Option<Instant> {
        let certificate = self.look_again.then(|| self.certificate_pause.next());
        let is_undefined = !self.definitions.outdated(&self.conversion()).is_empty();
        let outdated = self
            .configurations
            .iter()
            .filter(|kept| !kept.is_current(&self.desired(kept.of)));
        certificate
            .into_iter()
            .chain(outdated.map(|kept| kept.pause.next()))
            .chain(is_undefined.then(|| self.definitions_pause.next()))
            .chain(self.waiting)
            .min()
    }

    fn is_due(&self) -> bool {
        match &self.current.from {
            From::Secret(material) => material.renewal().is_none_or(|renewal| self.clock.now() >= renewal),
            From::Files(_) => false,
        }
    }

    fn saw_secret(&mut self, followed: Option<&Followed<Secret>>) {
        let Some(followed) = followed.filter(|followed| followed.cache.is_synced()) else {
            return;
        };
        let stored = followed.seen().and_then(|secret| material(&secret)).map(From::Secret);
        self.look_again |= stored.is_none_or(|stored| stored != self.current.from);
    }

    /// Does due work, unless a backoff delays it. A new CA is in the configuration before the server uses its
    /// certificates.
    async fn catch_up(&mut self) {
        if self.look_again && self.certificate_pause.next() <= Instant::now() {
            self.read_certificate().await;
        }
        for at in 0..self.configurations.len() {
            let want = self.desired(self.configurations[at].of);
            let kept = &mut self.configurations[at];
            if kept.is_current(&want) || kept.pause.next() > Instant::now() {
                continue;
            }
            kept.pause.tried();
            if let Err(error) = kept.write(&self.client, &want).await {
                warn(&self.said, "the webhook configuration cannot be kept right", &error);
            }
        }
        self.correct_definitions().await;
        if !self.is_current() {
            // An API server may have seen a configuration without the authority again.
            self.waiting = None;
        } else if !self.is_served {
            self.serve();
        }
    }

    async fn correct_definitions(&mut self) {
        let want = self.conversion();
        let outdated = self.definitions.outdated(&want);
        if outdated.is_empty() || self.definitions_pause.next() > Instant::now() {
            return;
        }
        self.definitions_pause.tried();
        for name in outdated {
            if let Err(error) = self.definitions.correct(&self.client, &name, &want).await {
                warn(
                    &self.said,
                    "the conversion of a CustomResourceDefinition cannot be kept right",
                    &error,
                );
            }
        }
    }

    /// Serves the certificate in use once API servers have seen its authorities: each follows the configurations by a watch, and refuses
    /// writes whose webhook it does not trust.
    fn serve(&mut self) {
        let now = Instant::now();
        let is_known = self.trusted == self.current.authorities;
        let delay = if is_known || !self.may_stay() {
            Duration::ZERO
        } else {
            self.spread
        };
        if *self.waiting.get_or_insert(now + delay) > now {
            return;
        }
        self.served.set(Arc::clone(&self.current.certified));
        self.trusted.clone_from(&self.current.authorities);
        (self.is_served, self.waiting) = (true, None);
    }

    /// Whether the served certificate is trusted by the authorities in use, too.
    fn may_stay(&self) -> bool {
        let names = match &self.source {
            Source::Secret(kept) => kept.names.as_slice(),
            // The certificate of a user needs only the first name.
            Source::Folder { names, .. } => names.get(..1).unwrap_or_default(),
        };
        let authorities = self.current.authorities.as_deref().unwrap_or_default();
        let (authorities, served) = (Certificate::all_from_pem(authorities), self.served.get());
        let chain: Result<Vec<_>, _> = served
            .cert
            .iter()
            .map(|der| Certificate::from_der(der.to_vec()))
            .collect();
        let (Ok(authorities), Ok(chain)) = (authorities, chain) else {
            return false;
        };
        let now = self.clock.now();
        names
            .iter()
            .all(|name| accepted(&authorities, &chain, name, now).is_ok())
    }

    async fn read_certificate(&mut self) {
        let read = self.source.read(Some(&self.current), self.clock.now()).await;
        match read {
            Ok(read) => {
                self.look_again = false;
                if read.from != self.current.from {
                    tracing::info!("replaced the webhook certificate");
                    self.current = read;
                    (self.is_served, self.waiting) = (false, None);
                }
            }
            Err(error) => {
                // Files are reread periodically.
                let is_folder = matches!(self.source, Source::Folder { .. });
                self.look_again = !is_folder;
                self.certificate_pause.tried();
                warn(&self.said, "the webhook certificate stays as it is", &error);
            }
        }
    }
}

fn warn(said: &Repeats, what: &str, error: &WebhookError) {
    let cause = std::error::Error::source(error)
        .map(ToString::to_string)
        .unwrap_or_default();
    if let Some(repeated) = said.line(what, &format!("{error}: {cause}"), std::time::Instant::now()) {
        let hint = error.hint().unwrap_or_default();
        tracing::warn!(%error, cause, hint, repeated, "{what}");
    }
}
