//! Processes that want the same Lease.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::PostParams;
use windlass_controller_runtime::{Candidate, Clock, Lost, Metrics, SystemClock, Term, Timing};
use windlass_meta::FakeClock;
use windlass_testkit::Server;

use crate::harness::eventually;

const TIMING: Timing = Timing {
    lease: Duration::from_secs(15),
    renew: Duration::from_secs(10),
    retry: Duration::from_secs(2),
};

/// Only a hang takes this long.
const LONG: Duration = Duration::from_mins(1);

fn candidate(client: &kube::Client, name: &str, timing: Timing, clock: impl Clock + 'static) -> (Candidate, Term) {
    let term = Term::waiting(Arc::new(clock));
    let lease = ("default", "test");
    let candidate = Candidate::new(client, lease, name.to_owned(), timing, term.clone(), Metrics::new());
    (candidate, term)
}

async fn holder_of(client: &kube::Client) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "default");
    leases.get_opt("test").await.unwrap()?.spec?.holder_identity
}

fn map(name: &str) -> k8s_openapi::api::core::v1::ConfigMap {
    let mut map = k8s_openapi::api::core::v1::ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

#[tokio::test]
async fn a_released_lease_is_taken_at_once_and_the_old_term_writes_nothing() {
    let server = Server::start().await;
    let client = server.client("test");
    // Neither the next attempt nor the end of the Lease comes soon enough: only the release itself can end the wait.
    let patient = Timing {
        lease: Duration::from_mins(40),
        renew: Duration::from_mins(30),
        retry: Duration::from_mins(10),
    };
    let (mut first, term) = candidate(&client, "first", patient, SystemClock);
    let (mut second, later) = candidate(&client, "second", patient, SystemClock);
    first.win(|_| ()).await;
    let fenced: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(term.fence(client.clone()), "default");
    let waiting: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(later.fence(client.clone()), "default");
    fenced.create(&PostParams::default(), &map("a")).await.unwrap();
    let refused = waiting.create(&PostParams::default(), &map("b")).await.unwrap_err();
    assert!(matches!(refused, kube::Error::Service(_)), "{refused}");
    assert!(waiting.get_opt("a").await.unwrap().is_some(), "a candidate reads");

    let (says, mut waits) = tokio::sync::mpsc::unbounded_channel();
    let taken = tokio::spawn(async move {
        second.win(|words| says.send(words.to_owned()).unwrap()).await;
    });
    let words = tokio::time::timeout(LONG, waits.recv()).await.unwrap().unwrap();
    assert_eq!(words, "this process waits for Lease default/test, which first holds");
    first.release().await;
    tokio::time::timeout(LONG, taken).await.unwrap().unwrap();
    assert_eq!(holder_of(&client).await.as_deref(), Some("second"));
    fenced.create(&PostParams::default(), &map("c")).await.unwrap_err();
    waiting.create(&PostParams::default(), &map("d")).await.unwrap();
}

#[tokio::test]
async fn a_clock_that_jumps_ends_the_term_and_an_expired_lease_is_taken() {
    let server = Server::start().await;
    let client = server.client("test");
    let clock = FakeClock::default();
    let timing = Timing {
        lease: Duration::from_secs(1),
        renew: Duration::from_millis(900),
        retry: Duration::from_millis(100),
    };
    let (mut first, term) = candidate(&client, "first", timing, clock.clone());
    first.win(|_| ()).await;
    let fenced: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(term.fence(client.clone()), "default");
    clock.advance(SignedDuration::from_secs(5));
    fenced.create(&PostParams::default(), &map("a")).await.unwrap_err();
    assert!(matches!(first.hold().await, Lost::Late { .. }));
    let (mut second, _) = candidate(&client, "second", timing, SystemClock);
    second.win(|_| ()).await;
    eventually("the other one holds it", async || {
        (holder_of(&client).await.as_deref() == Some("second")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_holder_gives_up_at_once_when_another_process_has_the_lease() {
    let server = Server::start().await;
    let client = server.client("test");
    let timing = Timing {
        retry: Duration::from_millis(100),
        ..TIMING
    };
    let (mut first, term) = candidate(&client, "first", timing, SystemClock);
    first.win(|_| ()).await;
    let begun = term.since().unwrap();
    let leases: Api<Lease> = Api::namespaced(client.clone(), "default");
    eventually("another process has written itself into it", async || {
        let mut lease = leases.get("test").await.unwrap();
        lease.spec.as_mut()?.holder_identity = Some("thief".to_owned());
        leases.replace("test", &PostParams::default(), &lease).await.ok()
    })
    .await;
    let lost = tokio::time::timeout(LONG, first.hold()).await.unwrap();
    let (lease, holder) = ("default/test".to_owned(), "thief".to_owned());
    assert_eq!(lost, Lost::Taken { lease, holder });
    assert!(!term.holds() && begun <= jiff::Timestamp::now());
    // It does not take away what is not its own.
    first.release().await;
    assert_eq!(holder_of(&client).await.as_deref(), Some("thief"));
}
