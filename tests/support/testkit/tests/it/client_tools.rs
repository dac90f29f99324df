//! Programs that people already have, unmodified, against our server: what they read, what they write, and what they show.

mod cluster_autoscaler;
mod clusterctl;
mod clusterctl_move;
mod health_rules;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;

use tempfile::TempDir;
use tokio::process::Command;
use windlass_api::core::Machine;
use windlass_api_operator::inventory;
use windlass_envtest::Tools;
use windlass_manager::Selection;
use windlass_testkit::{Env, wait};

/// A value in clusterctl's environment.
const REGION: &str = "eu-west-1";

/// clusterctl with a home of its own, so that it reads no settings of the user and looks for no newer release of itself.
struct Clusterctl {
    program: PathBuf,
    home: TempDir,
}

impl Clusterctl {
    /// clusterctl for a test; `None` if it is not built and the test is left out.
    fn required() -> Option<Self> {
        let program = Tools::required("clusterctl")?;
        let home = tempfile::tempdir().expect("a temporary folder can be made");
        Some(Self { program, home })
    }

    /// Runs it against a server, and returns whether it succeeded, its standard output and its standard error.
    async fn run(&self, env: &Env, words: &[&str]) -> (bool, String, String) {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .env_clear()
            .env("HOME", self.home.path())
            .env("XDG_CONFIG_HOME", self.home.path())
            .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
            .env("REGION", REGION)
            .env("KUBECONFIG", env.server().kubeconfig())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = tokio::time::timeout(wait::TIMEOUT, command.output()).await;
        let output = output.unwrap_or_else(|_| panic!("clusterctl {words:?} does not end"));
        let output = output.expect("clusterctl can be run");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("clusterctl writes text");
        (output.status.success(), text(output.stdout), text(output.stderr))
    }

    /// [`Self::run`], which must succeed; returns its standard output.
    async fn ok(&self, env: &Env, words: &[&str]) -> String {
        let (done, out, error) = self.run(env, words).await;
        assert!(done, "clusterctl {words:?} failed:\n{error}");
        out
    }

    /// [`Self::run`], which must fail; returns its standard error.
    async fn refused(&self, env: &Env, words: &[&str]) -> String {
        let (done, out, error) = self.run(env, words).await;
        assert!(!done, "clusterctl {words:?} succeeded:\n{out}");
        error
    }
}

/// Waits until the inventory has all built-in providers, which it gets some time after the start.
async fn with_inventory(env: &Env) -> Vec<inventory::Provider> {
    let built_in = Selection::all().built_ins().all().count();
    let all = kube::Api::namespaced(env.client().clone(), "windlass-system");
    let found = wait::until(all, None, |all: &[inventory::Provider]| all.len() >= built_in).await;
    found.expect("the inventory has the built-in providers")
}

/// The Machines with what their infrastructure calls them. A Machine that was replaced has another of both.
async fn hosts(env: &Env) -> BTreeMap<String, String> {
    let machines = env.list::<Machine>().await;
    let host = |machine: Machine| {
        let id = machine.spec.provider_id.expect("a running Machine has an ID");
        (machine.metadata.name.expect("objects have names"), id)
    };
    machines.into_iter().map(host).collect()
}
