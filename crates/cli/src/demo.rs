//! `windlass demo`: creates, scales, upgrades and deletes a cluster, shown live.

mod external;
mod follow;
mod item;
mod manifests;
mod place;
mod report;
mod table;
mod view;
mod wanted;
mod witness;
mod world;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use windlass_apiserver::RequestKey;
use windlass_manager::up::CONTROLLERS_AGENT;
use windlass_suite::kinds::{self, KindEntry};

use self::external::External;
use self::manifests::{Manifests, NAMESPACE, Shape};
use self::place::Place;
use self::report::{Report, Step};
use self::view::View;
use self::wanted::Wanted;
use self::world::{Update, World};
use crate::args::{DemoArgs, Output};
use crate::error::CliError;
use crate::printer::Printer;
use crate::signals::Stop;

/// Who applies the manifests.
const MANAGER: &str = "windlass-demo";
/// Requests of the demo itself that are under way at a time.
const AT_A_TIME: usize = 16;
/// Without a write for so long, the controllers are taken to rest.
const QUIET: Duration = Duration::from_secs(3);
/// Lines that explain a step that did not finish.
const EXPLAIN_LINES: usize = 40;

/// Runs the demo.
pub(crate) async fn run(args: DemoArgs, printer: &Printer) -> Result<(), CliError> {
    let started = Instant::now();
    let shape = Shape::of(&args);
    // Missing parts of a file are reported before anything starts.
    let manifests = Manifests::read(&args, &shape)?;
    let mut stop = Stop::listen()?;
    // Removed when dropped, also after a failure.
    let temporary = match &args.data_dir {
        Some(_) => None,
        None => Some(
            tempfile::Builder::new()
                .prefix("windlass-demo-")
                .permissions(std::fs::Permissions::from_mode(0o700))
                .tempdir()
                .map_err(|source| CliError::failed("cannot make a temporary folder", source))?,
        ),
    };
    let data_dir = match (&args.data_dir, &temporary) {
        (Some(folder), _) => folder.clone(),
        (None, Some(folder)) => folder.path().to_owned(),
        (None, None) => PathBuf::from("."),
    };
    let place = Place::start(args.api_server, &data_dir).await?;
    let answered = started.elapsed();
    let mut demo = Demo::new(&args, &place, printer, started, &manifests)?;
    demo.report.start_seconds = report::seconds(answered);
    let done = tokio::select! {
        done = demo.play(shape, manifests) => done,
        () = stop.wait() => Err(CliError::plain("interrupted", None)),
    };
    let done = match done {
        Ok(()) if args.keep => demo.keep(&mut stop).await,
        Ok(()) => demo.tell(),
        Err(error) => Err(error),
    };
    place.shutdown().await;
    done
}

struct Demo<'a> {
    args: &'a DemoArgs,
    place: &'a Place,
    printer: &'a Printer,
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
        args: &'a DemoArgs,
        place: &'a Place,
        printer: &'a Printer,
        started: Instant,
        manifests: &Manifests,
    ) -> Result<Self, CliError> {
        Ok(Self {
            args,
            place,
            printer,
            client: place.client()?,
            updates: follow::follow(&place.cx()),
            world: World::default(),
            view: View::new(printer, args.clusters as usize, args.output == Output::Json, started),
            started,
            report: Report {
                clusters: args.clusters,
                control_plane_replicas: args.control_plane_replicas,
                workers: args.workers,
                kubernetes_version: args.kubernetes_version.to_string(),
                ..Report::default()
            },
            names: manifests.clusters.iter().map(manifests::name).collect(),
        })
    }

    /// All steps.
    async fn play(&mut self, shape: Shape, manifests: Manifests) -> Result<(), CliError> {
        let args = self.args;
        let worker_class = manifests.worker_class.clone();
        self.view.say(&format!(
            "management cluster {} ready after {} s",
            self.place.url(),
            self.report.start_seconds
        ))?;
        let mut external = if args.externally_managed {
            Some(External::begin(self).await?)
        } else {
            None
        };
        self.create(&shape, manifests, external.as_mut()).await?;
        if let Some(time) = args.idle {
            self.idle(time, &shape).await?;
        }
        if args.keep {
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
            args.kubernetes_version.major(),
            args.kubernetes_version.minor() + 1
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
        if args.externally_managed {
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
    ) -> Result<(), CliError> {
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

    /// Waits until the controllers rest, and does nothing for a while; the report says what they did meanwhile.
    async fn idle(&mut self, time: Duration, shape: &Shape) -> Result<(), CliError> {
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

    async fn patch(&mut self, name: &'static str, what: &str, patch: &Value, shape: &Shape) -> Result<(), CliError> {
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

    async fn delete(&mut self) -> Result<(), CliError> {
        let what = count(self.args.clusters, "cluster");
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

    async fn apply(&self, objects: Vec<Value>) -> Result<(), CliError> {
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

    fn begin(&mut self, name: &str, what: &str) -> Result<Begun, CliError> {
        self.view.begin(&format!("{name}: {what}"), &self.world)?;
        let at = Instant::now();
        Ok(Begun {
            at,
            deadline: at + self.args.timeout,
            cpu: cpu_seconds(),
            requests: self.place.requests(),
        })
    }

    /// Waits until a step has reached what it wants, and notes what it cost.
    async fn finish(
        &mut self,
        name: &'static str,
        what: String,
        begun: Begun,
        wanted: &Wanted,
    ) -> Result<(), CliError> {
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

    async fn wait(&mut self, step: &str, wanted: &Wanted, deadline: Instant) -> Result<(), CliError> {
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
                    None => return Err(CliError::plain("the controllers have stopped", None)),
                },
                () = tokio::time::sleep_until(frame.into()) => {
                    if Instant::now() >= deadline {
                        return Err(self.too_late(step, wanted)?);
                    }
                }
            }
        }
    }

    fn take(&mut self, update: Update) -> Result<(), CliError> {
        let id = match &update {
            Update::There(item) => item.id.clone(),
            Update::Gone(id) => id.clone(),
        };
        let before = self.world.update(update);
        self.view.changed(before.as_ref(), self.world.get(&id))
    }

    /// Tells the conditions that explain why a step did not finish.
    fn too_late(&mut self, step: &str, wanted: &Wanted) -> Result<CliError, CliError> {
        let missing = wanted.missing(&self.world);
        let lines = wanted::explain(&self.world, &missing, EXPLAIN_LINES);
        self.view.picture(&self.world)?;
        let seconds = self.args.timeout.as_secs_f64();
        Ok(CliError::Explained {
            what: format!("step {step} did not finish within {seconds} s"),
            lines,
            hint: Some("--timeout gives it more time; --log-level info shows what the controllers do".to_owned()),
        })
    }

    /// Prints what was measured.
    fn tell(&mut self) -> Result<(), CliError> {
        self.report.peak_memory_bytes = peak_memory();
        match self.args.output {
            Output::Json => {
                let text = serde_json::to_string_pretty(&self.report)
                    .map_err(|error| CliError::failed("cannot write the report", error))?;
                self.printer.line(&text)
            }
            Output::Text => self.printer.text(&format!("\n{}\n", self.report.lines().join("\n"))),
        }
    }

    /// Keeps running until it is stopped.
    async fn keep(&mut self, stop: &mut Stop) -> Result<(), CliError> {
        self.view.picture(&self.world)?;
        self.tell()?;
        let kubeconfig = self.place.kubeconfig().display().to_string();
        if self.args.output == Output::Text {
            self.printer.text(&format!(
                "\nThe management cluster stays up until Ctrl-C:\n\n  kubectl --kubeconfig {kubeconfig} get clusters,machines\n"
            ))?;
        }
        stop.wait().await;
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

fn refused(verb: &str, what: &str, source: kube::Error) -> CliError {
    CliError::failed(format!("cannot {verb} {what}"), source)
}

async fn all(requests: Vec<impl Future<Output = Result<(), CliError>>>) -> Result<(), CliError> {
    futures::stream::iter(requests)
        .buffer_unordered(AT_A_TIME)
        .try_collect::<Vec<()>>()
        .await
        .map(drop)
}
