//! The driver: a whole controller, with all faults around it that may occur.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use windlass_conditions as conditions;

use crate::gadget::{FINALIZER, Gadget, OF_CLUSTER, gadget};
use crate::harness::{Bench, Fault, Logged, eventually, meta};

fn condition<'a>(gadget: &'a Gadget, type_: &str) -> Option<&'a conditions::Condition> {
    conditions::get(&gadget.status.as_ref()?.conditions, type_)
}

fn paused(gadget: &Gadget) -> Option<(&str, &str, &str)> {
    let c = condition(gadget, "Paused")?;
    Some((&c.status, &c.reason, &c.message))
}

fn creates(bench: &Bench) -> usize {
    let writes = bench.faults.writes();
    writes
        .iter()
        .filter(|w| w.starts_with("POST ") && w.contains("/configmaps"))
        .count()
}

#[tokio::test]
async fn an_object_is_brought_to_what_it_wants() {
    let bench = Bench::start().await;
    bench.run();
    bench.make(&gadget("a", 3)).await;
    let settled = bench.settled("a", 3).await;
    assert_eq!(settled.metadata.finalizers.as_deref().unwrap(), [FINALIZER]);
    assert_eq!(paused(&settled), Some(("False", "NotPaused", "")));
    assert_eq!(bench.maps().await.len(), 3);
    // A deleted part is created again, and a surplus part is deleted.
    let name = bench.maps().await[0].metadata.name.clone().unwrap();
    let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::namespaced(bench.admin.clone(), "default");
    maps.delete(&name, &DeleteParams::default()).await.unwrap();
    eventually("it is replaced", async || {
        let names: Vec<_> = bench.maps().await.into_iter().filter_map(|m| m.metadata.name).collect();
        (names.len() == 3 && !names.contains(&name)).then_some(())
    })
    .await;
    bench.patch("a", json!({"spec": {"size": 1}})).await;
    bench.settled("a", 1).await;
}

#[tokio::test]
async fn what_cannot_be_decoded_is_not_missing() {
    let bench = Bench::start().await;
    let undecodable = |size: i64| {
        json!({"apiVersion": "test.windlass.io/v1", "kind": "Gadget", "spec": {"size": size},
            "metadata": {"name": "odd", "namespace": "default", "labels": {"cluster.x-k8s.io/cluster-name": "c1"}}})
    };
    bench.apply(undecodable(-1)).await;
    bench.make(&gadget("same-cluster", 1)).await;
    let mut other = gadget("other-cluster", 2);
    let labels = other.metadata.labels.get_or_insert_default();
    labels.insert("cluster.x-k8s.io/cluster-name".to_owned(), "c2".to_owned());
    bench.make(&other).await;
    bench.run();
    bench.settled("other-cluster", 2).await;
    eventually("nothing is decided in the cluster", async || {
        (bench.kit.metrics().reconciles("gadget", "error") > 1).then_some(())
    })
    .await;
    assert_eq!(bench.maps().await.len(), 2, "nothing was made there");
    bench.apply(undecodable(0)).await;
    bench.settled("same-cluster", 1).await;
}

#[tokio::test]
async fn nothing_is_written_for_what_is_settled() {
    let bench = Bench::start().await;
    bench.run();
    bench.make(&gadget("a", 2)).await;
    bench.settled("a", 2).await;
    bench.quiet().await;
    bench.faults.clear_log();
    let before = bench.probe.planned.load(Ordering::SeqCst);
    bench.patch("a", json!({"metadata": {"labels": {"theirs": "1"}}})).await;
    eventually("it is reconciled again", async || {
        (bench.probe.planned.load(Ordering::SeqCst) > before).then_some(())
    })
    .await;
    bench.quiet().await;
    assert_eq!(bench.faults.writes(), Vec::<String>::new());
    // The whole life of a settled object: finalizer, two creations, at most three statuses.
    let sum: u64 = ["201", "200"]
        .iter()
        .map(|code| bench.kit.metrics().requests(code, "PATCH", "in-process"))
        .sum();
    assert!(sum <= 4, "{sum} patches");
}

#[tokio::test]
async fn no_reconcile_starts_before_the_caches_have_seen_the_last_ones_writes() {
    let bench = Bench::start().await;
    // Events of created objects come late, those of the Gadget at once.
    bench
        .faults
        .add(usize::MAX, Fault::Slow(Duration::from_millis(150)), |_, uri| {
            uri.contains("/configmaps") && uri.contains("watch=true")
        });
    bench.run();
    bench.make(&gadget("a", 3)).await;
    eventually("something is created", async || (creates(&bench) > 0).then_some(())).await;
    for n in 0..20 {
        bench
            .patch("a", json!({"metadata": {"labels": {"poke": n.to_string()}}}))
            .await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    bench.settled("a", 3).await;
    assert_eq!(creates(&bench), 3, "a stale cache would have made more");
    assert_eq!(bench.maps().await.len(), 3);
}

#[tokio::test]
async fn a_creation_whose_answer_is_lost_is_not_repeated() {
    let bench = Bench::start().await;
    bench
        .faults
        .add(usize::MAX, Fault::Slow(Duration::from_millis(100)), |_, uri| {
            uri.contains("/configmaps") && uri.contains("watch=true")
        });
    bench.faults.add(2, Fault::LoseAnswer, |method, uri| {
        method == "POST" && uri.contains("/configmaps")
    });
    bench.run();
    bench.make(&gadget("a", 3)).await;
    bench.settled("a", 3).await;
    assert_eq!(creates(&bench), 3);
    assert_eq!(bench.maps().await.len(), 3);
}

#[tokio::test]
async fn failed_writes_are_tried_again() {
    let bench = Bench::start().await;
    for (code, reason) in [(409, "Conflict"), (500, "InternalError"), (429, "TooManyRequests")] {
        bench.faults.add(1, Fault::Refuse(code, reason), |method, uri| {
            method == "POST" && uri.contains("/configmaps")
        });
        bench.faults.add(1, Fault::Refuse(code, reason), |method, uri| {
            method == "PATCH" && uri.contains("/status")
        });
    }
    bench.run();
    bench.make(&gadget("a", 2)).await;
    bench.settled("a", 2).await;
    assert_eq!(bench.maps().await.len(), 2);
    assert!(bench.kit.metrics().reconciles("gadget", "error") >= 3);
}

#[tokio::test]
async fn a_status_shows_no_conflict_that_soon_ends() {
    let bench = Bench::start().await;
    // Its status is older than this process, so that nothing else delays a write.
    bench.make(&gadget("a", 1)).await;
    let condition = json!({"type": "Ready", "status": "True", "reason": "Counted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"status": {"made": 1, "conditions": [condition]}});
    bench
        .gadgets()
        .patch_status("a", &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
    bench.faults.add(3, Fault::Refuse(409, "Conflict"), |method, uri| {
        method == "POST" && uri.contains("/configmaps")
    });
    bench.run();
    eventually("the part is made", async || {
        (bench.maps().await.len() == 1).then_some(())
    })
    .await;
    bench.settled("a", 1).await;
    let writes = bench.faults.writes();
    let first = writes.iter().position(|write| write.contains("/status"));
    let before = writes[..first.unwrap_or(writes.len())].iter();
    assert_eq!(
        before.filter(|write| write.starts_with("POST ")).count(),
        4,
        "{writes:?}"
    );
}

#[tokio::test]
async fn a_conflict_that_lasts_is_shown() {
    let bench = Bench::start().await;
    bench
        .faults
        .add(usize::MAX, Fault::Refuse(409, "Conflict"), |method, uri| {
            method == "POST" && uri.contains("/configmaps")
        });
    bench.run();
    bench.make(&gadget("a", 1)).await;
    bench
        .until("a", "it says that it is not ready", |gadget| {
            condition(gadget, "Ready").is_some_and(|ready| ready.status == "False")
        })
        .await;
}

#[tokio::test]
async fn watches_that_are_cut_again_and_again_only_delay() {
    let bench = Bench::start().await;
    bench.run();
    for n in 0..5 {
        bench.make(&gadget(&format!("g{n}"), 2)).await;
        bench.faults.cut_watches();
    }
    for n in 0..5 {
        bench.settled(&format!("g{n}"), 2).await;
    }
    assert_eq!(bench.maps().await.len(), 10);
}

#[tokio::test]
async fn deletion_goes_through_the_controller() {
    let bench = Bench::start().await;
    bench.run();
    bench.make(&gadget("a", 2)).await;
    bench.settled("a", 2).await;
    bench.gadgets().delete("a", &DeleteParams::default()).await.unwrap();
    eventually("it is gone", async || {
        bench.gadgets().get_opt("a").await.unwrap().is_none().then_some(())
    })
    .await;
    assert!(bench.maps().await.is_empty());
    bench.quiet().await;
    assert_eq!(bench.kit.metrics().reconciles("gadget", "error"), 0);
}

#[tokio::test]
async fn an_annotated_object_is_paused() {
    let bench = Bench::start().await;
    bench.run();
    let mut object = gadget("a", 1);
    object.metadata.annotations = Some([("cluster.x-k8s.io/paused".to_owned(), String::new())].into());
    bench.make(&object).await;
    let why = "Gadget has the cluster.x-k8s.io/paused annotation";
    bench
        .until("a", "it says that it is paused", |g| {
            paused(g) == Some(("True", "Paused", why))
        })
        .await;
    bench.quiet().await;
    assert!(bench.maps().await.is_empty());
    assert_eq!(bench.probe.observed.load(Ordering::SeqCst), 0);
    bench
        .patch(
            "a",
            json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": null}}}),
        )
        .await;
    let settled = bench.settled("a", 1).await;
    assert_eq!(paused(&settled), Some(("False", "NotPaused", "")));
}

// CL-066
#[tokio::test]
async fn a_paused_cluster_pauses_its_objects_and_wakes_them_again() {
    let bench = Bench::start().await;
    bench.run();
    bench.make(&gadget("a", 1)).await;
    let before = bench.settled("a", 1).await;
    let cluster = |paused: bool| {
        let spec = json!({"paused": paused, "controlPlaneRef": {"apiGroup": "x.io", "kind": "X", "name": "x"}});
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c1", "namespace": "default"}, "spec": spec})
    };
    bench.apply(cluster(true)).await;
    let why = "Cluster spec.paused is set to true";
    let now = bench
        .until("a", "it says that it is paused", |g| {
            paused(g) == Some(("True", "Paused", why))
        })
        .await;
    assert_eq!(
        condition(&now, "Ready"),
        condition(&before, "Ready"),
        "the rest of the status stays"
    );
    assert_eq!(now.status.as_ref().unwrap().made, 1);
    bench.patch("a", json!({"spec": {"size": 2}})).await;
    bench.quiet().await;
    assert_eq!(bench.maps().await.len(), 1);
    bench.apply(cluster(false)).await;
    let settled = bench.settled("a", 2).await;
    assert_eq!(paused(&settled), Some(("False", "NotPaused", "")));
}

#[tokio::test]
async fn a_cluster_wakes_objects_that_lack_its_label() {
    let bench = Bench::start().await;
    bench.run();
    let cluster = |paused: bool| {
        let spec = json!({"paused": paused, "controlPlaneRef": {"apiGroup": "x.io", "kind": "X", "name": "x"}});
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "c2", "namespace": "default"}, "spec": spec})
    };
    bench.apply(cluster(true)).await;
    let mut object = gadget("a", 1);
    object.metadata.labels = None;
    object.metadata.annotations = Some([(OF_CLUSTER.to_owned(), "c2".to_owned())].into());
    bench.make(&object).await;
    let is_paused = |gadget: &Gadget| paused(gadget).is_some_and(|(status, ..)| status == "True");
    // The pause may come after the first reconcile.
    bench.until("a", "it says that it is paused", is_paused).await;
    bench.quiet().await;
    bench.apply(cluster(false)).await;
    let settled = bench.settled("a", 1).await;
    assert_eq!(paused(&settled), Some(("False", "NotPaused", "")));
}

#[tokio::test]
async fn a_panic_is_a_failure_of_that_reconcile_only() {
    let bench = Bench::start().await;
    bench.probe.panic_once.store(true, Ordering::SeqCst);
    bench.run();
    bench.make(&gadget("a", 1)).await;
    bench.settled("a", 1).await;
    assert_eq!(bench.kit.metrics().reconciles("gadget", "error"), 1);
    assert!(
        bench
            .kit
            .metrics()
            .encode()
            .contains("controller_runtime_reconcile_panics_total{controller=\"gadget\"} 1")
    );
}

#[tokio::test]
async fn a_cache_that_is_read_too_early_is_waited_for() {
    let bench = Bench::start().await;
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(bench.admin.clone(), "default");
    for name in ["s1", "s2"] {
        let secret = k8s_openapi::api::core::v1::Secret {
            metadata: meta(name),
            ..Default::default()
        };
        secrets
            .create(&kube::api::PostParams::default(), &secret)
            .await
            .unwrap();
    }
    bench.probe.read_undeclared.store(true, Ordering::SeqCst);
    bench.run();
    bench.make(&gadget("a", 0)).await;
    bench.settled("a", 0).await;
    assert_eq!(bench.probe.secrets_seen.load(Ordering::SeqCst), 2);
    assert!(bench.probe.observed.load(Ordering::SeqCst) > bench.probe.planned.load(Ordering::SeqCst));
}

#[tokio::test]
async fn events_are_shown_once_however_often_they_are_said_at_once() {
    let bench = Bench::start().await;
    let object = bench.make(&gadget("a", 0)).await;
    let cx = bench.kit.cx();
    for _ in 0..4 {
        cx.event(
            &object,
            windlass_controller_runtime::EventType::Warning,
            "Failing",
            "it does not work",
        );
    }
    cx.event(
        &object,
        windlass_controller_runtime::EventType::Normal,
        "Made",
        "one thing",
    );
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::namespaced(bench.admin.clone(), "default");
    let uid = object.metadata.uid.unwrap();
    let about = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
    let list = eventually("both are there", async || {
        // They are written in order, so that the others would be there before the last one.
        let list = events.list(&about).await.unwrap().items;
        (list.len() == 2).then_some(list)
    })
    .await;
    let failing = list.iter().find(|e| e.reason.as_deref() == Some("Failing")).unwrap();
    assert_eq!(failing.count, Some(1));
    assert_eq!(failing.type_.as_deref(), Some("Warning"));
    assert_eq!(failing.involved_object.kind.as_deref(), Some("Gadget"));
}

#[tokio::test]
async fn health_is_served_and_metrics_count() {
    let bench = Bench::start().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    bench.kit.serve(listener);
    bench.run();
    bench.make(&gadget("a", 1)).await;
    bench.settled("a", 1).await;
    let get = async |path: &str| {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    assert!(get("/healthz").await.starts_with("HTTP/1.1 200"));
    assert!(get("/readyz").await.starts_with("HTTP/1.1 200"));
    bench.kit.check(|| Err("the data folder cannot be written".to_owned()));
    let unready = get("/readyz").await;
    assert!(
        unready.starts_with("HTTP/1.1 503") && unready.ends_with("cannot be written"),
        "{unready}"
    );
    let metrics = bench.kit.metrics().encode();
    for name in [
        "controller_runtime_reconcile_total{controller=\"gadget\",result=\"success\"}",
        "controller_runtime_max_concurrent_reconciles{controller=\"gadget\"} 4",
        "workqueue_adds_total{name=\"gadget\",controller=\"gadget\"}",
        "rest_client_requests_total{code=\"201\",method=\"POST\",host=\"in-process\"}",
        "windlass_watches_total{host=\"in-process\"}",
    ] {
        assert!(metrics.contains(name), "{name} is not in {metrics}");
    }
}

#[tokio::test]
async fn shutdown_lets_running_reconciles_end() {
    let bench = Bench::start().await;
    bench.run();
    bench.make(&gadget("a", 1)).await;
    bench.settled("a", 1).await;
    tokio::time::timeout(Duration::from_mins(1), bench.kit.shutdown())
        .await
        .unwrap();
    bench.faults.clear_log();
    bench.patch("a", json!({"spec": {"size": 5}})).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(bench.faults.log(), Vec::<String>::new());
    let _: Value = json!(null);
}

#[tokio::test]
async fn what_a_failing_reconcile_has_to_tell_does_not_wait_for_its_back_off() {
    let bench = Bench::start().await;
    let refused = Fault::Refuse(500, "InternalError");
    bench.faults.add(usize::MAX, refused, |method, uri| {
        method == "POST" && uri.contains("/configmaps")
    });
    bench.run();
    bench.make(&gadget("a", 1)).await;
    // Each change is reconciled at once, and fails again: the next retry would be minutes away.
    for n in 0..16 {
        let before = bench.probe.planned.load(Ordering::SeqCst);
        bench.patch("a", json!({"spec": {"color": n.to_string()}})).await;
        eventually("it is reconciled", async || {
            (bench.probe.planned.load(Ordering::SeqCst) > before).then_some(())
        })
        .await;
    }
    eventually("the status speaks of the last change", async || {
        let now = bench.gadgets().get("a").await.unwrap();
        let told = condition(&now, "Ready")?.observed_generation;
        (told == now.metadata.generation).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_generation_counts_as_observed_once_a_reconcile_of_it_succeeded() {
    let bench = Bench::start().await;
    bench.run();
    bench.make(&gadget("a", 1)).await;
    let first = eventually("the first generation is observed", async || {
        let now = bench.gadgets().get("a").await.unwrap();
        now.status?.observed_generation
    })
    .await;
    let broken = Arc::new(AtomicBool::new(true));
    let is_broken = broken.clone();
    let refused = Fault::Refuse(500, "InternalError");
    bench.faults.add(usize::MAX, refused, move |method, uri| {
        method == "POST" && uri.contains("/configmaps") && is_broken.load(Ordering::SeqCst)
    });
    bench.patch("a", json!({"spec": {"size": 2}})).await;
    let failing = eventually("the status speaks of the failed attempt", async || {
        let now = bench.gadgets().get("a").await.unwrap();
        let told = condition(&now, "Ready")?.observed_generation;
        (told == now.metadata.generation).then_some(now)
    })
    .await;
    assert!(failing.metadata.generation > Some(first));
    assert_eq!(failing.status.unwrap().observed_generation, Some(first));
    broken.store(false, Ordering::SeqCst);
    bench.patch("a", json!({"metadata": {"annotations": {"a": "b"}}})).await;
    eventually("the success is observed", async || {
        let now = bench.gadgets().get("a").await.unwrap();
        let status = now.status?;
        (status.made == 2 && status.observed_generation == now.metadata.generation).then_some(())
    })
    .await;
}

#[tokio::test]
async fn events_of_its_own_writes_do_not_shorten_the_backoff_of_a_failing_reconcile() {
    let bench = Bench::start().await;
    let refused = Fault::Refuse(500, "InternalError");
    bench.faults.add(usize::MAX, refused, |method, uri| {
        method == "POST" && uri.contains("/configmaps")
    });
    bench.probe.restless.store(true, Ordering::SeqCst);
    bench.run();
    bench.make(&gadget("a", 1)).await;
    bench.until("a", "a status was written", |g| g.status.is_some()).await;
    // Each attempt writes another status. As its event would start the next attempt, this would never end.
    let quiet = tokio::time::timeout(Duration::from_mins(1), bench.quiet()).await;
    assert!(quiet.is_ok(), "{} attempts", bench.probe.planned.load(Ordering::SeqCst));
    let before = bench.probe.planned.load(Ordering::SeqCst);
    bench.patch("a", json!({"spec": {"color": "red"}})).await;
    eventually("a change of the user is reconciled", async || {
        (bench.probe.planned.load(Ordering::SeqCst) > before).then_some(())
    })
    .await;
}

/// The number of requests that change the Gadget or its status.
fn patches(bench: &Bench) -> u64 {
    let writes = bench.faults.writes();
    let patches = writes.iter().filter(|w| w.starts_with("PATCH "));
    patches.count().try_into().unwrap()
}

#[tokio::test]
async fn a_write_to_an_object_that_is_refused_while_reads_work_is_tried_at_growing_intervals() {
    const FAILURES: u32 = 9;
    let logged = Logged::from(tracing::Level::INFO);
    let bench = Bench::start().await;
    bench.run();
    bench.make(&gadget("a", 1)).await;
    bench.settled("a", 1).await;
    bench.quiet().await;
    // As while a webhook does not answer, or the disk of the server is full.
    let refused = Arc::new(AtomicBool::new(true));
    let is_refused = refused.clone();
    let refusal = Fault::Refuse(500, "InternalError");
    bench.faults.add(usize::MAX, refusal, move |method, _| {
        method == "PATCH" && is_refused.load(Ordering::SeqCst)
    });
    bench.faults.clear_log();
    let metrics = bench.kit.metrics();
    let results = || ["success", "error"].map(|result| metrics.reconciles("gadget", result));
    let [good, bad] = results();
    let began = Instant::now();
    bench.patch("a", json!({"spec": {"color": "red"}})).await;
    eventually("many attempts have failed", async || {
        (results()[1] >= bad + u64::from(FAILURES)).then_some(())
    })
    .await;
    // 5 ms, doubled with each failure.
    let delays = Duration::from_millis(5) * (2_u32.pow(FAILURES - 1) - 1);
    assert!(began.elapsed() >= delays, "{:?}", began.elapsed());
    let sent = patches(&bench);
    let [after, failed] = results();
    assert_eq!(after, good, "no attempt succeeded");
    assert!(sent <= failed - bad + 1, "{sent} patches in {} attempts", failed - bad);
    let lines = logged.with("reconcile failed");
    assert_eq!(lines.len(), 1, "{lines:?}");
    refused.store(false, Ordering::SeqCst);
    bench.patch("a", json!({"spec": {"color": "green"}})).await;
    eventually("its end is logged", async || {
        (!logged.with("the reconcile succeeds again").is_empty()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_write_without_an_answer_is_sent_once_in_an_attempt() {
    let bench = Bench::start().await;
    bench.run();
    bench.make(&gadget("a", 1)).await;
    bench.settled("a", 1).await;
    bench.quiet().await;
    bench.faults.add(usize::MAX, Fault::Hang, |method, _| method == "PATCH");
    bench.faults.clear_log();
    let metrics = bench.kit.metrics();
    let bad = metrics.reconciles("gadget", "error");
    bench.patch("a", json!({"spec": {"color": "red"}})).await;
    eventually("the write is sent", async || (patches(&bench) > 0).then_some(())).await;
    // From now on, time passes when nothing else happens.
    tokio::time::pause();
    while metrics.reconciles("gadget", "error") < bad + 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let sent = patches(&bench);
    let failed = metrics.reconciles("gadget", "error") - bad;
    assert!(sent <= failed + 1, "{sent} patches in {failed} attempts");
}
