//! Leader election with a Lease, as client-go's: of all processes that ask for a Lease, one holds it and writes.
//!
//! [`decide`] is pure. [`Candidate`] reads, writes and watches the Lease with a client that has no fence, and keeps the [`Term`] of
//! the process.

use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::{ObjectMeta, PostParams, WatchParams};
use tokio::time::Instant;
use windlass_meta::repeats::Repeats;

use crate::error::with_causes;
use crate::metrics::Metrics;
use crate::term::Term;
use crate::watch_events::watch_events;

/// How much longer than the retry period a candidate may wait, as a factor.
const JITTER: f64 = 1.2;

/// The durations of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The time after which candidates take a Lease that is not renewed.
    pub lease: Duration,
    /// The time after which a holder that cannot renew gives up. Shorter than `lease`.
    pub renew: Duration,
    /// The time between two attempts.
    pub retry: Duration,
}

impl Timing {
    /// Checks what client-go requires.
    pub fn check(&self) -> Result<(), &'static str> {
        // The Lease holds whole seconds, and candidates wait for these.
        if Duration::from_secs(self.lease.as_secs()) <= self.renew {
            return Err("the lease duration, in whole seconds, must be longer than the renew deadline");
        }
        if self.retry.is_zero() || self.renew <= self.retry.mul_f64(JITTER) {
            return Err("the renew deadline must be longer than 1.2 times the retry period, which must not be zero");
        }
        if self.lease < Duration::from_secs(1) {
            return Err("the lease duration must be at least one second");
        }
        Ok(())
    }
}

/// Why a process does not hold its Lease any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// Another process has it.
    #[error("Lease {lease} is now held by {holder}")]
    Taken {
        /// Namespace and name.
        lease: String,
        /// Who has it.
        holder: String,
    },
    /// It was not renewed in time: the API server did not answer, the process was frozen, or the clock has jumped.
    #[error("Lease {lease} was not renewed within {} s: {why}", within.as_secs_f64())]
    Late {
        /// Namespace and name.
        lease: String,
        /// The renew deadline.
        within: Duration,
        /// The last failure.
        why: String,
    },
}

/// What to do with the Lease.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// Write this: take or renew it.
    Write(Box<LeaseSpec>),
    /// Another process holds it.
    Wait {
        holder: String,
        /// For at least this time.
        left: Duration,
    },
    /// This process held it, and another one holds it now.
    Taken(String),
}

/// Decides what to do. `unchanged` is the time since this process first saw the Lease in this state, by its own steady clock: the
/// times in the Lease come from the clocks of other machines.
fn decide(
    lease: Option<&LeaseSpec>,
    unchanged: Duration,
    me: &str,
    leads: bool,
    duration: Duration,
    now: Timestamp,
) -> Step {
    let fallback = LeaseSpec::default();
    let seen = lease.unwrap_or(&fallback);
    let holder = seen.holder_identity.as_deref().unwrap_or_default();
    let changes = seen.lease_transitions.unwrap_or_default();
    let mine = LeaseSpec {
        holder_identity: Some(me.to_owned()),
        lease_duration_seconds: Some(i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)),
        acquire_time: Some(MicroTime(now)),
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(changes),
        ..seen.clone()
    };
    if holder == me {
        let acquire_time = seen.acquire_time.clone().or_else(|| mine.acquire_time.clone());
        return Step::Write(Box::new(LeaseSpec { acquire_time, ..mine }));
    }
    if !holder.is_empty() {
        if leads {
            return Step::Taken(holder.to_owned());
        }
        let lasts = seen.lease_duration_seconds.and_then(|s| u64::try_from(s).ok());
        let left = lasts.map_or(duration, Duration::from_secs).saturating_sub(unchanged);
        if !left.is_zero() {
            return Step::Wait {
                holder: holder.to_owned(),
                left,
            };
        }
    }
    Step::Write(Box::new(LeaseSpec {
        lease_transitions: Some(if lease.is_some() { changes.saturating_add(1) } else { 0 }),
        ..mine
    }))
}

/// A process that asks for a Lease, and may hold it.
pub struct Candidate {
    leases: Api<Lease>,
    namespace: String,
    name: String,
    identity: String,
    timing: Timing,
    term: Term,
    metrics: Metrics,
    /// The Lease as last seen (its version), and since when.
    seen: Option<(Option<String>, Instant)>,
    changes: Option<BoxStream<'static, ()>>,
}

impl std::fmt::Debug for Candidate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Candidate")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

impl Candidate {
    /// Asks for the Lease `namespace`/`name` as `identity`, which no other process may have. `client` must have no fence; `term` is
    /// that of the controllers.
    pub fn new(
        client: &kube::Client,
        (namespace, name): (&str, &str),
        identity: String,
        timing: Timing,
        term: Term,
        metrics: Metrics,
    ) -> Self {
        metrics.leading(name, false);
        Self {
            leases: Api::namespaced(client.clone(), namespace),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity,
            timing,
            term,
            metrics,
            seen: None,
            changes: None,
        }
    }

    fn lease(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// Waits until this process holds the Lease; its term has begun then. `waits` gets the sentence that says what it waits for, each
    /// time that changes.
    pub async fn win(&mut self, mut waits: impl FnMut(&str)) {
        let (said, mut holder) = (Repeats::default(), String::new());
        loop {
            let pause = self.timing.retry.mul_f64(1.0 + JITTER * rand::random::<f64>());
            let pause = match self.attempt(false).await {
                Ok(Step::Write(_)) if self.term.holds() => break,
                Ok(Step::Wait { holder: seen, left }) => {
                    if seen != holder {
                        waits(&format!(
                            "this process waits for Lease {}, which {seen} holds",
                            self.lease()
                        ));
                        holder = seen;
                    }
                    pause.min(left)
                }
                Ok(_) => pause,
                Err(error) => {
                    if let Some(repeated) = said.line("", &error, std::time::Instant::now()) {
                        tracing::warn!(
                            lease = self.lease(),
                            repeated,
                            "cannot ask for the Lease, and tries again: {error}"
                        );
                    }
                    pause
                }
            };
            self.change_within(pause).await;
        }
        self.changes = None;
        self.metrics.leading(&self.name, true);
        tracing::info!(
            lease = self.lease(),
            identity = self.identity,
            "this process holds the Lease"
        );
    }

    /// Renews the Lease until it is lost. The term is over then.
    pub async fn hold(&mut self) -> Lost {
        let term = self.term.clone();
        let mut why = "the process was frozen, or the clock has jumped".to_owned();
        let lost = tokio::select! {
            biased;
            () = term.ended() => None,
            holder = self.renew(&mut why) => Some(holder),
        };
        self.term.end();
        self.metrics.leading(&self.name, false);
        let lease = self.lease();
        match lost {
            Some(holder) => Lost::Taken { lease, holder },
            None => Lost::Late {
                lease,
                within: self.timing.renew,
                why,
            },
        }
    }

    /// Renews until another process holds the Lease.
    async fn renew(&mut self, why: &mut String) -> String {
        let said = Repeats::default();
        loop {
            tokio::time::sleep(self.timing.retry).await;
            match self.attempt(true).await {
                Ok(Step::Taken(holder)) => return holder,
                Ok(_) => "the process was frozen, or the clock has jumped".clone_into(why),
                Err(error) => {
                    if let Some(repeated) = said.line("", &error, std::time::Instant::now()) {
                        tracing::warn!(
                            lease = self.lease(),
                            repeated,
                            "cannot renew the Lease, and tries again: {error}"
                        );
                    }
                    *why = error;
                }
            }
        }
    }

    /// Gives the Lease back, if this process holds it, so that a candidate takes it at once. Only for a process whose controllers
    /// have ended.
    pub async fn release(&mut self) {
        self.term.end();
        self.metrics.leading(&self.name, false);
        let given = tokio::time::timeout(self.timing.renew / 2, async {
            let Some(mut lease) = self.leases.get_opt(&self.name).await? else {
                return Ok(());
            };
            let Some(spec) = lease
                .spec
                .as_mut()
                .filter(|spec| spec.holder_identity.as_deref() == Some(&self.identity))
            else {
                return Ok(());
            };
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
            self.leases.replace(&self.name, &PostParams::default(), &lease).await?;
            tracing::info!(lease = self.lease(), "this process has released the Lease");
            Ok::<_, kube::Error>(())
        });
        let why = match given.await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => with_causes(&error),
            Err(_) => "no answer in time".to_owned(),
        };
        tracing::warn!(
            lease = self.lease(),
            "cannot release the Lease; candidates wait until it expires: {why}"
        );
    }

    /// Reads the Lease, and does what [`decide`] says.
    async fn attempt(&mut self, leads: bool) -> Result<Step, String> {
        // Two attempts fit into the deadline.
        let limit = self.timing.renew / 2;
        let attempt = tokio::time::timeout(limit, self.attempt_once(leads)).await;
        match attempt {
            Err(_) => Err("no answer in time".to_owned()),
            Ok(done) => done.map_err(|error| with_causes(&error)),
        }
    }

    async fn attempt_once(&mut self, leads: bool) -> kube::Result<Step> {
        let lease = self.leases.get_opt(&self.name).await?;
        let version = lease.as_ref().and_then(|lease| lease.metadata.resource_version.clone());
        let since = match &self.seen {
            Some((known, since)) if *known == version => *since,
            _ => self.seen.insert((version.clone(), Instant::now())).1,
        };
        // The term counts from before the write: its answer may come late.
        let asked = self.term.point();
        let (timing, spec) = (self.timing, lease.as_ref().and_then(|lease| lease.spec.as_ref()));
        let now = asked.map_or(Timestamp::UNIX_EPOCH, |point| point.day());
        let step = decide(spec, since.elapsed(), &self.identity, leads, timing.lease, now);
        let Step::Write(spec) = &step else {
            self.follow(version.as_deref()).await;
            return Ok(step);
        };
        let wanted = Lease {
            metadata: lease.as_ref().map_or_else(
                || ObjectMeta {
                    name: Some(self.name.clone()),
                    namespace: Some(self.namespace.clone()),
                    ..ObjectMeta::default()
                },
                |lease| lease.metadata.clone(),
            ),
            spec: Some((**spec).clone()),
        };
        // The resourceVersion that was read makes the write fail if another process was first.
        match lease {
            Some(_) => self.leases.replace(&self.name, &PostParams::default(), &wanted).await?,
            None => self.leases.create(&PostParams::default(), &wanted).await?,
        };
        self.term.extend(asked, timing.renew);
        Ok(step)
    }

    /// Watches the Lease from a version, so that a released Lease is noticed at once.
    async fn follow(&mut self, version: Option<&str>) {
        if self.changes.is_some() {
            return;
        }
        let chosen = WatchParams::default().fields(&format!("metadata.name={}", self.name));
        // Without a watch, the retry period applies.
        if let Ok(events) = watch_events(&self.leases, &chosen, version.unwrap_or("0")).await {
            self.changes = Some(
                events
                    .map_err(drop)
                    .take_while(|event| std::future::ready(event.is_ok()))
                    .map(drop)
                    .boxed(),
            );
        }
    }

    /// Waits for a change of the Lease, at most for a time.
    async fn change_within(&mut self, pause: Duration) {
        let Some(changes) = &mut self.changes else {
            return tokio::time::sleep(pause).await;
        };
        if let Ok(None) = tokio::time::timeout(pause, changes.next()).await {
            self.changes = None;
            tokio::time::sleep(pause).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    fn at(second: i64) -> Timestamp {
        Timestamp::constant(1_800_000_000 + second, 0)
    }

    fn held(by: &str, seconds: i32, changes: i32) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(by.to_owned()),
            lease_duration_seconds: Some(seconds),
            acquire_time: Some(MicroTime(at(0))),
            renew_time: Some(MicroTime(at(0))),
            lease_transitions: Some(changes),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn a_lease_is_taken_renewed_or_waited_for() {
        let check = |lease: Option<LeaseSpec>, unchanged: u64, leads: bool, expect: &str| {
            let step = decide(
                lease.as_ref(),
                Duration::from_secs(unchanged),
                "me",
                leads,
                LEASE,
                at(60),
            );
            let said = match step {
                Step::Wait { holder, left } => format!("wait {} for {holder}", left.as_secs()),
                Step::Taken(holder) => format!("taken by {holder}"),
                Step::Write(spec) => {
                    assert_eq!(spec.holder_identity.as_deref(), Some("me"));
                    assert_eq!(
                        (spec.lease_duration_seconds, spec.renew_time),
                        (Some(15), Some(MicroTime(at(60))))
                    );
                    let since = spec.acquire_time.unwrap().0.duration_since(at(0)).as_secs();
                    format!("since {since}, change {}", spec.lease_transitions.unwrap())
                }
            };
            assert_eq!(said, expect);
        };
        check(None, 0, false, "since 60, change 0");
        check(Some(LeaseSpec::default()), 0, false, "since 60, change 1");
        // Released.
        check(Some(held("", 1, 3)), 0, false, "since 60, change 4");
        check(Some(held("", 1, 3)), 0, true, "since 60, change 4");
        // Its own, also from before a lost answer.
        check(Some(held("me", 15, 3)), 0, false, "since 0, change 3");
        check(Some(held("me", 15, 3)), 100, true, "since 0, change 3");
        // Another holder: the duration in the Lease counts, from when it was seen, not the times in it.
        check(Some(held("other", 15, 3)), 0, false, "wait 15 for other");
        check(Some(held("other", 60, 3)), 59, false, "wait 1 for other");
        check(Some(held("other", 15, 3)), 15, false, "since 60, change 4");
        check(Some(held("other", -1, 3)), 14, false, "wait 1 for other");
        check(Some(held("other", 15, 3)), 100, true, "taken by other");
        // Deleted while it was held.
        check(None, 0, true, "since 60, change 0");
    }

    #[test]
    fn durations_fit_together() {
        let check = |lease: u64, renew: u64, retry: u64, expect: bool| {
            let [lease, renew, retry] = [lease, renew, retry].map(Duration::from_millis);
            assert_eq!(Timing { lease, renew, retry }.check().is_ok(), expect);
        };
        check(15_000, 10_000, 2_000, true);
        // The times of the KubeadmControlPlane manager of v1.14.
        check(60_000, 40_000, 5_000, true);
        check(10_000, 10_000, 2_000, false);
        check(15_000, 2_400, 2_000, false);
        check(15_000, 10_000, 0, false);
        check(900, 500, 100, false);
        // The Lease holds whole seconds: candidates would wait for two.
        check(2_900, 2_500, 2_000, false);
        check(2_900, 1_900, 1_500, true);
    }
}
