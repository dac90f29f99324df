//! The demo: from nothing to a running cluster and back, shown live.
//!
//! [`run`] starts a management cluster (the embedded one, or the controllers against a running API server). It creates, scales,
//! upgrades and deletes clusters, and reports the duration and cost of each step. The program that calls it owns the terminal and
//! the signals.

mod counting;
mod error;
mod external;
mod follow;
mod item;
mod manifests;
mod options;
mod place;
mod report;
mod table;
pub mod terminal;
mod view;
mod wanted;
mod witness;
mod world;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use windlass_apiserver::RequestKey;
use windlass_manager::registry::kinds::{self, KindEntry};
use windlass_manager::up::CONTROLLERS_AGENT;

use self::external::External;
use self::manifests::{Manifests, NAMESPACE, Shape};
use self::place::Place;
use self::report::{Report, Step};
use self::view::View;
use self::wanted::Wanted;
use self::world::{Update, World};
pub use crate::error::DemoError;
pub use crate::options::{Options, Output, Server};
use crate::terminal::Terminal;

/// The field manager of the manifests.
const MANAGER: &str = "windlass-demo";
/// The number of concurrent requests of the demo itself.
const AT_A_TIME: usize = 16;
/// After this time without a write, the controllers count as idle.
const QUIET: Duration = Duration::from_secs(3);
/// Lines that explain a step that did not finish.
const EXPLAIN_LINES: usize = 40;

/// Runs the demo until its end, or until a future of `stop` resolves.
pub async fn run(options: Options, terminal: &dyn Terminal, mut stop: impl AsyncFnMut()) -> Result<(), DemoError> {
    let started = Instant::now();
    let shape = Shape::of(&options);
    // Missing parts of a file are reported before anything starts.
    let manifests = Manifests::read(&options, &shape)?;
    let place = Place::start(&options.server).await?;
    let answered = started.elapsed();
    let mut demo = Demo::new(&options, &place, terminal, started, &manifests)?;
    demo.report.start_seconds = report::seconds(answered);
    let done = tokio::select! {
        done = demo.play(shape, manifests) => done,
        () = stop() => Err(DemoError::Interrupted),
    };
    let done = match done {
        Ok(()) if options.keep => demo.keep(&mut stop).await,
        Ok(()) => demo.tell(),
        Err(error) => Err(error),
    };
    place.shutdown().await;
    done
}

struct Demo<'a> {
    options: &'a Options,
    place: &'a Place,
    terminal: &'a dyn Terminal,
    client: kube::Client,
    updates: mpsc::UnboundedReceiver<Update>,
    world: World,
    view: View<'a>,
    started: Instant,
    report: Report,
    names: Vec<String>,
}

impl<'a> Demo<'a> {
    fn new(
        options: &'a Options,
        place: &'a Place,
        terminal: &'a dyn Terminal,
        started: Instant,
        manifests: &Manifests,
    ) -> Result<Self, DemoError> {
        Ok(Self {
            options,
            place,
            terminal,
            client: place.client()?,
            updates: follow::follow(&place.cx()),
            world: World::default(),
            view: View::new(
                terminal,
                options.clusters as usize,
                options.output == Output::Json,
                started,
            ),
            started,
            report: Report {
                clusters: options.clusters,
                control_plane_replicas: options.control_plane_replicas,
                workers: options.workers,
                kubernetes_version: options.kubernetes_version.to_string(),
                ..Report::default()
            },
            names: manifests.clusters.iter().map(manifests::name).collect(),
        })
    }

    /// All steps.
    async fn play(&mut self, shape: Shape, manifests: Manifests) -> Result<(), DemoError> {
        let options = self.options;
        let worker_class = manifests.worker_class.clone();
        self.view.say(&format!(
            "management cluster {} ready after {} s",
            self.place.url(),
            self.report.start_seconds
        ))?;
        let mut external = if options.externally_managed {
            Some(External::begin(self).await?)
        } else {
            None
        };
        self.create(&shape, manifests, external.as_mut()).await?;
        if let Some(time) = options.idle {
            self.idle(time, &shape).await?;
        }
        if options.keep {
            return self.account(external.as_mut()).await;
        }
        let more = shape.workers + 1;
        let scaled = Shape {
            workers: more,
            ..shape.clone()
        };
        let patch = json!({"spec": {"topology": {"workers": {"machineDeployments": [
            {"class": worker_class, "name": "md-0", "replicas": more},
        ]}}}});
        self.patch(
            "scale",
            &format!("workers from {} to {more}", shape.workers),
            &patch,
            &scaled,
        )
        .await?;
        let next = format!(
            "v{}.{}.0",
            options.kubernetes_version.major(),
            options.kubernetes_version.minor() + 1
        );
        let upgraded = Shape {
            version: next.clone(),
            ..scaled
        };
        let patch = json!({"spec": {"topology": {"version": next}}});
        self.patch(
            "upgrade",
            &format!("from {} to {next}", shape.version),
            &patch,
            &upgraded,
        )
        .await?;
        if options.externally_managed {
            self.refuse(&upgraded).await?;
        }
        self.delete().await?;
        self.account(external.as_mut()).await
    }

    async fn create(
        &mut self,
        shape: &Shape,
        manifests: Manifests,
        external: Option<&mut External>,
    ) -> Result<(), DemoError> {
        let what = format!(
            "{} of {} control plane and {} worker machines, {}",
            count(shape.clusters, "cluster"),
            shape.control_plane,
            shape.workers,
            shape.version
        );
        let begun = self.begin("create", &what)?;
        self.apply(manifests.class).await?;
        self.apply(manifests.clusters).await?;
        if let Some(external) = external {
            self.finish("create", what, begun, &self.waiting()).await?;
            self.provide(external, shape).await?;
        } else {
            self.finish("create", what, begun, &self.running(shape)).await?;
        }
        let machines = shape.clusters * (shape.control_plane + shape.workers);
        let steps = self.report.steps.iter();
        let (writes, events) = steps.fold((0, 0), |(writes, events), step| {
            (writes + step.writes_total, events + step.events_total)
        });
        self.report.writes_per_machine = report::per(writes, machines);
        self.report.events_per_machine = report::per(events, machines);
        Ok(())
    }

    /// Waits until the controllers are idle, and then for a while; the report has their writes meanwhile.
    async fn idle(&mut self, time: Duration, shape: &Shape) -> Result<(), DemoError> {
        let begun = self.begin("settle", "until nothing is written any more")?;
        let mut last = (Instant::now(), begun.requests.clone());
        while last.0.elapsed() < QUIET && Instant::now() < begun.deadline {
            tokio::time::sleep(QUIET / 10).await;
            let now = self.place.requests();
            let writes = report::writes(&last.1, &now, CONTROLLERS_AGENT);
            if !writes.is_empty() {
                last = (Instant::now(), now);
            }
        }
        let what = "until nothing was written any more".to_owned();
        self.finish("settle", what, begun, &self.running(shape)).await?;
        let what = format!("{} s", time.as_secs_f64());
        let mut begun = self.begin("idle", &what)?;
        begun.deadline += time;
        tokio::time::sleep(time).await;
        self.finish("idle", what, begun, &self.running(shape)).await
    }

    async fn patch(&mut self, name: &'static str, what: &str, patch: &Value, shape: &Shape) -> Result<(), DemoError> {
        let begun = self.begin(name, what)?;
        let api = self.api("Cluster");
        let parameters = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let (api, parameters) = (&api, &parameters);
        let requests: Vec<_> = self
            .names
            .iter()
            .map(|cluster| async move {
                let sent = api.patch(cluster, parameters, &Patch::Merge(patch)).await;
                sent.map(drop)
                    .map_err(|source| refused("change", &format!("Cluster {cluster}"), source))
            })
            .collect();
        all(requests).await?;
        self.finish(name, what.to_owned(), begun, &self.running(shape)).await
    }

    async fn delete(&mut self) -> Result<(), DemoError> {
        let what = count(self.options.clusters, "cluster");
        let begun = self.begin("delete", &what)?;
        let api = self.api("Cluster");
        let api = &api;
        let requests: Vec<_> = self
            .names
            .iter()
            .map(|cluster| async move {
                let sent = api.delete(cluster, &DeleteParams::default()).await;
                sent.map(drop)
                    .map_err(|source| refused("delete", &format!("Cluster {cluster}"), source))
            })
            .collect();
        all(requests).await?;
        self.finish("delete", what, begun, &Wanted::Gone).await
    }

    fn running(&self, shape: &Shape) -> Wanted {
        Wanted::Running {
            clusters: self.names.clone(),
            control_plane: shape.control_plane,
            workers: shape.workers,
            version: shape.version.clone(),
        }
    }

    fn api(&self, name: &str) -> Api<DynamicObject> {
        api(&self.client, name)
    }

    async fn apply(&self, objects: Vec<Value>) -> Result<(), DemoError> {
        let parameters = PatchParams::apply(MANAGER).force();
        let parameters = &parameters;
        let requests: Vec<_> = objects
            .into_iter()
            .map(|object| async move {
                let (kind, name) = (object["kind"].as_str().unwrap_or_default(), manifests::name(&object));
                let sent = self.api(kind).patch(&name, parameters, &Patch::Apply(&object)).await;
                sent.map(drop)
                    .map_err(|source| refused("apply", &format!("{kind} {name}"), source))
            })
            .collect();
        all(requests).await
    }

    fn begin(&mut self, name: &str, what: &str) -> Result<Begun, DemoError> {
        self.view.begin(&format!("{name}: {what}"), &self.world)?;
        let at = Instant::now();
        Ok(Begun {
            at,
            deadline: at + self.options.timeout,
            cpu: cpu_seconds(),
            requests: self.place.requests(),
        })
    }

    /// Waits until a step has reached its goal, and records its cost.
    async fn finish(
        &mut self,
        name: &'static str,
        what: String,
        begun: Begun,
        wanted: &Wanted,
    ) -> Result<(), DemoError> {
        self.wait(name, wanted, begun.deadline).await?;
        let took = begun.at.elapsed();
        let now = self.place.requests();
        let writes = report::writes(&begun.requests, &now, CONTROLLERS_AGENT);
        self.view.end(
            &self.world,
            &format!("{name} done in {:.2} s: {what}", took.as_secs_f64()),
        )?;
        self.report.steps.push(Step {
            name,
            what,
            seconds: report::seconds(took),
            cpu_seconds: cpu_seconds().zip(begun.cpu).map(|(now, then)| (now - then).max(0.0)),
            writes_total: report::sum(&writes, false),
            events_total: report::sum(&writes, true),
            writes,
            peak_memory_bytes: peak_memory(),
        });
        self.report.seconds = report::seconds(self.started.elapsed());
        Ok(())
    }

    async fn wait(&mut self, step: &str, wanted: &Wanted, deadline: Instant) -> Result<(), DemoError> {
        loop {
            while let Ok(update) = self.updates.try_recv() {
                self.take(update)?;
            }
            if wanted.is_met(&self.world) {
                return Ok(());
            }
            self.view.tick(&self.world)?;
            let frame = self.view.due().map_or(deadline, |due| due.min(deadline));
            tokio::select! {
                update = self.updates.recv() => match update {
                    Some(update) => self.take(update)?,
                    None => return Err(DemoError::plain("the controllers have stopped")),
                },
                () = tokio::time::sleep_until(frame.into()) => {
                    if Instant::now() >= deadline {
                        return Err(self.too_late(step, wanted)?);
                    }
                }
            }
        }
    }

    fn take(&mut self, update: Update) -> Result<(), DemoError> {
        let id = match &update {
            Update::There(item) => item.id.clone(),
            Update::Gone(id) => id.clone(),
        };
        let before = self.world.update(update);
        self.view.changed(before.as_ref(), self.world.get(&id))
    }

    /// The error with the conditions that explain why a step did not finish.
    fn too_late(&mut self, step: &str, wanted: &Wanted) -> Result<DemoError, DemoError> {
        let missing = wanted.missing(&self.world);
        let lines = wanted::explain(&self.world, &missing, EXPLAIN_LINES);
        self.view.picture(&self.world)?;
        let seconds = self.options.timeout.as_secs_f64();
        Ok(DemoError::TooLate {
            what: format!("step {step} did not finish within {seconds} s"),
            lines,
            hint: "--timeout gives it more time; --log-level info shows what the controllers do".to_owned(),
        })
    }

    /// Prints the report.
    fn tell(&mut self) -> Result<(), DemoError> {
        self.report.peak_memory_bytes = peak_memory();
        match self.options.output {
            Output::Json => {
                let text = serde_json::to_string_pretty(&self.report)
                    .map_err(|error| DemoError::failed("cannot write the report", error))?;
                self.terminal.line(&text)
            }
            Output::Text => self
                .terminal
                .text(&format!("\n{}\n", self.report.lines(self.options.costs).join("\n"))),
        }
    }

    /// Keeps running until it is stopped.
    async fn keep(&mut self, stop: &mut impl AsyncFnMut()) -> Result<(), DemoError> {
        self.view.picture(&self.world)?;
        self.tell()?;
        let kubeconfig = self.place.kubeconfig().display().to_string();
        if self.options.output == Output::Text {
            self.terminal.text(&format!(
                "\nThe management cluster stays up until Ctrl-C:\n\n  kubectl --kubeconfig {kubeconfig} get clusters,machines\n"
            ))?;
        }
        stop().await;
        Ok(())
    }
}

/// The beginning of a step.
struct Begun {
    at: Instant,
    deadline: Instant,
    cpu: Option<f64>,
    requests: BTreeMap<RequestKey, u64>,
}

fn count(number: u32, what: &str) -> String {
    if number == 1 {
        format!("1 {what}")
    } else {
        format!("{number} {what}s")
    }
}

/// The most memory that this process had so far.
fn peak_memory() -> Option<u64> {
    report::peak_memory(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// The processor time that this process has used.
fn cpu_seconds() -> Option<f64> {
    report::cpu_seconds(&std::fs::read_to_string("/proc/self/stat").unwrap_or_default())
}

fn kind(name: &str) -> Option<&'static KindEntry> {
    kinds::find(name)
}

fn api(client: &kube::Client, name: &str) -> Api<DynamicObject> {
    let (group, version, plural) = kind(name).map_or(("", "", ""), |entry| (entry.group, entry.version, entry.plural));
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, name), plural);
    Api::namespaced_with(client.clone(), NAMESPACE, &resource)
}

fn refused(verb: &str, what: &str, source: kube::Error) -> DemoError {
    DemoError::failed(format!("cannot {verb} {what}"), source)
}

async fn all(requests: Vec<impl Future<Output = Result<(), DemoError>>>) -> Result<(), DemoError> {
    futures::stream::iter(requests)
        .buffer_unordered(AT_A_TIME)
        .try_collect::<Vec<()>>()
        .await
        .map(drop)
}
