//! The control plane through the driver, in a world that misbehaves at random: the real controller with its informers, caches, queue, writer
//! and own-writes guard, on an API server in the process. Connections are lost, machines break and fail to join, users delete Machines and
//! change their minds, caches fall behind, requests fail, months pass, and the manager ends between any two writes. The rules of
//! [`truth`] hold at each write. When the disturbances end, the control plane is as specified, and then nothing is written any more.
//!
//! Time is that of a runtime with a paused clock: what a seed does takes hours there and less than a second here. A seed decides
//! what disturbs the world and when. Delays of retries are random in the driver, so a seed repeats the disturbances but not every order.

mod clock;
mod cloud;
mod disturb;
mod process;
mod remote;
mod truth;

use std::time::Duration;

use kube::Client;
use kube::api::ListParams;
use rand::RngExt as _;
use serde_json::{Value, json};
use windlass_api::core::v1beta2::Machine;
use windlass_api_kubeadm::controlplane::v1beta2::KubeadmControlPlane;
use windlass_meta::Clock as _;
use windlass_testkit::seeds::simulate;
use windlass_testkit::{Kind, Simulated, records};

use crate::play::{Machinist, contents, definitions, make_cluster, objects};
use clock::SimClock;
use process::Process;
use truth::Shared;

/// Steps with disturbances.
const STEPS: usize = 80;
/// Steps until the control plane has to be as specified.
const PATIENCE: usize = 1000;

struct Simulation {
    truth: Shared,
    clock: SimClock,
    server: Simulated,
    client: Client,
    machinist: Machinist,
    process: Process,
    replicas: i64,
    surge: i32,
    version: &'static str,
    /// Changes of the specification, and processes so far.
    changes: u32,
    processes: u64,
    seed: u64,
}

impl Simulation {
    async fn start(seed: u64) -> Self {
        let clock = SimClock::new("2026-11-21T10:00:00Z".parse().unwrap());
        let truth = Shared::new(seed, clock.now());
        let server = Simulated::start(&definitions(), clock.clone()).await;
        let client = server.client();
        let replicas = [1, 3, 3, 5][(seed % 4) as usize];
        let surge = if replicas == 1 {
            1
        } else {
            truth.lock().random.random_range(0..3).min(1)
        };
        let days = truth.lock().random.random_range(20..90);
        let rollout = json!({
            "before": { "certificatesExpiryDays": days },
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": surge } },
        });
        make_cluster(&client, json!({ "replicas": replicas, "rollout": rollout })).await;
        let process = Process::start(&server, &truth, &clock, seed, Duration::ZERO);
        Self {
            machinist: Machinist::new(&client),
            truth,
            clock,
            server,
            client,
            process,
            replicas,
            surge,
            version: "v1.35.0",
            changes: 0,
            processes: 0,
            seed,
        }
    }

    /// A little time passes, in which the controller does what it can.
    async fn pass(&self, least: u64, most: u64) {
        let time = self.truth.lock().random.random_range(least..=most);
        tokio::time::sleep(Duration::from_millis(time)).await;
        self.check();
    }

    fn check(&self) {
        let truth = self.truth.lock();
        assert!(
            truth.broken_rules.is_empty(),
            "{:#?}\n{}",
            truth.broken_rules,
            truth.story.join("\n")
        );
    }

    /// Another process takes over, unless the last one still runs.
    fn keep_running(&mut self) {
        if self.process.life.is_over() {
            self.processes += 1;
            let tried = self.truth.lock().random.random_range(0..20);
            let names = self.seed.wrapping_add(self.processes << 32);
            let after = Duration::from_secs(tried);
            self.process = Process::start(&self.server, &self.truth, &self.clock, names, after);
            self.truth.lock().tell("the manager starts");
        }
    }

    async fn live(&mut self) {
        for _ in 0..STEPS {
            self.pass(50, 2000).await;
            self.keep_running();
            self.advance(50).await;
            self.disturb().await;
        }
    }

    /// All disturbances end.
    async fn settle(&mut self) {
        self.truth.lock().trouble = truth::Trouble::default();
        self.process.life.limit(0);
        self.connect();
        self.pause_or_not(false).await;
        self.heal().await;
        self.truth.lock().tell("all disturbances end");
        self.converge().await;
        // What is due by time is noticed when the longest timer ends.
        tokio::time::advance(Duration::from_hours(13)).await;
        self.converge().await;
    }

    async fn converge(&mut self) {
        let mut last = Value::Null;
        for _ in 0..PATIENCE {
            self.pass(200, 4000).await;
            self.keep_running();
            self.advance(90).await;
            last = self.plane().await;
            if self.is_settled(&last) {
                return;
            }
        }
        let machines = objects::<Machine>(&self.client).list(&ListParams::default()).await;
        let machines = serde_json::to_value(machines.unwrap().items).unwrap();
        let truth = self.truth.lock();
        let (story, etcd) = (truth.story.join("\n"), truth.fake.etcd.state().clone());
        panic!(
            "never as specified: {:#}\n{machines:#}\n{etcd:?}\n{:?}\n{story}",
            last["status"], truth.vms
        );
    }

    async fn plane(&self) -> Value {
        let plane = objects::<KubeadmControlPlane>(&self.client).get("cp").await.unwrap();
        serde_json::to_value(plane).unwrap()
    }

    fn is_settled(&self, plane: &Value) -> bool {
        let status = &plane["status"];
        let counts = ["replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"];
        let good = [
            "Available",
            "EtcdClusterHealthy",
            "ControlPlaneComponentsHealthy",
            "MachinesUpToDate",
        ];
        let is_true = |kind: &&str| {
            let mut all = status["conditions"].as_array().into_iter().flatten();
            all.any(|c| c["type"] == **kind && c["status"] == "True")
        };
        let truth = self.truth.lock();
        let members = truth.healthy().len();
        status["observedGeneration"] == plane["metadata"]["generation"]
            && counts.iter().all(|count| status[*count] == self.replicas)
            && good.iter().all(is_true)
            && status["version"] == self.version
            && truth.vms.len() == members
            && truth.fake.etcd.state().members.len() == members
    }

    /// Nothing is sent while nothing happens. A process that starts may send what it cannot know to be there, and changes nothing.
    async fn rest(&mut self) {
        self.idle().await;
        let before = self.truth.lock().writes.len();
        self.idle().await;
        let sent = self.truth.lock().writes[before..].to_vec();
        let story = self.truth.lock().story.join("\n");
        assert!(sent.is_empty(), "writes at rest: {sent:?}\n{story}");
        let stored = contents(&self.client).await;
        self.process.end();
        self.keep_running();
        self.idle().await;
        assert_eq!(stored, contents(&self.client).await, "changed by a start\n{story}");
    }

    async fn idle(&self) {
        for _ in 0..3 {
            self.pass(20_000, 200_000).await;
            self.wake();
        }
    }

    /// A control plane that is deleted goes with all its Machines.
    async fn end(&mut self) {
        self.truth.lock().is_deleting = true;
        let planes = objects::<KubeadmControlPlane>(&self.client);
        planes.delete("cp", &kube::api::DeleteParams::default()).await.unwrap();
        for _ in 0..PATIENCE {
            self.pass(1000, 5000).await;
            self.advance(90).await;
            if planes.get_opt("cp").await.unwrap().is_none() {
                assert!(self.truth.lock().vms.is_empty());
                return;
            }
        }
        panic!("never deleted: {}", self.truth.lock().story.join("\n"));
    }
}

#[test]
fn a_control_plane_survives_whatever_happens_to_its_world() {
    let why = "the simulation has an API server of its own, in memory";
    if Kind::leaves_out(&[Kind::Embedded], why) {
        return;
    }
    simulate(0..4, 12, |seed| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        records::shown_on_failure(|| {
            runtime.block_on(async {
                let mut simulation = Simulation::start(seed).await;
                simulation.live().await;
                simulation.settle().await;
                simulation.rest().await;
                simulation.end().await;
            });
        });
    });
}
