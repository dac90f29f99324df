//! `windlass manager`.

use std::sync::Arc;
use std::time::Duration;

use windlass_controller_runtime::{Candidate, Metrics, Runtime, SystemClock, Term, Timing};
use windlass_manager::up::Listeners;
use windlass_manager::{
    BuiltIns, Decision, Home, OwnPod, Surroundings, WebhookOptions, Webhooks, controllers, diagnostics, network,
    others, webhooks,
};

use super::up::{selection, stopped};
use crate::args::{ElectionArgs, ManagerArgs, ReconcilingArgs, WebhookArgs};
use crate::error::CliError;
use crate::logging;
use crate::printer::Printer;
use crate::signals::Stop;

/// How long running reconciles may take to end after a stop. With the release of the Lease, this is less than the 30 s that Kubernetes
/// gives a pod.
const GRACE: Duration = Duration::from_secs(20);

/// Runs controllers against an API server over the network until it is stopped.
pub(crate) async fn run(args: Box<ManagerArgs>, printer: &Printer) -> Result<(), CliError> {
    let scope = args.reconciling.scope();
    let asked = selection(args.controllers.as_deref())?.within(&scope)?;
    timing(&args.election)?;
    let surroundings = surroundings(&args.reconciling).map_err(CliError::Usage)?;
    let fetcher = args.fetching.fetcher()?;
    let mut stop = Stop::listen()?;
    let listeners = args.serving.or_defaults();
    let listeners = listeners.listen(Arc::new(logging::set_level)).await?;
    let webhooks = webhook_options(args.webhooks, &surroundings).await?;
    let own = others::Own {
        pod: surroundings.own_pod.clone(),
        webhooks: webhooks.as_ref().map(|options| options.target.clone()),
    };
    let config = network::config(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
    let administrator = network::connect_patiently(&config).await?;
    // Before anything is written: the definitions and webhooks of another program are not to be replaced.
    let decision = Decision::make(&administrator, asked, &own, args.take_over).await?;
    let selection = decision.runs();
    network::definitions(&administrator, &selection.definitions(), args.install_crds).await?;
    // Admission starts first: our controllers need no write that it refuses.
    let serving = admit(&administrator, webhooks, &decision).await?;
    let metrics = Metrics::new();
    let client = network::connect(&config, &metrics)?;
    let term = if args.election.leader_elect {
        Term::waiting(Arc::new(SystemClock))
    } else {
        Term::endless()
    };
    let mut candidate = candidate(&args.election, &config, &term, &metrics)?;
    let kit = Runtime::builder(client)
        .metrics(metrics)
        .term(term)
        .workloads(args.workloads.policy())
        .scope(scope)
        .sync_period(args.reconciling.sync_period())
        .build();
    let ready = decision.clone();
    kit.check(move || ready.check());
    serve(listeners, &kit, &config)?;
    // A process that does not lead serves webhooks and metrics.
    let leads = match &mut candidate {
        None => true,
        Some(candidate) => tokio::select! {
            () = candidate.win(|waits| drop(printer.line(waits))) => true,
            () = stop.wait() => false,
            panicked = kit.tasks().panic() => return Err(panicked.into()),
        },
    };
    let (mut ended, mut may_follow) = (Ok(()), true);
    if leads {
        decision.tell(&kit.cx());
        let running = controllers::start_on(kit, &selection, &fetcher, &args.helm.helming(), surroundings);
        running.warn_without_helm(&selection);
        let answering = serving.as_ref().and_then(Webhooks::address);
        let admission = answering.map_or_else(String::new, |address| format!(", admission is answered on {address}"));
        let printed = printer.line(&format!("controllers run against {}{admission}", config.cluster_url));
        let ends = async {
            let ended = match printed {
                Ok(()) => tokio::select! {
                    ended = stopped(stop, running.panic()) => ended,
                    why = decision.overtaken(&administrator, &own) => Err(overtaken(&why)),
                },
                Err(error) => Err(error),
            };
            (ended, running.shutdown_within(GRACE).await)
        };
        // The Lease is renewed until the last reconcile has ended, or has had its time.
        (ended, may_follow) = match &mut candidate {
            None => ends.await,
            Some(candidate) => tokio::select! {
                ends = ends => ends,
                // What still runs ends with the process, including helm.
                lost = candidate.hold() => return Err(CliError::failed("the controllers had to stop at once", lost)),
            },
        };
    } else {
        kit.shutdown().await;
    }
    // This ends the term first.
    if let Some(candidate) = candidate.as_mut().filter(|_| may_follow) {
        candidate.release().await;
    }
    if let Some(webhooks) = serving {
        webhooks.shutdown().await;
    }
    ended
}

/// How webhooks are served, if they are. It listens from now on.
async fn webhook_options(args: WebhookArgs, surroundings: &Surroundings) -> Result<Option<WebhookOptions>, CliError> {
    let (Some(address), Some(target)) = (args.address, args.service.or(args.url)) else {
        return Ok(None);
    };
    Ok(Some(WebhookOptions {
        listener: network::listen(address, "--webhook-address").await?,
        target,
        certificate_dir: args.certificate_dir,
        gates: surroundings.gates.clone(),
        built_ins: BuiltIns::default(),
    }))
}

/// Serves webhooks, unless the process makes way for others: it is not ready then, so no API server would reach it.
async fn admit(
    administrator: &kube::Client,
    options: Option<WebhookOptions>,
    decision: &Decision,
) -> Result<Option<Webhooks>, CliError> {
    let selection = decision.runs();
    let Some(options) = options else {
        webhooks::warn_that_none_are_served(&selection);
        return Ok(None);
    };
    if decision.yields() {
        webhooks::withdraw(administrator).await?;
        return Ok(None);
    }
    let options = WebhookOptions {
        built_ins: selection.built_ins(),
        ..options
    };
    Ok(Some(webhooks::start(administrator.clone(), options).await?))
}

/// The controllers that run were decided at the start, so the next process decides again.
fn overtaken(why: &str) -> CliError {
    CliError::plain(
        format!("the controllers that run here are no longer the right ones: {why}"),
        Some("start it again".to_owned()),
    )
}

/// The pod of this process, as its environment says.
fn this_pod() -> Option<OwnPod> {
    own_pod([
        std::env::var("POD_NAMESPACE").ok(),
        std::env::var("POD_NAME").ok(),
        std::env::var("POD_UID").ok(),
    ])
}

/// What the options say about the work of the controllers. The error names the option that is wrong.
fn surroundings(args: &ReconcilingArgs) -> Result<Surroundings, String> {
    Ok(Surroundings {
        nodes: args.nodes(),
        preflight: args.preflight(),
        gates: args.gates()?,
        concurrency: args.concurrency(),
        grace: args.grace()?,
        tokens: args.tokens(),
        etcd: args.etcd(),
        migration: args.migration(),
        identity: args.identity()?,
        own_pod: this_pod(),
    })
}

/// The pod of this process by namespace, name and uid, as the manifests of Cluster API give them in the environment (downward API). Without all
/// three nothing is known of it.
fn own_pod(given: [Option<String>; 3]) -> Option<OwnPod> {
    let [namespace, name, uid] = given.map(|value| value.filter(|value| !value.is_empty()));
    let (namespace, name, uid) = (namespace?, name?, uid?);
    tracing::info!(
        "this manager runs in Pod {namespace}/{name}; a workload cluster with that Pod is reached from inside"
    );
    // Whatever this manager's own kubeconfig is: the pod is in the cluster that the kubelet made it in.
    let home: Home = Arc::new(|| kube::Config::incluster().map_err(|error| error.to_string()));
    Some(OwnPod {
        namespace,
        name,
        uid,
        home,
    })
}

/// Serves health and diagnostics. A process that does not lead serves them, too.
fn serve(listeners: Listeners, kit: &Runtime, config: &kube::Config) -> Result<(), CliError> {
    if let Some(listener) = listeners.health {
        kit.serve(listener);
    }
    if let Some(options) = listeners.diagnostics {
        // Not behind the fence of the term: the requests of diagnostics change nothing.
        let client = network::connect(config, kit.metrics())?;
        diagnostics::start(options, &client, kit.metrics(), kit.tasks())?;
    }
    Ok(())
}

/// The part of this process in the leader election; none without one. The Lease has a connection of its own, which neither waits for the
/// requests of controllers nor ends with the term.
fn candidate(
    args: &ElectionArgs,
    config: &kube::Config,
    term: &Term,
    metrics: &Metrics,
) -> Result<Option<Candidate>, CliError> {
    if !args.leader_elect {
        return Ok(None);
    }
    let client = network::connect(config, metrics)?;
    let namespace = args.resource_namespace.as_deref();
    let lease = (
        namespace.unwrap_or(&config.default_namespace),
        args.resource_name.as_str(),
    );
    let (identity, timing) = (network::identity(), timing(args)?);
    let candidate = Candidate::new(&client, lease, identity, timing, term.clone(), metrics.clone());
    Ok(Some(candidate))
}

/// The durations of the election, if they fit together.
fn timing(args: &ElectionArgs) -> Result<Timing, CliError> {
    let timing = Timing {
        lease: args.lease_duration,
        renew: args.renew_deadline,
        retry: args.retry_period,
    };
    timing.check().map_err(|why| CliError::Usage(why.to_owned()))?;
    Ok(timing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_known_by_all_three_variables() {
        let of = |given: [Option<&str>; 3]| own_pod(given.map(|value| value.map(str::to_owned)));
        let pod = of([Some("capi-system"), Some("manager-0"), Some("u")]).unwrap();
        assert_eq!(
            (pod.namespace.as_str(), pod.name.as_str(), pod.uid.as_str()),
            ("capi-system", "manager-0", "u")
        );
        for missing in 0..3 {
            for value in [None, Some("")] {
                let mut given = [Some("a"); 3];
                given[missing] = value;
                assert!(of(given).is_none(), "{given:?}");
            }
        }
    }
}
