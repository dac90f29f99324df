//! Caches follow the server, also through dropped watches, expired versions and servers that cannot stream lists.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use windlass_controller_runtime::{Cache, Codec, ObjectKey, Stored, gvk_of};

use crate::harness::{Bench, Fault, Logged, eventually, meta};

fn map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: meta(name),
        ..ConfigMap::default()
    }
}

fn maps(bench: &Bench) -> Api<ConfigMap> {
    Api::namespaced(bench.admin.clone(), "default")
}

async fn create(bench: &Bench, name: &str) {
    maps(bench).create(&PostParams::default(), &map(name)).await.unwrap();
}

async fn seen(cache: &Cache<ConfigMap>, name: &str) {
    let key = ObjectKey::new("default", name);
    eventually(&format!("{name} is cached"), async || cache.get(&key)).await;
}

async fn gone(cache: &Cache<ConfigMap>, name: &str) {
    let key = ObjectKey::new("default", name);
    eventually(&format!("{name} is gone"), async || {
        cache.get(&key).is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_cache_has_what_was_there_and_what_comes() {
    let bench = Bench::start().await;
    create(&bench, "before").await;
    let cache = bench.kit.cx().cache::<ConfigMap>();
    cache.synced().await;
    assert!(cache.get(&ObjectKey::new("default", "before")).is_some());
    create(&bench, "after").await;
    seen(&cache, "after").await;
    maps(&bench).delete("before", &DeleteParams::default()).await.unwrap();
    gone(&cache, "before").await;
    let object = cache.get(&ObjectKey::new("default", "after")).unwrap();
    assert_eq!(object.metadata.managed_fields, None, "managedFields are not cached");
}

#[tokio::test]
async fn releases_of_helm_take_no_memory() {
    let bench = Bench::start().await;
    let secrets: Api<Secret> = Api::namespaced(bench.admin.clone(), "default");
    let create = async |name: &str, type_: &str| {
        let secret = Secret {
            metadata: meta(name),
            type_: Some(type_.to_owned()),
            ..Secret::default()
        };
        secrets.create(&PostParams::default(), &secret).await.unwrap();
    };
    create("sh.helm.release.v1.before.v1", "helm.sh/release.v1").await;
    let cache = bench.kit.cx().cache::<Secret>();
    cache.synced().await;
    create("sh.helm.release.v1.after.v1", "helm.sh/release.v1").await;
    create("certificates", "cluster.x-k8s.io/secret").await;
    eventually("a Secret of a cluster is cached", async || {
        cache.get(&ObjectKey::new("default", "certificates"))
    })
    .await;
    assert_eq!(cache.all().len(), 1);
}

#[tokio::test]
async fn one_kind_is_watched_once() {
    let bench = Bench::start().await;
    for _ in 0..5 {
        bench.kit.cx().cache::<ConfigMap>().synced().await;
    }
    let log = bench.faults.log();
    assert_eq!(log.iter().filter(|l| l.contains("/configmaps")).count(), 1, "{log:?}");
}

#[tokio::test]
async fn a_server_that_cannot_stream_lists_is_listed() {
    let bench = Bench::start().await;
    bench.faults.add(1, Fault::Refuse(422, "Invalid"), |_, uri| {
        uri.contains("sendInitialEvents")
    });
    create(&bench, "before").await;
    let cache = bench.kit.cx().cache::<ConfigMap>();
    cache.synced().await;
    seen(&cache, "before").await;
    create(&bench, "after").await;
    seen(&cache, "after").await;
}

#[tokio::test]
async fn a_dropped_watch_is_taken_up_where_it_ended() {
    let bench = Bench::start().await;
    let cache = bench.kit.cx().cache::<ConfigMap>();
    cache.synced().await;
    create(&bench, "a").await;
    seen(&cache, "a").await;
    bench.faults.clear_log();
    bench.faults.cut_watches();
    create(&bench, "b").await;
    seen(&cache, "b").await;
    let log = bench.faults.log();
    assert!(
        log.iter()
            .any(|l| l.contains("resourceVersion=") && !l.contains("sendInitialEvents=true")),
        "{log:?}"
    );
}

#[tokio::test]
async fn an_expired_version_leads_to_a_new_list_and_missed_deletions_are_reported() {
    let bench = Bench::start().await;
    let cache = bench.kit.cx().cache::<ConfigMap>();
    create(&bench, "a").await;
    create(&bench, "b").await;
    cache.synced().await;
    seen(&cache, "b").await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let t = told.clone();
    cache.subscribe(move |change| {
        let name = change
            .object()
            .and_then(|o| o.metadata.name.clone())
            .unwrap_or_default();
        t.lock().push((name, change.old.is_some(), change.new.is_some()));
    });
    told.lock().clear();
    // The watch ends, and the next ones are refused, while "a" goes and "c" comes.
    bench.faults.add(1, Fault::Refuse(503, "ServiceUnavailable"), |_, uri| {
        uri.contains("/configmaps")
    });
    bench
        .faults
        .add(1, Fault::Refuse(410, "Expired"), |_, uri| uri.contains("/configmaps"));
    bench.faults.cut_watches();
    maps(&bench).delete("a", &DeleteParams::default()).await.unwrap();
    create(&bench, "c").await;
    gone(&cache, "a").await;
    seen(&cache, "c").await;
    let told = told.lock().clone();
    assert!(told.contains(&("a".to_owned(), true, false)), "{told:?}");
    assert!(told.contains(&("c".to_owned(), false, true)), "{told:?}");
}

#[tokio::test]
async fn a_list_from_the_past_does_not_bring_the_past_back() {
    let bench = Bench::start().await;
    let cache = bench.kit.cx().cache::<ConfigMap>();
    cache.synced().await;
    create(&bench, "a").await;
    seen(&cache, "a").await;
    // After the expiry, a server that lags behind answers first: an empty list of long ago.
    let old = concat!(
        r#"{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"1","#,
        r#""annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
        "\n"
    );
    bench
        .faults
        .add(1, Fault::Refuse(410, "Expired"), |_, uri| uri.contains("/configmaps"));
    bench
        .faults
        .add(1, Fault::Say(old.into()), |_, uri| uri.contains("sendInitialEvents"));
    bench.faults.cut_watches();
    create(&bench, "b").await;
    seen(&cache, "b").await;
    assert!(cache.get(&ObjectKey::new("default", "a")).is_some());
}

/// All changes of an object.
#[derive(Clone, Debug, Deserialize)]
struct Came {
    metadata: ObjectMeta,
    #[serde(flatten)]
    rest: Value,
}

impl Stored for Came {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn encode(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&json!({ "metadata": self.metadata }))
    }
}

impl Codec for Came {
    fn decode(json: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(json)
    }
}

#[tokio::test]
async fn a_cache_of_metadata_never_gets_what_objects_hold() {
    let bench = Bench::start().await;
    let secrets: Api<Secret> = Api::namespaced(bench.admin.clone(), "default");
    let secret = |name: &str, owner: &str| {
        let mut metadata = meta(name);
        metadata.labels = Some([("owner".to_owned(), owner.to_owned())].into());
        Secret {
            metadata,
            string_data: Some([("hidden".to_owned(), "hidden".to_owned())].into()),
            ..Secret::default()
        }
    };
    let create = async |name: &str, owner: &str| {
        secrets
            .create(&PostParams::default(), &secret(name, owner))
            .await
            .unwrap();
    };
    create("before", "helm").await;
    let (client, gvk, tasks) = (bench.admin.clone(), gvk_of::<Secret>(), bench.kit.tasks().child());
    let cache = Cache::<Came>::stand_alone_metadata(client, "/api/v1/secrets", gvk, "owner=helm", &tasks);
    cache.synced().await;
    create("other", "team").await;
    create("after", "helm").await;
    let key = ObjectKey::new("default", "after");
    eventually("after is cached", async || cache.get(&key)).await;
    let all = cache.all();
    let names: Vec<_> = all
        .iter()
        .filter_map(|secret| secret.metadata.name.as_deref())
        .collect();
    assert_eq!(names, ["after", "before"]);
    assert!(all.iter().all(|secret| secret.metadata.labels.is_some()));
    let holds_nothing = |came: &Value| came["kind"] == "PartialObjectMetadata" && came.get("data").is_none();
    assert!(all.iter().all(|secret| holds_nothing(&secret.rest)));
}

/// A kind whose objects cannot be decoded when they have the label `odd`.
#[derive(Clone, Debug)]
struct Picky(Came);

impl Stored for Picky {
    fn metadata(&self) -> &ObjectMeta {
        &self.0.metadata
    }

    fn encode(&self) -> serde_json::Result<Vec<u8>> {
        self.0.encode()
    }
}

impl Codec for Picky {
    fn decode(json: &[u8]) -> serde_json::Result<Self> {
        let came: Came = serde_json::from_slice(json)?;
        let mut labels = came.metadata.labels.iter().flatten();
        if labels.any(|(label, _)| label == "odd") {
            return Err(serde::de::Error::custom("it is odd"));
        }
        Ok(Self(came))
    }
}

#[tokio::test]
async fn an_object_that_can_no_longer_be_decoded_stays_until_it_is_deleted() {
    let bench = Bench::start().await;
    let (client, gvk, tasks) = (bench.admin.clone(), gvk_of::<ConfigMap>(), bench.kit.tasks().child());
    let cache = Cache::<Picky>::stand_alone(client, "/api/v1/configmaps", gvk, &tasks);
    cache.synced().await;
    create(&bench, "a").await;
    let key = ObjectKey::new("default", "a");
    eventually("a is cached", async || cache.get(&key)).await;
    let odd = Patch::Merge(json!({"metadata": {"labels": {"odd": ""}}}));
    let changed = maps(&bench).patch("a", &PatchParams::default(), &odd).await.unwrap();
    let version: u64 = changed.metadata.resource_version.unwrap().parse().unwrap();
    eventually("the watch goes on after the object", async || {
        (cache.version() >= version).then_some(())
    })
    .await;
    assert!(cache.get(&key).is_some(), "what cannot be read is not gone");
    maps(&bench).delete("a", &DeleteParams::default()).await.unwrap();
    eventually("a is not cached", async || cache.get(&key).is_none().then_some(())).await;
}

#[tokio::test]
async fn a_new_list_keeps_objects_that_can_no_longer_be_decoded() {
    for streams in [true, false] {
        let bench = Bench::start().await;
        let (cx, gvk, tasks) = (bench.kit.cx(), gvk_of::<ConfigMap>(), bench.kit.tasks().child());
        let cache = Cache::<Picky>::stand_alone(cx.client().clone(), "/api/v1/configmaps", gvk, &tasks);
        cache.synced().await;
        let key = |name: &str| ObjectKey::new("default", name);
        for name in ["odd", "gone"] {
            create(&bench, name).await;
            eventually("it is cached", async || cache.get(&key(name))).await;
        }
        if !streams {
            let refused = Fault::Refuse(422, "Invalid");
            bench
                .faults
                .add(usize::MAX, refused, |_, uri| uri.contains("sendInitialEvents=true"));
        }
        bench
            .faults
            .add(1, Fault::Refuse(410, "Expired"), |_, uri| uri.contains("/configmaps"));
        bench.faults.cut_watches();
        let odd = Patch::Merge(json!({"metadata": {"labels": {"odd": ""}}}));
        maps(&bench).patch("odd", &PatchParams::default(), &odd).await.unwrap();
        maps(&bench).delete("gone", &DeleteParams::default()).await.unwrap();
        create(&bench, "new").await;
        eventually("the list is in", async || cache.get(&key("new"))).await;
        assert!(cache.get(&key("odd")).is_some(), "what cannot be read is not gone");
        eventually("\"gone\" is gone", async || {
            cache.get(&key("gone")).is_none().then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn failed_connections_do_not_make_a_list_from_the_past_acceptable() {
    let bench = Bench::start().await;
    let cache = bench.kit.cx().cache::<ConfigMap>();
    cache.synced().await;
    create(&bench, "a").await;
    seen(&cache, "a").await;
    let deleted = Arc::new(Mutex::new(0));
    let counted = deleted.clone();
    cache.subscribe(move |change| *counted.lock() += usize::from(change.new.is_none()));
    // The server is away for a while. When it is back, a replica that lags behind answers first.
    let old = concat!(
        r#"{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"1","#,
        r#""annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
        "\n"
    );
    let about = |_: &str, uri: &str| uri.contains("/configmaps") && uri.contains("watch=true");
    bench.faults.add(1, Fault::Refuse(410, "Expired"), about);
    bench.faults.add(5, Fault::Refuse(500, "InternalError"), about);
    bench.faults.add(1, Fault::Say(old.into()), about);
    bench.faults.cut_watches();
    create(&bench, "b").await;
    seen(&cache, "b").await;
    assert_eq!(*deleted.lock(), 0);
}

#[tokio::test]
async fn a_watch_that_ends_at_once_is_repeated_with_backoff() {
    // A server that ends each watch, and one that forgets each version as soon as it was listed.
    let (ended, forgotten) = (Fault::Say(Vec::new()), Fault::Refuse(410, "Expired"));
    for fault in [ended, forgotten] {
        let bench = Bench::start().await;
        let cache = bench.kit.cx().cache::<ConfigMap>();
        cache.synced().await;
        bench.faults.clear_log();
        bench.faults.add(usize::MAX, fault.clone(), |_, uri| {
            uri.contains("/configmaps") && uri.contains("watch=true") && !uri.contains("sendInitialEvents=true")
        });
        // A first list that ends with its watch, as it does for servers that cannot stream lists.
        bench.faults.add(usize::MAX, Fault::Refuse(422, "Invalid"), |_, uri| {
            uri.contains("sendInitialEvents=true")
        });
        bench.faults.cut_watches();
        let began = std::time::Instant::now();
        let tries = async || {
            let log = bench.faults.log();
            let watches = log
                .iter()
                .filter(|l| l.contains("/configmaps") && l.contains("watch=true"));
            (watches.count() >= 5).then_some(())
        };
        eventually("there were five watches", tries).await;
        // 50, 100 and 200 milliseconds at least lie between the first four.
        assert!(began.elapsed().as_millis() >= 350, "{fault:?}: {:?}", began.elapsed());
    }
}

#[tokio::test]
async fn a_server_that_went_back_in_time_is_listed_again() {
    let bench = Bench::start().await;
    let cache = bench.kit.cx().cache::<ConfigMap>();
    cache.synced().await;
    for name in ["a", "b"] {
        create(&bench, name).await;
        seen(&cache, name).await;
    }
    // The server runs on a backup from before "b".
    let event = |kind: &str, meta: Value| {
        let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta});
        format!("{}\n", json!({"type": kind, "object": object}))
    };
    let object = event(
        "ADDED",
        json!({"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "2"}),
    );
    let end = json!({"resourceVersion": "3", "annotations": {"k8s.io/initial-events-end": "true"}});
    let list = object + &event("BOOKMARK", end);
    let goes_on = event("BOOKMARK", json!({"resourceVersion": "3"}));
    bench.faults.add(usize::MAX, Fault::Say(list.into()), |_, uri| {
        uri.contains("/configmaps") && uri.contains("sendInitialEvents=true")
    });
    bench.faults.add(usize::MAX, Fault::Say(goes_on.into()), |_, uri| {
        uri.contains("/configmaps") && uri.contains("watch=true")
    });
    bench.faults.cut_watches();
    gone(&cache, "b").await;
    let restored = cache.get(&ObjectKey::new("default", "a")).unwrap();
    assert_eq!(restored.metadata.resource_version.as_deref(), Some("2"));
    assert_eq!(cache.version(), 3, "own writes are waited for from here");
}

#[tokio::test]
async fn the_beginning_and_the_end_of_a_lasting_outage_of_a_watch_are_logged() {
    let logged = Logged::from(tracing::Level::INFO);
    let bench = Bench::start().await;
    let cache = bench.kit.cx().cache::<ConfigMap>();
    cache.synced().await;
    bench.faults.clear_log();
    bench.faults.add(8, Fault::Refuse(500, "InternalError"), |_, uri| {
        uri.contains("/configmaps") && uri.contains("watch=true")
    });
    bench.faults.cut_watches();
    create(&bench, "a").await;
    seen(&cache, "a").await;
    eventually("the end is logged", async || {
        (logged.with("the watch works again").len() == 1).then_some(())
    })
    .await;
    let lines = logged.with("the watch fails");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("ConfigMap") && lines[0].contains("told to refuse"),
        "{lines:?}"
    );
}

#[tokio::test]
async fn a_watch_that_panicked_makes_the_process_unready_and_is_named() {
    let bench = Bench::start().await;
    let cache = bench.kit.cx().cache::<ConfigMap>();
    cache.synced().await;
    let of_test = |object: &ConfigMap| object.metadata.name.as_deref() == Some("a");
    cache.subscribe(move |change| assert!(!change.object().is_some_and(|object| of_test(object)), "asked to panic"));
    bench.kit.ready().unwrap();
    create(&bench, "a").await;
    let why = eventually("it is not ready", async || bench.kit.ready().err()).await;
    assert_eq!(why, "task \"watch\" panicked: asked to panic");
}
