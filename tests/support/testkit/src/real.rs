//! Real API servers for tests: as many per process and set of definitions as there are concurrent tests, each reset to its initial state between two
//! tests.
//!
//! Starting etcd, kube-apiserver and kube-controller-manager takes seconds of processor time; a reset takes a moment. Each test
//! has a server for itself until the last of its tasks has ended.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use windlass_envtest::{Baseline, ControlPlane, Options, StartError};
use windlass_manager::registry::install::Conversion;
use windlass_manager::{Webhooks, network};

use crate::server::{Contents, connect, define_with, is_open, serve_admission};

/// Memory for time: four control planes and more share the cores of a machine with the tests.
const GARBAGE_PERCENT: u16 = 400;

/// A real API server and its initial state.
struct Real {
    control_plane: ControlPlane,
    config: kube::Config,
    baseline: Baseline,
    /// The admission of the test that has it, or had it last.
    admission: Option<Webhooks>,
}

/// Idle servers, by key of their definitions.
static IDLE: Mutex<BTreeMap<u64, Vec<Real>>> = Mutex::new(BTreeMap::new());

/// A test's access to its server.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) config: kube::Config,
    pub(crate) kubeconfig: PathBuf,
}

/// Returns the server when dropped.
struct Lease {
    real: Option<Real>,
    key: u64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        IDLE.lock().entry(self.key).or_default().extend(self.real.take());
    }
}

/// A server in its initial state, for the lifetime of the test's runtime.
pub(crate) async fn lease(contents: &Contents) -> Access {
    let key = contents.key();
    let mut real = match idle(key).await {
        Some(real) => real,
        None => start(contents.clone()).await,
    };
    let access = Access {
        config: real.config.clone(),
        kubeconfig: real.control_plane.kubeconfig_path(),
    };
    // Tests with our admission and without it share servers, so its configurations are part of no initial state.
    if contents.admits {
        let config = access.config.clone();
        // A test may keep its only thread busy.
        let admission = runtime().spawn(async move { serve_admission(&config).await }).await;
        real.admission = Some(admission.unwrap_or_else(|error| panic!("no admission: {error}")));
    } else if contents.ours {
        is_open(&connect(&access.config, None)).await;
    }
    let lease = Lease { real: Some(real), key };
    // Controllers of a test may run until its runtime ends, so the server is returned with the runtime and not before.
    tokio::spawn(async move {
        let _lease = lease;
        std::future::pending::<()>().await;
    });
    access
}

/// A server that another test has used. A server that cannot be reset is ended, and the reason is reported.
async fn idle(key: u64) -> Option<Real> {
    loop {
        let mut real = IDLE.lock().get_mut(&key)?.pop()?;
        // It would write its configurations again.
        if let Some(admission) = real.admission.take() {
            admission.shutdown().await;
        }
        let result = match real.control_plane.check() {
            Ok(()) => real.control_plane.reset(&mut real.baseline).await,
            ended => ended,
        };
        match result {
            Ok(()) => return Some(real),
            Err(error) => tracing::warn!(%error, "a real API server is given up"),
        }
    }
}

async fn start(contents: Contents) -> Real {
    // The server's own tasks need a runtime that outlives the test.
    let starting = runtime().spawn_blocking(move || runtime().block_on(try_start(&contents)));
    let started = starting.await;
    let started = started.unwrap_or_else(|error| panic!("no real API server: {error}"));
    started.unwrap_or_else(|error| panic!("no real API server: {error}"))
}

async fn try_start(contents: &Contents) -> Result<Real, StartError> {
    let options = Options {
        garbage_percent: Some(GARBAGE_PERCENT),
        ..Options::default()
    };
    let control_plane = ControlPlane::start(&options).await?;
    let config = network::config(Some(&control_plane.kubeconfig_path()), None).await;
    let config = config.expect("the control plane's kubeconfig can be used");
    let definitions = contents.definitions();
    if !definitions.is_empty() {
        define_with(&connect(&config, None), &definitions, Conversion::Webhook).await;
    }
    let baseline = control_plane.baseline().await?;
    Ok(Real {
        control_plane,
        config,
        baseline,
        admission: None,
    })
}

/// The runtime that serves admission for all tests.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).enable_all();
        builder.build().expect("a runtime can be built")
    })
}
