//! The answers of a workload cluster to the requests of an informer, in turn, separated by zero bytes. The first byte of each is its status
//! and the size of the pieces in which it comes.
//!
//! A server in this process answers, as nothing else of a connection matters here. Time runs ahead while the informer waits, so no input
//! waits for a retry.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use kube::client::Body;
use serde_json::Value;
use tokio::sync::Notify;
use windlass_api::k8s::Node;
use windlass_controller_runtime::transport::{Bounds, Held, Limits, Policy, in_process};
use windlass_controller_runtime::{Cache, Change, Codec, Dynamic, Metrics, ObjectKey, Tasks, gvk_from, key_of};

/// Most answers of an input.
const ANSWERS: usize = 12;
/// Statuses by the last three bits of the first byte; most answers are good ones.
const STATUSES: [u16; 8] = [200, 200, 200, 200, 400, 404, 410, 500];
/// The limit of one event. It is small, so that inputs exceed it.
const DECODED: usize = 8 << 10;
/// The limit of all objects of the cluster.
const CACHED: usize = 16 << 10;

/// The body of an answer.
type Pieces = StreamBody<futures::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

/// What an informer has made of the answers.
#[derive(Debug, PartialEq)]
struct Seen {
    objects: Vec<Value>,
    version: u64,
    is_synced: bool,
    refusal: Option<String>,
}

/// Runs the target on one input; a panic is a bug in what it calls.
pub fn run(data: &[u8]) {
    same::<Node>(data);
    same::<Dynamic>(data);
}

fn same<T: Codec>(data: &[u8]) {
    assert_eq!(
        seen::<T>(data, false),
        seen::<T>(data, true),
        "it does not matter where an answer is split"
    );
}

fn seen<T: Codec>(data: &[u8], in_pieces: bool) -> Seen {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(watched::<T>(data, in_pieces))
}

async fn watched<T: Codec>(data: &[u8], in_pieces: bool) -> Seen {
    let held = Held::default();
    let limits = Limits {
        decoded: DECODED,
        cached: CACHED,
        ..Limits::default()
    };
    let policy = Policy {
        limits,
        ..Policy::default()
    };
    let bounds = Bounds::new(policy, held.clone());
    let answers: VecDeque<Vec<u8>> = data
        .split(|byte| *byte == 0)
        .take(ANSWERS)
        .map(<[u8]>::to_vec)
        .collect();
    let (answers, done) = (Arc::new(Mutex::new(answers)), Arc::new(Notify::new()));
    let service = {
        let (bounds, done) = (bounds.clone(), done.clone());
        tower::service_fn(move |_: Request<Body>| {
            let next = answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let (bounds, done) = (bounds.clone(), done.clone());
            async move {
                let Some(next) = next else {
                    done.notify_one();
                    return std::future::pending().await;
                };
                Ok::<_, Infallible>(answer(&next, in_pieces, bounds))
            }
        })
    };
    let client = in_process(service, &Metrics::new());
    let tasks = Tasks::new();
    let cache: Cache<T> = Cache::stand_alone(client, "/api/v1/nodes", gvk_from("v1", "Node"), &tasks);
    let told: Arc<Mutex<BTreeMap<ObjectKey, Arc<T>>>> = Arc::default();
    let subscriber = told.clone();
    cache.subscribe(move |change| tell(&subscriber, change));
    tokio::select! {
        () = done.notified() => {}
        panicked = tasks.panic() => panic!("{panicked}"),
    }
    tasks.shutdown().await;
    let told = told.lock().unwrap_or_else(PoisonError::into_inner);
    check(&cache, &told);
    let seen = Seen {
        objects: cache.all().iter().map(|object| object.to_json()).collect(),
        version: cache.version(),
        is_synced: cache.is_synced(),
        refusal: bounds.refusal().map(|refusal| refusal.why().to_owned()),
    };
    // Its fields are private, and its text shows them.
    let nothing = format!("{:?}", Held::default());
    assert_eq!(format!("{held:?}"), nothing, "what a cluster held is given back");
    seen
}

/// An answer, whole or in pieces.
fn answer(bytes: &[u8], in_pieces: bool, bounds: Bounds) -> Response<Pieces> {
    let (first, body) = bytes.split_first().map_or((0, bytes), |(first, body)| (*first, body));
    let size = if in_pieces {
        usize::from(first >> 3) + 1
    } else {
        body.len().max(1)
    };
    let pieces: Vec<_> = body
        .chunks(size)
        .map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::copy_from_slice(piece))))
        .collect();
    let mut response = Response::new(StreamBody::new(futures::stream::iter(pieces)));
    *response.status_mut() = StatusCode::from_u16(STATUSES[usize::from(first & 7)]).expect("a status");
    response.extensions_mut().insert(bounds);
    response
}

/// Keeps what a subscriber of the cache knows.
fn tell<T: Codec>(known: &Mutex<BTreeMap<ObjectKey, Arc<T>>>, change: &Change<T>) {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(new) = &change.new {
        known.insert(key_of(new.metadata()), new.clone());
    } else {
        let old = change.old.as_ref().expect("a change is of something");
        known.remove(&key_of(old.metadata()));
    }
}

fn check<T: Codec>(cache: &Cache<T>, told: &BTreeMap<ObjectKey, Arc<T>>) {
    let all = cache.all();
    assert_eq!(all.len(), cache.len(), "every object is counted once");
    assert_eq!(all.len(), told.len(), "subscribers know all objects");
    let mut bytes = 0;
    for object in &all {
        let key = key_of(object.metadata());
        let found = cache.get(&key).map(|object| object.to_json());
        assert_eq!(found, Some(object.to_json()), "an object is found by its key");
        assert_eq!(
            told.get(&key).map(|object| object.to_json()),
            found,
            "subscribers know the last version"
        );
        let text = object.encode().expect("what was read can be written");
        bytes += text.len();
        let again = T::decode(&text).expect("what was written can be read");
        assert_eq!(again.to_json(), object.to_json(), "and is the same");
    }
    assert!(bytes <= CACHED, "{bytes} bytes are cached, {CACHED} are allowed");
}
