//! A server that is killed under load: acknowledged writes survive, others are complete or absent, revisions never go back, and
//! watches continue or must start over.
//!
//! `cargo xtask crash --rounds 200` runs it for longer.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;
use tokio::sync::watch;

use crate::support::{Up, objects};

const WRITERS: u64 = 6;
const NAMES: u64 = 4;

/// Objects by name: the number, which is in the data twice, and the revision.
type State = BTreeMap<String, (String, u64)>;

/// The state of a writer.
#[derive(Debug, Default)]
struct Known {
    /// Acknowledged objects.
    objects: State,
    /// The write without an answer: a name, and its number, or none for a removal.
    pending: Option<(String, Option<String>)>,
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn revision(object: &ConfigMap) -> u64 {
    let text = object.metadata.resource_version.as_deref().unwrap_or_default();
    text.parse().unwrap()
}

fn state(object: &ConfigMap) -> (String, (String, u64)) {
    let data = object.data.as_ref().unwrap();
    assert_eq!(data["first"], data["second"], "half of a write");
    assert_eq!(data["filler"].len(), 2_000);
    let name = object.metadata.name.clone().unwrap();
    (name, (data["first"].clone(), revision(object)))
}

/// Whether a writer created it: the server has maps of its own.
fn is_ours(object: &ConfigMap) -> bool {
    object.data.as_ref().is_some_and(|data| data.contains_key("first"))
}

fn body(name: &str, number: &str) -> ConfigMap {
    let data = json!({"first": number, "second": number, "filler": number.repeat(2_000)[..2_000]});
    serde_json::from_value(json!({"metadata": {"name": name}, "data": data})).unwrap()
}

/// Writes until there is no answer.
async fn write(api: Api<ConfigMap>, writer: u64, mut known: Known, answered: Arc<watch::Sender<u64>>) -> Known {
    loop {
        let chance = random();
        let name = format!("w{writer}-{}", chance % NAMES);
        let number = (chance >> 32).to_string();
        let exists = known.objects.contains_key(&name);
        let removes = exists && chance.is_multiple_of(5);
        known.pending = Some((name.clone(), (!removes).then(|| number.clone())));
        let answer = if removes {
            api.delete(&name, &DeleteParams::default()).await.map(|_| None)
        } else if exists {
            let patch = Patch::Merge(body(&name, &number));
            api.patch(&name, &PatchParams::default(), &patch).await.map(Some)
        } else {
            api.create(&PostParams::default(), &body(&name, &number))
                .await
                .map(Some)
        };
        match answer {
            Ok(Some(object)) => {
                let (name, is) = state(&object);
                known.objects.insert(name, is);
            }
            Ok(None) => {
                known.objects.remove(&name);
            }
            Err(kube::Error::Api(status)) => panic!("{name}: {status:?}"),
            Err(_) => return known,
        }
        known.pending = None;
        answered.send_modify(|number| *number += 1);
    }
}

/// Follows a watch to its end. Returns the last state that it showed, with its revision.
async fn follow(api: Api<ConfigMap>, mut seen: State, mut at: u64) -> (State, u64) {
    while let Ok(stream) = api.watch(&WatchParams::default(), &at.to_string()).await {
        let mut stream = stream.boxed();
        while let Ok(Some(event)) = stream.try_next().await {
            if !take(&mut seen, &mut at, &event) {
                return (seen, at);
            }
        }
    }
    (seen, at)
}

/// Applies an event; false if it reports that the history is gone.
fn take(seen: &mut State, at: &mut u64, event: &WatchEvent<ConfigMap>) -> bool {
    let object = match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
            let (name, is) = state(object);
            seen.insert(name, is);
            object
        }
        WatchEvent::Deleted(object) => {
            seen.remove(object.metadata.name.as_deref().unwrap());
            object
        }
        WatchEvent::Bookmark(_) => return true,
        WatchEvent::Error(status) => {
            assert_eq!(status.code, 410, "{status:?}");
            return false;
        }
    };
    assert!(revision(object) > *at, "a revision that was given before");
    *at = revision(object);
    true
}

/// Compares the stored state with acknowledged writes; an unacknowledged write may be stored or not.
fn compare(now: &State, known: &mut Known, writer: u64) {
    let mine = |name: &str| name.starts_with(&format!("w{writer}-"));
    let mut want = known.objects.clone();
    if let Some((name, number)) = known.pending.take() {
        let is = now.get(&name).map(|(number, _)| number.clone());
        if is == number {
            want.remove(&name);
            want.extend(now.get(&name).map(|is| (name, is.clone())));
        }
    }
    let have: State = now
        .iter()
        .filter(|(name, _)| mine(name))
        .map(|(n, s)| (n.clone(), s.clone()))
        .collect();
    assert_eq!(have, want, "writer {writer}");
    known.objects = have;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_under_load_keeps_what_it_answered() {
    let rounds: u64 = std::env::var("WINDLASS_CRASH_ROUNDS").map_or(8, |n| n.parse().expect("a number"));
    let folder = tempfile::tempdir().unwrap();
    let (data, kubeconfig) = (folder.path().join("data"), folder.path().join("kubeconfig"));
    let args = [
        "apiserver",
        "--log-level=warn",
        "--port=0",
        "--data-dir",
        data.to_str().unwrap(),
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
    ];
    let mut known: Vec<Known> = (0..WRITERS).map(|_| Known::default()).collect();
    let (mut seen, mut at, mut highest, mut resumed) = (State::new(), 0, 0, 0);
    for round in 0..rounds {
        let server = Up::command(folder.path(), &args, "kubeconfig ");
        let api = objects(folder.path()).await.api::<ConfigMap>();
        let list = api.list(&ListParams::default()).await.unwrap();
        let now: State = list.items.iter().filter(|m| is_ours(m)).map(state).collect();
        let listed: u64 = list.metadata.resource_version.unwrap().parse().unwrap();
        assert!(listed >= highest, "round {round}: revision {listed} after {highest}");
        highest = listed;
        for (writer, known) in known.iter_mut().enumerate() {
            compare(&now, known, writer as u64);
        }
        if round > 0 && catch_up(&api, &mut seen, &mut at, listed).await {
            assert_eq!(seen, now, "round {round}");
            resumed += 1;
        }
        (seen, at) = (now, listed);

        let (answered, mut answers) = watch::channel(0);
        let answered = Arc::new(answered);
        let follower = tokio::spawn(follow(api.clone(), std::mem::take(&mut seen), at));
        let mut writers = tokio::task::JoinSet::new();
        for (writer, known) in (0..).zip(std::mem::take(&mut known)) {
            let work = write(api.clone(), writer, known, Arc::clone(&answered));
            writers.spawn(async move { (writer, work.await) });
        }
        drop(answered);
        let enough = random() % 150;
        answers.wait_for(|number| *number >= enough).await.expect("a write");
        server.kill();
        let mut back: Vec<(u64, Known)> = writers.join_all().await;
        back.sort_by_key(|(writer, _)| *writer);
        known = back.into_iter().map(|(_, known)| known).collect();
        (seen, at) = follower.await.unwrap();
        let answered = known
            .iter()
            .flat_map(|k| k.objects.values())
            .map(|(_, revision)| *revision);
        highest = answered.chain([highest, at]).max().unwrap_or(0);
    }
    assert!(resumed > 0, "no watch went on over a restart");
}

/// Continues a watch of an earlier server up to a revision; false if its history is gone.
async fn catch_up(api: &Api<ConfigMap>, seen: &mut State, at: &mut u64, until: u64) -> bool {
    // The last change may concern another resource, so a quiet watch has seen all.
    let quiet = WatchParams::default().timeout(1);
    let mut stream = api.watch(&quiet, &at.to_string()).await.unwrap().boxed();
    while *at < until
        && let Some(event) = stream.try_next().await.unwrap()
    {
        if !take(seen, at, &event) {
            return false;
        }
    }
    true
}
