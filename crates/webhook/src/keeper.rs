//! Background work of a webhook server: renews certificates and repairs the webhook configuration.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::Either;
use futures::{Stream, StreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use rustls::sign::CertifiedKey;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_meta::Clock;

use crate::certified::{Served, certified};
use crate::configuration::{FIELD_MANAGER, NAME, corrected, desired, is_current};
use crate::error::WebhookError;
use crate::files::Files;
use crate::material::Material;
use crate::rule::Rule;
use crate::secret::{Kept, SECRET_NAME, material};
use crate::target::Target;

/// The shortest pause.
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause after failures, and between corrections when another writer changes it back.
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// Where the certificate comes from.
pub(crate) enum Source {
    Secret(Kept),
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
    api: Api<DynamicObject>,
    rules: Vec<Rule>,
    target: Target,
    source: Source,
    current: Current,
    served: Served,
    clock: Arc<dyn Clock>,
    /// The certificate may have changed.
    look_again: bool,
    /// The last observed configuration.
    configuration: Option<Value>,
    certificate_pause: Pause,
    configuration_pause: Pause,
}

fn configurations(client: kube::Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration");
    Api::all_with(
        client,
        &ApiResource::from_gvk_with_plural(&kind, "validatingwebhookconfigurations"),
    )
}

fn failed(verb: &'static str, source: kube::Error) -> WebhookError {
    WebhookError::Request {
        verb,
        what: format!("ValidatingWebhookConfiguration {NAME}"),
        needs:
            "get, list, watch, create, patch and update on validatingwebhookconfigurations.admissionregistration.k8s.io"
                .to_owned(),
        source: Box::new(source),
    }
}

fn revision(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

fn value(object: DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

impl Keeper {
    pub(crate) fn new(
        client: kube::Client,
        rules: Vec<Rule>,
        target: Target,
        source: Source,
        current: Current,
        served: Served,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            api: configurations(client),
            rules,
            target,
            source,
            current,
            served,
            clock,
            look_again: false,
            configuration: None,
            certificate_pause: Pause::default(),
            configuration_pause: Pause::default(),
        }
    }

    fn desired(&self) -> Value {
        desired(&self.rules, &self.target, self.current.authorities.as_deref())
    }

    fn is_current(&self) -> bool {
        let have = self.configuration.as_ref();
        have.is_some_and(|have| is_current(&self.desired(), have))
    }

    /// Writes the configuration if it differs.
    pub(crate) async fn begin(&mut self) -> Result<(), WebhookError> {
        let found = self.api.get_opt(NAME).await.map_err(|error| failed("read", error))?;
        self.configuration = found.map(value);
        if self.is_current() {
            return Ok(());
        }
        self.write().await
    }

    async fn write(&mut self) -> Result<(), WebhookError> {
        let want = self.desired();
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let applied = self.api.patch(NAME, &parameters, &Patch::Apply(&want)).await;
        let mut stored = value(applied.map_err(|error| failed("apply", error))?);
        if !is_current(&want, &stored) {
            // Other managers own their additions to our webhooks, so an apply does not remove them.
            let corrected = serde_json::from_value(corrected(&want, &stored)).map_err(kube::Error::SerdeError);
            let corrected: DynamicObject = corrected.map_err(|error| failed("replace", error))?;
            let replaced = self.api.replace(NAME, &PostParams::default(), &corrected).await;
            stored = value(replaced.map_err(|error| failed("replace", error))?);
        }
        tracing::info!(name = NAME, "wrote the webhook configuration");
        self.configuration = Some(stored);
        Ok(())
    }

    /// Runs until it is stopped.
    pub(crate) async fn run(mut self, look: Duration, stop: CancellationToken) {
        let only = |name: &str| watcher::Config::default().fields(&format!("metadata.name={name}"));
        let mut configurations = pin!(watcher(self.api.clone(), only(NAME)).default_backoff());
        let secrets = match &self.source {
            Source::Secret(kept) => Either::Left(watcher(kept.api(), only(SECRET_NAME)).default_backoff()),
            Source::Folder { .. } => Either::Right(stream::pending::<Result<watcher::Event<Secret>, watcher::Error>>()),
        };
        let mut secrets = pin!(secrets);
        let is_folder = matches!(self.source, Source::Folder { .. });
        let mut looks = tokio::time::interval(look);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut seen, mut secret_seen) = (false, false);
        loop {
            let next = self.next_try();
            let again = async {
                match next {
                    Some(next) => tokio::time::sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                event = next_event(&mut configurations) => self.saw_configuration(event, &mut seen),
                event = next_event(&mut secrets) => self.saw_secret(event, &mut secret_seen),
                _ = looks.tick() => self.look_again |= is_folder || self.is_due(),
                () = again => {}
            }
            self.catch_up().await;
        }
    }

    /// The time of the next repair.
    fn next_try(&self) -> Option<Instant> {
        let certificate = self.look_again.then(|| self.certificate_pause.next());
        let configuration = (!self.is_current()).then(|| self.configuration_pause.next());
        certificate.into_iter().chain(configuration).min()
    }

    fn is_due(&self) -> bool {
        match &self.current.from {
            From::Secret(material) => material.renewal().is_none_or(|renewal| self.clock.now() >= renewal),
            From::Files(_) => false,
        }
    }

    fn saw_configuration(&mut self, event: watcher::Event<DynamicObject>, seen: &mut bool) {
        match event {
            watcher::Event::Init => *seen = false,
            watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
                *seen = true;
                let object = value(object);
                // Our own write is newer than pending events.
                let is_old = self
                    .configuration
                    .as_ref()
                    .is_some_and(|known| revision(&object) < revision(known));
                if !is_old {
                    self.configuration = Some(object);
                }
            }
            watcher::Event::InitDone if *seen => {}
            watcher::Event::InitDone => self.configuration = None,
            watcher::Event::Delete(object) => {
                let known = self.configuration.as_ref();
                if known.is_some_and(|known| known["metadata"]["uid"] == value(object)["metadata"]["uid"]) {
                    self.configuration = None;
                }
            }
        }
    }

    fn saw_secret(&mut self, event: watcher::Event<Secret>, seen: &mut bool) {
        match event {
            watcher::Event::Init => *seen = false,
            watcher::Event::InitApply(secret) | watcher::Event::Apply(secret) => {
                *seen = true;
                let stored = material(&secret).map(From::Secret);
                self.look_again |= stored.is_none_or(|stored| stored != self.current.from);
            }
            watcher::Event::InitDone => self.look_again |= !*seen,
            watcher::Event::Delete(_) => self.look_again = true,
        }
    }

    /// Does due work, unless a backoff delays it. A new CA is in the configuration before the server uses its
    /// certificates.
    async fn catch_up(&mut self) {
        if self.look_again && self.certificate_pause.next() <= Instant::now() {
            self.read_certificate().await;
        }
        if !self.is_current() && self.configuration_pause.next() <= Instant::now() {
            self.configuration_pause.tried();
            if let Err(error) = self.write().await {
                warn("the webhook configuration cannot be kept right", &error);
            }
        }
        if self.is_current() {
            self.served.set(Arc::clone(&self.current.certified));
        }
    }

    async fn read_certificate(&mut self) {
        let read = self.source.read(Some(&self.current), self.clock.now()).await;
        match read {
            Ok(read) => {
                self.look_again = false;
                if read.from != self.current.from {
                    tracing::info!("replaced the webhook certificate");
                    self.current = read;
                }
            }
            Err(error) => {
                // Files are reread periodically.
                let is_folder = matches!(self.source, Source::Folder { .. });
                self.look_again = !is_folder;
                self.certificate_pause.tried();
                warn("the webhook certificate stays as it is", &error);
            }
        }
    }
}

fn warn(what: &str, error: &WebhookError) {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    tracing::warn!(%error, cause = cause.unwrap_or_default(), hint = error.hint().unwrap_or_default(), "{what}");
}

/// The next event; a watch that failed starts again by itself.
async fn next_event<K>(
    events: &mut (impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Unpin),
) -> watcher::Event<K> {
    loop {
        match events.next().await {
            Some(Ok(event)) => return event,
            Some(Err(error)) => tracing::debug!(%error, "watch for webhooks"),
            None => std::future::pending().await,
        }
    }
}
