//! Writes go on while certificates, configurations and replicas change.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use jiff::{SignedDuration, Timestamp};
use kube::api::{DeleteParams, Patch, PatchParams};
use parking_lot::Mutex;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use windlass_meta::FakeClock;
use windlass_webhook::{Configuration, SECRET_NAME};

use crate::certificates::bundle;
use crate::support::{LIMITS, Serving, World, limited, until};

/// Writers at a time.
const WRITERS: usize = 4;
/// The largest size.
const MOST: i64 = 1_000_000;
/// Writes of each writer after each change.
const WRITES: u64 = 20;

/// Forwards connections to replicas in turn, as a Service does.
struct Balancer {
    address: SocketAddr,
    replicas: Arc<Mutex<Vec<SocketAddr>>>,
    _tasks: JoinSet<()>,
}

impl Balancer {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let replicas = Arc::new(Mutex::new(Vec::<SocketAddr>::new()));
        let (next, all) = (AtomicUsize::new(0), Arc::clone(&replicas));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let to = {
                    let all = all.lock();
                    all[next.fetch_add(1, Ordering::Relaxed) % all.len()]
                };
                connections.spawn(async move {
                    let mut replica = TcpStream::connect(to).await.unwrap();
                    // The end of a connection is not the concern of the balancer.
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut replica).await;
                });
            }
        });
        Self {
            address,
            replicas,
            _tasks: tasks,
        }
    }

    fn serving(&self, clock: &FakeClock) -> Serving {
        Serving {
            balancer: Some(self.address),
            clock: Arc::new(clock.clone()),
            rules: vec![limited()],
            ..Serving::new()
        }
    }

    /// Replaces the replicas behind it.
    fn forward(&self, replicas: &[&Serving]) {
        let addresses = replicas.iter().map(|serving| serving.socket.local_addr().unwrap());
        *self.replicas.lock() = addresses.collect();
    }
}

/// Clients that write all the time.
struct Load {
    written: Arc<Vec<AtomicU64>>,
    refused: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    tasks: JoinSet<()>,
}

impl Load {
    /// Starts it. Each writer has an object of its own, which grows. While `is_strict`, it is completed, and an attempt to make it smaller,
    /// or larger than another object says, is refused.
    async fn start(world: &Arc<World>, is_strict: &Arc<AtomicBool>) -> Self {
        let mut load = Self {
            written: Arc::new((0..WRITERS).map(|_| AtomicU64::new(0)).collect()),
            refused: Arc::default(),
            stop: Arc::default(),
            tasks: JoinSet::new(),
        };
        for writer in 0..WRITERS {
            let name = format!("load-{writer}");
            world.create(&name, 1).await;
            let (world, is_strict) = (Arc::clone(world), Arc::clone(is_strict));
            let (written, refused, stop) = (
                Arc::clone(&load.written),
                Arc::clone(&load.refused),
                Arc::clone(&load.stop),
            );
            load.tasks.spawn(async move {
                let mut size = 1;
                while !stop.load(Ordering::SeqCst) {
                    size += 1;
                    match world.bleach(&name, size).await {
                        Err(status) => refused.lock().push(status.message),
                        // It may have been switched off meanwhile.
                        Ok(colour) if colour != "blue" && is_strict.load(Ordering::SeqCst) => {
                            refused.lock().push(format!("is not completed: {colour}"));
                        }
                        Ok(_) => {}
                    }
                    for (wrong, expect) in [(0, "never smaller"), (MOST + 1, "too large")] {
                        if !is_strict.load(Ordering::SeqCst) {
                            continue;
                        }
                        let done = world.resize(&name, wrong).await;
                        let said = done.map_or_else(|status| status.message, |()| "nothing".to_owned());
                        if !said.contains(expect) && is_strict.load(Ordering::SeqCst) {
                            refused.lock().push(format!("a size of {wrong}: {said}"));
                        }
                    }
                    written[writer].fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        load
    }

    /// Waits for more writes, and asserts that all so far were right.
    async fn goes_on(&self, after: &str) {
        let before: Vec<u64> = self.written.iter().map(|count| count.load(Ordering::SeqCst)).collect();
        until("each writer has written more", async || {
            let now = self.written.iter().map(|count| count.load(Ordering::SeqCst));
            now.zip(&before).all(|(now, before)| now >= before + WRITES)
        })
        .await;
        assert_eq!(*self.refused.lock(), [""; 0], "after {after}");
    }

    async fn stop(mut self) {
        self.stop.store(true, Ordering::SeqCst);
        while let Some(done) = self.tasks.join_next().await {
            done.unwrap();
        }
        assert_eq!(*self.refused.lock(), [""; 0]);
    }
}

#[tokio::test]
async fn no_valid_write_is_refused_while_certificates_configurations_and_replicas_change() {
    let world = Arc::new(World::start().await);
    world.create(LIMITS, MOST).await;
    // The API server has the time of the machine.
    let age = SignedDuration::from_hours(24 * 250);
    let (clock, balancer) = (FakeClock::new(Timestamp::now() - age), Balancer::start().await);
    let (one, other, third) = (
        balancer.serving(&clock),
        balancer.serving(&clock),
        balancer.serving(&clock),
    );
    balancer.forward(&[&one, &other]);
    let first = one.start(world.client.clone()).await.unwrap();
    let second = other.start(world.client.clone()).await.unwrap();
    world.create("a", 1).await;
    until("the server calls the webhooks", async || {
        world.resize("a", 0).await.is_err()
    })
    .await;
    let is_strict = Arc::new(AtomicBool::new(true));
    let load = Load::start(&world, &is_strict).await;
    load.goes_on("the start").await;

    let certificate = world.kept("tls.crt").await;
    clock.advance(age);
    until("the certificate is renewed", async || {
        world.kept("tls.crt").await != certificate
    })
    .await;
    load.goes_on("a renewal").await;

    let (authority, damage) = (
        world.kept("ca.crt").await,
        Patch::Merge(json!({"stringData": {"ca.key": "rubbish"}})),
    );
    let secrets = world.secrets();
    secrets
        .patch(SECRET_NAME, &PatchParams::default(), &damage)
        .await
        .unwrap();
    until("the authority is replaced", async || {
        world.kept("ca.crt").await.ends_with(&authority) && world.kept("ca.crt").await != authority
    })
    .await;
    until("the configuration has the new authority", async || {
        bundle(&world).await == Some(world.kept("ca.crt").await)
    })
    .await;
    load.goes_on("a new authority").await;
    // Connections from before would go on without a look at the certificate. A replica gets no new ones when it ends.
    let fourth = balancer.serving(&clock);
    let last = third.start(world.client.clone()).await.unwrap();
    balancer.forward(&[&third]);
    load.goes_on("another replica").await;
    first.shutdown().await;
    second.shutdown().await;
    load.goes_on("the end of replicas").await;
    let more = fourth.start(world.client.clone()).await.unwrap();
    balancer.forward(&[&third, &fourth]);

    let drift = Patch::Json::<()>(
        serde_json::from_value(json!([{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 7}])).unwrap(),
    );
    for of in Configuration::ALL {
        let all = world.configurations_of(of);
        all.patch(of.name(), &PatchParams::default(), &drift).await.unwrap();
        until("the configuration is repaired", async || {
            world.configuration_of(of).await.unwrap()["webhooks"][0]["timeoutSeconds"] != 7
        })
        .await;
        load.goes_on("a drift").await;
    }

    is_strict.store(false, Ordering::SeqCst);
    for of in Configuration::ALL {
        let all = world.configurations_of(of);
        all.delete(of.name(), &DeleteParams::default()).await.unwrap();
        until("the configuration is back", async || {
            world.configuration_of(of).await.is_some()
        })
        .await;
        load.goes_on("a deletion of a configuration").await;
    }
    load.stop().await;
    until("the server calls the webhooks again", async || {
        let size = world.objects("v1").get("a").await.unwrap().data["spec"]["size"].clone();
        let completed = world.bleach("a", size.as_i64().unwrap()).await;
        completed.is_ok_and(|colour| colour == "blue") && world.resize("a", 0).await.is_err()
    })
    .await;
    last.shutdown().await;
    more.shutdown().await;
}
