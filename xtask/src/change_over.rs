//! `cargo xtask change-over DIR`: what our controllers change of a management cluster that Cluster API v1.14.0 has run.
//!
//! `DIR` has recorded objects, one folder per step. Each is stored on an API server with its status, its field managers and its finalizers, first
//! the simulated infrastructure runs, as it would have all the time, then all our controllers start. When they are quiet, everything is
//! compared with what was stored. A difference must be in `xtask/change-over-allow.tsv` with its reason and in
//! `xtask/change-over-differences.tsv` with its values.

mod load;
mod recording;
mod rollout;
mod view;
mod way_back;
mod workload;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use windlass_infra_dev::Cloud;
use windlass_manager::registry::kinds::KINDS;
use windlass_manager::{FeatureGates, Selection};
use windlass_pki::{KeyAlgorithm, PrivateKey};
use windlass_preview::adopt::{Trial, adopt};
use windlass_preview::model::Verdict;
use windlass_preview::render::adoption;
use windlass_testkit::faults::Faults;
use windlass_testkit::wait::TIMEOUT;
use windlass_testkit::{Env, keys, reserved_port};

use self::recording::{Material, named};
use self::view::view;
use crate::recorded::diff::{self, Difference, Pins};
use crate::recorded::flat::Flat;
use crate::recorded::normal::Role;
use crate::recorded::{Outcome, read_folder};

/// The management clusters.
const STEPS: [Step; 6] = [
    Step::quiet("settled"),
    Step {
        name: "settled-v1beta1",
        older: Some("settled-v1beta1"),
        ..Step::quiet("settled")
    },
    Step {
        name: "settled-marks",
        is_marked: true,
        ..Step::quiet("settled")
    },
    Step::quiet("labelled"),
    Step {
        rollout: Some("demo000-md-0-f5krk"),
        ..Step::quiet("upgraded")
    },
    Step {
        rollout: Some("demo000-md-0-f5krk"),
        ..Step::quiet("class-changed")
    },
];
/// The controllers of the simulated infrastructure.
const INFRASTRUCTURE: [&str; 3] = ["devcluster", "devmachine", "devmachinetemplate"];
/// Those that have something to reconcile in a recorded management cluster.
const AT_WORK: [&str; 13] = [
    "clusterclass",
    "topology/cluster",
    "topology/machinedeployment",
    "topology/machineset",
    "cluster",
    "machine",
    "machinedeployment",
    "machineset",
    "machinehealthcheck",
    "kubeadmconfig",
    "kubeadmcontrolplane",
    "devcluster",
    "devmachine",
];
/// After this time without a write, the controllers count as idle: longer than the pause between two looks at a control plane.
const QUIET: Duration = Duration::from_secs(12);

/// One recorded management cluster.
#[derive(Clone, Copy, Debug)]
struct Step {
    name: &'static str,
    folder: &'static str,
    /// The folder with objects in an older version, which are stored in that version.
    older: Option<&'static str>,
    /// Whether it has the marks of cases that are not recorded.
    is_marked: bool,
    /// The MachineDeployment whose rollout was going on.
    rollout: Option<&'static str>,
}

impl Step {
    const fn quiet(folder: &'static str) -> Self {
        Self {
            name: folder,
            folder,
            older: None,
            is_marked: false,
            rollout: None,
        }
    }

    /// The name of a comparison beside the main one.
    fn part(&self, name: &str) -> String {
        format!("{} {name}", self.name)
    }
}

/// Changes over each of the recorded management clusters in `dir`, or that of one step. With `pin`, the values of allowed differences are
/// recorded instead of compared.
pub(crate) fn run(root: &Path, dir: &Path, only: Option<&str>, pin: bool) -> Result<Outcome, String> {
    let read = |name: &str| {
        let path = root.join("xtask").join(name);
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()));
        text.map(|text| (path, text))
    };
    let (_, text) = read("change-over-allow.tsv")?;
    let allowances = diff::parse_allowances(&text).map_err(|error| format!("change-over-allow.tsv: {error}"))?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    for step in STEPS.iter().filter(|step| only.is_none_or(|only| only == step.name)) {
        let differences = runtime.block_on(change_over(dir, step));
        found.extend(differences.map_err(|error| format!("{}: {error}", step.name))?);
    }
    let (path, pinned) = read("change-over-differences.tsv")?;
    let pinned = if pin {
        let text = Pins::of(&found, &allowances).text("change-over");
        fs::write(&path, &text).map_err(|error| format!("{}: {error}", path.display()))?;
        text
    } else {
        pinned
    };
    let pins = Pins::parse(&pinned).map_err(|error| format!("{}: {error}", path.display()))?;
    let names = STEPS
        .iter()
        .flat_map(|step| [step.part("stored"), step.name.to_owned(), step.part("back")]);
    let names: Vec<String> = names.collect();
    let (text, good) = diff::report(&found, &allowances, &pins, &names);
    Ok(Outcome { text, good })
}

fn key() -> Result<PrivateKey, String> {
    keys()
        .take(KeyAlgorithm::Rsa2048)
        .wait()
        .map_err(|error| error.to_string())
}

/// A recorded management cluster.
struct Recorded {
    /// The objects as they are to be stored.
    stored: Vec<Value>,
    /// The same in the newest version.
    newest: Vec<Value>,
    material: Material,
}

fn recorded(dir: &Path, step: &Step) -> Result<Recorded, String> {
    let mut newest = read_folder(&dir.join(step.folder))?;
    if step.is_marked {
        newest = recording::with_marks(newest)?;
    }
    let stored = match step.older {
        Some(older) => recording::in_version(newest.clone(), &read_folder(&dir.join(older))?),
        None => newest.clone(),
    };
    let material = Material::new(&newest, reserved_port(), &key)?;
    Ok(Recorded {
        stored: material.prepared(stored)?,
        newest: material.prepared(newest)?,
        material,
    })
}

async fn change_over(dir: &Path, step: &Step) -> Result<Vec<Difference>, String> {
    anstream::eprintln!("changing over {}", step.name);
    let recorded = recorded(dir, step)?;
    let cloud = Cloud::new();
    let mut env = Env::builder().cloud(&cloud).without_controllers().start().await;
    let result = changed(&mut env, step, &recorded).await;
    env.stop().await;
    cloud.shutdown().await;
    result
}

async fn changed(env: &mut Env, step: &Step, recorded: &Recorded) -> Result<Vec<Difference>, String> {
    let expected = load::load(env.client(), &recorded.stored, &recorded.newest).await?;
    let begun = management(env).await?;
    let mut found = diff::compare(&step.part("stored"), &views(&expected), &views(&begun));

    let infrastructure = Selection::of(&INFRASTRUCTURE).map_err(|error| error.to_string())?;
    env.start_part(&infrastructure, &Faults::none());
    let client = workload::connect(recorded.material.kubeconfig()).await?;
    let machines: Vec<&Value> = begun.iter().filter(|object| object["kind"] == "Machine").collect();
    workload::restore(&client, &machines).await?;
    let workload_before = workload::objects(&client).await?;
    env.stop_controllers().await;

    if step.rollout.is_none() {
        tried(env).await?;
    }

    env.start_controllers(&Faults::none());
    env.looked(&AT_WORK).await;
    env.rest_for(QUIET).await;
    let quiet = management(env).await?;
    let workload_after = workload::objects(&client).await?;
    let machines_made = match step.rollout {
        Some(deployment) => rollout::finished(deployment, &begun, &quiet)?,
        None => 0,
    };
    let compared = |objects: &[Value]| match step.rollout {
        Some(deployment) => rollout::without(deployment, views(objects)),
        None => views(objects),
    };
    found.extend(diff::compare(step.name, &compared(&begun), &compared(&quiet)));
    found.extend(diff::compare(
        step.name,
        &compared(&workload_before),
        &compared(&workload_after),
    ));

    env.stop_controllers().await;
    way_back::apply_as_before(env.client(), &begun, &quiet).await?;
    let migrated = way_back::migrate_made(env.client(), &begun, &quiet).await?;
    if migrated != 2 * machines_made {
        return Err(format!(
            "{migrated} objects were made for {machines_made} new Machines, expected two for each"
        ));
    }
    let back = management(env).await?;
    way_back::patch_freely(env.client(), &back).await?;
    found.extend(diff::compare(&step.part("back"), &compared(&begun), &compared(&back)));
    Ok(found)
}

/// Has `windlass adopt` say what will change: nothing, with the feature gates of Cluster API.
async fn tried(env: &Env) -> Result<(), String> {
    let trial = Trial {
        controllers: Vec::new(),
        gates: FeatureGates::of(&["AllAlpha=false"])?,
        timeout: TIMEOUT,
    };
    let report = adopt(env.client().clone(), &trial)
        .await
        .map_err(|error| error.to_string())?;
    match report.verdict() {
        Verdict::Same => Ok(()),
        _ => Err(format!("the trial of the take-over: {}", adoption::text(&report))),
    }
}

fn views(objects: &[Value]) -> BTreeMap<Role, Flat> {
    objects.iter().map(|object| (named(object), view(object))).collect()
}

/// All objects of our kinds and all Secrets in the namespace of the recorded cluster.
async fn management(env: &Env) -> Result<Vec<Value>, String> {
    let mut found = Vec::new();
    for entry in KINDS {
        let all = env.dynamic(&entry.full_name()).list(&ListParams::default()).await;
        for object in all.map_err(|error| format!("{}: {error}", entry.plural))? {
            let mut object = serde_json::to_value(object).map_err(|error| error.to_string())?;
            object["apiVersion"] = json!(format!("{}/{}", entry.group, entry.version));
            object["kind"] = json!(entry.kind);
            found.push(object);
        }
    }
    let secrets: Api<Secret> = env.api();
    let all = secrets.list(&ListParams::default()).await;
    let is_of_server = |secret: &Secret| secret.metadata.name.as_deref() == Some(windlass_webhook::SECRET_NAME);
    for secret in all.map_err(|error| format!("secrets: {error}"))? {
        if is_of_server(&secret) {
            continue;
        }
        let mut object = serde_json::to_value(secret).map_err(|error| error.to_string())?;
        object["apiVersion"] = json!("v1");
        object["kind"] = json!("Secret");
        found.push(object);
    }
    Ok(found)
}
