//! API servers of workload clusters that send without end, or have addresses that are denied.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http::{Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use windlass_cluster_cache::{Limits, Options, Policy, Reach};
use windlass_controller_runtime::Backoff;

use crate::world::{Workload, World, eventually, key};

const MIB: usize = 1 << 20;

/// What the server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sends {
    /// An event that never ends.
    AnEvent,
    /// The beginning of an event, and nothing more.
    Beginning,
    /// A page of a list that never ends.
    APage,
    /// Pages without end.
    Pages,
    /// Changes of one Node without end.
    Changes,
    /// New Nodes without end.
    Nodes,
    /// Nothing but redirects to this address.
    Redirects(SocketAddr),
}

struct Hostile {
    address: SocketAddr,
    sent: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
    /// Answers about Nodes that have begun.
    begun: Arc<AtomicUsize>,
    /// When Nodes were listed.
    lists: Arc<Mutex<Vec<Instant>>>,
}

impl Hostile {
    async fn start(sends: Sends) -> Self {
        Self::at("127.0.0.1:0", sends).await
    }

    async fn at(address: &str, sends: Sends) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let [sent, asked, begun] = [(); 3].map(|()| Arc::new(AtomicUsize::new(0)));
        let (counts, asks, begins) = (sent.clone(), asked.clone(), begun.clone());
        let lists: Arc<Mutex<Vec<Instant>>> = Arc::default();
        let listed = lists.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (sent, asked, begun) = (counts.clone(), asks.clone(), begins.clone());
                let listed = listed.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request: Request<Incoming>| {
                        asked.fetch_add(1, Ordering::SeqCst);
                        if request.uri().path() == "/api/v1/nodes" {
                            begun.fetch_add(1, Ordering::SeqCst);
                            if !is_watch(&request) {
                                listed.lock().push(Instant::now());
                            }
                        }
                        let answer = answer(sends, &request, sent.clone());
                        async move { Ok::<_, Infallible>(answer) }
                    });
                    // A client that goes away is the aim.
                    let builder = Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self {
            address,
            sent,
            asked,
            begun,
            lists,
        }
    }

    fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

fn answer(sends: Sends, request: &Request<Incoming>, sent: Arc<AtomicUsize>) -> Answer {
    let text = |code: u16, text: String| {
        let mut answer = Response::new(Full::new(Bytes::from(text)).boxed_unsync());
        *answer.status_mut() = http::StatusCode::from_u16(code).unwrap();
        answer
    };
    if let Sends::Redirects(to) = sends {
        let mut answer = text(307, String::new());
        let to = format!("http://{to}{}", request.uri()).parse().unwrap();
        answer.headers_mut().insert(header::LOCATION, to);
        return answer;
    }
    if request.uri().path() != "/api/v1/nodes" {
        return text(200, "{}".to_owned());
    }
    let lists = matches!(sends, Sends::APage | Sends::Pages);
    if lists && is_watch(request) {
        return text(400, "{}".to_owned());
    }
    if sends == Sends::Pages {
        let number = sent.fetch_add(MIB, Ordering::SeqCst);
        let node = node(&number.to_string(), MIB);
        let page = format!("{{\"metadata\":{{\"continue\":\"x\",\"resourceVersion\":\"1\"}},\"items\":[{node}]}}");
        return text(200, page);
    }
    let most = if sends == Sends::Beginning { 2 } else { usize::MAX };
    let silence = futures::stream::pending();
    let pieces = pieces(sends).take(most).chain(silence).map(move |piece| {
        sent.fetch_add(piece.len(), Ordering::SeqCst);
        Ok(Frame::data(piece))
    });
    Response::new(StreamBody::new(pieces).boxed_unsync())
}

fn is_watch(request: &Request<Incoming>) -> bool {
    request.uri().query().is_some_and(|query| query.contains("watch="))
}

fn node(name: &str, size: usize) -> String {
    let filler = "x".repeat(size);
    format!(
        "{{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{{\"name\":\"n{name}\",\"resourceVersion\":\"1\",\
         \"annotations\":{{\"filler\":\"{filler}\"}}}}}}"
    )
}

fn pieces(sends: Sends) -> impl Stream<Item = Bytes> {
    let mut number = 0_u64;
    futures::stream::repeat_with(move || {
        number += 1;
        let event = |name: &str| Bytes::from(format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", node(name, 60_000)));
        match (sends, number) {
            (Sends::AnEvent | Sends::Beginning, 1) => {
                Bytes::from_static(b"{\"type\":\"ADDED\",\"object\":{\"kind\":\"")
            }
            (Sends::APage, 1) => Bytes::from_static(b"{\"items\":[{\"kind\":\""),
            (Sends::AnEvent | Sends::Beginning | Sends::APage, _) => Bytes::from(vec![b'x'; 64 << 10]),
            (Sends::Changes, _) => event("one"),
            _ => event(&number.to_string()),
        }
    })
}

fn kubeconfig(cluster: &BTreeMap<&str, String>) -> String {
    let cluster = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    });
    cluster.to_string()
}

fn server(server: impl Into<String>) -> String {
    kubeconfig(&BTreeMap::from([("server", server.into())]))
}

async fn declare(world: &World, name: &str, kubeconfig: &str) {
    let secret = format!("{name}-kubeconfig");
    world.put_secret(&secret, &[("value", kubeconfig)]).await;
    world.make_cluster(name).await;
    world.provision(name).await;
}

fn options() -> Options {
    Options {
        interval: Duration::from_millis(40),
        timeout: Duration::from_secs(20),
        backoff: Backoff::new(Duration::from_millis(20), Duration::from_millis(100)),
        // Nothing but an end of the test.
        penalty: Backoff::new(Duration::from_hours(1), Duration::from_hours(1)),
        ..Options::default()
    }
}

async fn start(limits: Limits) -> World {
    let policy = Policy {
        limits,
        ..Policy::default()
    };
    World::start_under(options(), policy).await
}

async fn start_reaching(reach: Reach) -> World {
    let policy = Policy {
        reach,
        ..Policy::default()
    };
    World::start_under(options(), policy).await
}

/// Waits until a cluster is refused, and returns why.
async fn refused(world: &World, name: &str) -> String {
    eventually(&format!("{name} is refused"), async || {
        world.clusters.refusal(&key(name))
    })
    .await
}

/// A hostile server is refused for this reason after about as many bytes, and is left alone, while another cluster is served.
async fn is_refused(sends: Sends, limits: Limits, why: &str, bytes: usize) {
    let world = start(limits).await;
    let other = Workload::start(None).await;
    declare(&world, "other", &other.kubeconfig()).await;
    world.connected("other").await;
    let hostile = Hostile::start(sends).await;
    declare(&world, "hostile", &server(format!("http://{}", hostile.address))).await;
    let said = refused(&world, "hostile").await;
    assert_eq!(said, why, "{sends:?}");
    world.reason("hostile", why).await;
    world.told("windlass_remote_refusals_total{reason=\"excess\"} 1").await;
    let asked = hostile.asked();
    let now = Timestamp::now();
    other.add_node("n1", "dev:///n1").await;
    eventually("the other cluster is served", async || {
        let connection = world.clusters.get(&key("other")).ok()?;
        let probed = connection.last_probe_success()?;
        (probed > now && connection.node("n1").is_some()).then_some(())
    })
    .await;
    // Sockets hold some of it.
    let most = bytes + 24 * MIB;
    assert!(hostile.sent() < most, "{sends:?}: {} bytes", hostile.sent());
    assert_eq!(hostile.asked(), asked, "{sends:?}: it is asked again");
}

#[tokio::test]
async fn a_server_that_sends_an_event_without_end_is_refused() {
    let why = "the API server sent an event of more than 16 MiB";
    is_refused(Sends::AnEvent, Limits::default(), why, 16 * MIB).await;
}

#[tokio::test]
async fn a_server_that_sends_a_list_without_end_is_refused() {
    let limits = Limits {
        answer: 8 * MIB,
        ..Limits::default()
    };
    let why = "the API server sent an answer of more than 8 MiB";
    is_refused(Sends::APage, limits, why, 8 * MIB).await;
    let limits = Limits::with_cached(8 * MIB);
    let why = "the API server has objects that take more than 8 MiB, the --workload-memory-limit";
    is_refused(Sends::Pages, limits, why, 8 * MIB).await;
}

#[tokio::test]
async fn a_server_that_floods_a_watch_is_refused() {
    let limits = Limits {
        burst: 16 * MIB,
        per_second: MIB,
        ..Limits::default()
    };
    let why = "the API server sent 16 MiB more than 1 MiB a second";
    is_refused(Sends::Changes, limits, why, 20 * MIB).await;
    let limits = Limits::with_cached(8 * MIB);
    let why = "the API server has objects that take more than 8 MiB, the --workload-memory-limit";
    is_refused(Sends::Nodes, limits, why, 8 * MIB).await;
    // A first list that repeats one Node and does not end.
    is_refused(Sends::Changes, limits, why, 8 * MIB).await;
}

#[tokio::test]
async fn a_server_that_does_not_complete_an_event_is_refused() {
    let limits = Limits {
        event: Duration::from_secs(1),
        ..Limits::default()
    };
    let why = "the API server took more than 1 s to send an event";
    is_refused(Sends::Beginning, limits, why, MIB).await;
}

#[tokio::test]
async fn what_all_servers_hold_has_a_limit_and_small_answers_are_received_beyond_it() {
    let limits = Limits {
        held: MIB,
        ..Limits::default()
    };
    let world = start(limits).await;
    let hostile = Hostile::start(Sends::AnEvent).await;
    declare(&world, "hostile", &server(format!("http://{}", hostile.address))).await;
    world.connected("hostile").await;
    let other = Workload::start(None).await;
    other.add_node("n1", "dev:///n1").await;
    declare(&world, "other", &other.kubeconfig()).await;
    let connection = world.connected("other").await;
    eventually("the Nodes are listed", async || connection.node("n1")).await;
    // Each attempt ends at the limit, and the watch backs off.
    let begun = || hostile.begun.load(Ordering::SeqCst);
    eventually("it was tried again", async || (begun() > 3).then_some(())).await;
    // An event may have 16 MiB, and sockets hold some of what is not read.
    let (sent, begun) = (hostile.sent(), begun());
    assert!(sent < begun * 14 * MIB, "{sent} bytes in {begun} answers");
    assert_eq!(world.clusters.refusal(&key("hostile")), None);
}

#[tokio::test]
async fn a_server_that_was_refused_is_asked_again_later_each_time() {
    let limits = Limits {
        answer: MIB,
        ..Limits::default()
    };
    let penalty = Backoff::new(Duration::from_millis(50), Duration::from_hours(1));
    let options = Options { penalty, ..options() };
    let policy = Policy {
        limits,
        ..Policy::default()
    };
    let world = World::start_under(options, policy).await;
    let hostile = Hostile::start(Sends::APage).await;
    declare(&world, "hostile", &server(format!("http://{}", hostile.address))).await;
    let lists = eventually("it was asked five times", async || {
        let lists = hostile.lists.lock();
        (lists.len() >= 5).then(|| lists.clone())
    })
    .await;
    for (number, pair) in (1..).zip(lists.windows(2)) {
        let (found, least) = (pair[1] - pair[0], penalty.delay(number, 0.0));
        assert!(found >= least, "{found:?} instead of {least:?} after refusal {number}");
    }
}

#[tokio::test]
async fn another_kubeconfig_does_not_let_a_refused_server_be_asked_sooner() {
    let limits = Limits {
        answer: MIB,
        ..Limits::default()
    };
    let world = start(limits).await;
    let hostile = Hostile::start(Sends::APage).await;
    declare(&world, "hostile", &server(format!("http://{}", hostile.address))).await;
    refused(&world, "hostile").await;
    let next = Hostile::start(Sends::APage).await;
    let changed = server(format!("http://{}", next.address));
    world.put_secret("hostile-kubeconfig", &[("value", &changed)]).await;
    // The other cluster is declared later, so the change was seen when that one is connected.
    let other = Workload::start(None).await;
    declare(&world, "other", &other.kubeconfig()).await;
    world.connected("other").await;
    assert!(world.clusters.refusal(&key("hostile")).is_some());
    assert_eq!((next.asked(), hostile.lists.lock().len()), (0, 1));
}

#[tokio::test]
async fn denied_addresses_are_not_connected_to() {
    let reach = Reach::new(vec!["127.0.0.0/9".parse().unwrap(), "::1/128".parse().unwrap()], true);
    let world = start_reaching(reach).await;
    let hostile = Hostile::start(Sends::AnEvent).await;
    let port = hostile.address.port();
    let behind =
        |proxy: String, to: &str| kubeconfig(&BTreeMap::from([("server", to.to_owned()), ("proxy-url", proxy)]));
    let denied = "127.0.0.0/9: --workload-denied-networks denies it";
    for (name, kubeconfig, field, address) in [
        (
            "literal",
            server(format!("http://127.0.0.1:{port}")),
            "cluster.server",
            "127.0.0.1",
        ),
        (
            "mapped",
            server(format!("http://[::ffff:127.0.0.1]:{port}")),
            "cluster.server",
            "::ffff:127.0.0.1",
        ),
        (
            "decimal",
            server(format!("http://2130706433:{port}")),
            "cluster.server",
            "127.0.0.1",
        ),
        (
            "proxy",
            behind(format!("http://127.0.0.1:{port}"), "https://192.0.2.1"),
            "cluster.proxy-url",
            "127.0.0.1",
        ),
        (
            "behind",
            behind("http://192.0.2.1:3128".to_owned(), &format!("https://127.0.0.1:{port}")),
            "cluster.server",
            "127.0.0.1",
        ),
    ] {
        declare(&world, name, &kubeconfig).await;
        let said = refused(&world, name).await;
        let expect = format!("{field} of the kubeconfig leads to {address}, which is in {denied}");
        assert_eq!(said, expect, "{name}");
        world.reason(name, &expect).await;
    }
    declare(&world, "named", &server(format!("http://localhost:{port}"))).await;
    let said = refused(&world, "named").await;
    assert!(said.starts_with("cluster.server of the kubeconfig leads to "), "{said}");
    assert_eq!(hostile.asked(), 0);
    // Another kubeconfig is tried, and the refusal ends.
    let allowed = Hostile::at("127.128.0.1:0", Sends::Redirects(hostile.address)).await;
    let changed = server(format!("http://{}", allowed.address));
    world.put_secret("named-kubeconfig", &[("value", &changed)]).await;
    world.connected("named").await;
    assert_eq!(world.clusters.refusal(&key("named")), None);
    assert_eq!(hostile.asked(), 0);
}

/// The user who writes the kubeconfig chooses what is tried.
#[tokio::test]
async fn a_token_that_cannot_be_sent_loses_its_own_cluster_only() {
    let world = start(Limits::default()).await;
    let mut kubeconfig: serde_json::Value = serde_json::from_str(&server("https://127.0.0.1:1")).unwrap();
    kubeconfig["users"][0]["user"] = serde_json::json!({"token": "a\nb"});
    declare(&world, "hostile", &kubeconfig.to_string()).await;
    let why = "the token has a character that HTTP does not allow";
    world.reason("hostile", why).await;
    let other = Workload::start(None).await;
    declare(&world, "other", &other.kubeconfig()).await;
    world.connected("other").await;
    let named = server("https://user:password@127.0.0.1:1");
    declare(&world, "named", &named).await;
    world.reason("named", "a user in cluster.server is not allowed").await;
    assert!(!world.kit.cx().metrics().encode().contains("password"));
}

#[tokio::test]
async fn redirects_are_not_followed_and_servers_without_tls_are_on_this_host() {
    let reach = Reach::new(vec!["127.0.0.2/32".parse().unwrap()], false);
    let world = start_reaching(reach).await;
    let target = Hostile::at("127.0.0.2:0", Sends::AnEvent).await;
    let hostile = Hostile::start(Sends::Redirects(target.address)).await;
    declare(&world, "redirects", &server(format!("http://{}", hostile.address))).await;
    world.connected("redirects").await;
    eventually("it is asked", async || (hostile.asked() > 3).then_some(())).await;
    assert_eq!(target.asked(), 0);
    // Helm connects by itself, and may be led to use any server in it.
    let extra = r#""clusters":[{"name":"d","cluster":{"server":"https://127.0.0.2"}},"#;
    let both = server(format!("http://{}", hostile.address)).replace("\"clusters\":[", extra);
    declare(&world, "helm", &both).await;
    let why = world
        .connected("helm")
        .await
        .kubeconfig()
        .await
        .unwrap_err()
        .to_string();
    assert!(why.contains("127.0.0.2/32"), "{why}");
    declare(&world, "plain", &server("http://192.0.2.1:8080")).await;
    let said = refused(&world, "plain").await;
    assert_eq!(
        said,
        "cluster.server of the kubeconfig has no TLS and leads to 192.0.2.1, which is not this host: --workload-plain-http denies it"
    );
    world.told("windlass_remote_refusals_total{reason=\"excess\"} 0").await;
}
