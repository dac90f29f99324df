//! Processes with a part of the controllers (`--controllers`): they ask for the kinds of that part alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use windlass_controller_runtime::{Metrics, transport};
use windlass_manager::registry::controllers::CONTROLLERS;
use windlass_manager::registry::kinds::{KINDS, KindEntry};
use windlass_manager::{Fetcher, Helming, Running, Selection, controllers, network};
use windlass_testkit::faults::Faults;
use windlass_testkit::{Kind, Server, wait};

/// The paths that a process reads.
#[derive(Clone, Default)]
struct Reads(Arc<Mutex<BTreeSet<String>>>);

impl Reads {
    /// Starts a part of the controllers on a server, and listens to it.
    fn start(&self, server: &Server, selection: &Selection) -> Running {
        let reads = self.0.clone();
        let listening = Faults::when(move |request| {
            let path = request.path.split('?').next().unwrap_or_default();
            reads.lock().insert(path.to_owned());
            None
        });
        let metrics = Metrics::new();
        let client = transport::in_process(listening.wrap(server.service("part")), &metrics);
        controllers::start(client, metrics, selection, &Fetcher::default(), &Helming::default())
    }

    /// The kinds of ours that were read, by their names.
    fn kinds(&self) -> BTreeSet<String> {
        let reads = self.0.lock();
        let is_read = |entry: &&KindEntry| {
            let all = format!("/apis/{}/{}/{}", entry.group, entry.version, entry.plural);
            reads
                .iter()
                .any(|path| *path == all || path.starts_with(&format!("{all}/")))
        };
        KINDS.iter().filter(is_read).map(KindEntry::full_name).collect()
    }
}

/// What is only written, and templates, which are read where an object refers to one.
fn is_not_watched(name: &str) -> bool {
    name.contains("Template.") || name == "Provider.clusterctl.cluster.x-k8s.io"
}

/// Waits until a process has listed all that it watches, and asked for all these kinds. Returns those that it never asks for.
async fn listed(running: &Running, reads: &Reads, own: &BTreeSet<String>) -> Vec<String> {
    let mut looks = wait::looks();
    let unread = || -> Vec<String> {
        let read = reads.kinds();
        let unread = own.difference(&read).filter(|name| !is_not_watched(name));
        unread.cloned().collect()
    };
    let all = tokio::time::timeout(wait::TIMEOUT, async {
        while running.kit().ready().is_err() || !unread().is_empty() {
            looks.tick().await;
        }
    });
    // Without all of them, the caller reports which are missing.
    let _ = all.await;
    assert_eq!(running.kit().ready(), Ok(()));
    unread()
}

fn names(entries: &[&KindEntry]) -> BTreeSet<String> {
    entries.iter().map(|entry| entry.full_name()).collect()
}

// Each controller alone.
#[tokio::test(flavor = "multi_thread")]
async fn each_controller_asks_for_its_kinds_alone() {
    if Kind::leaves_out(&[Kind::Embedded], "what a process asks is the same on every server") {
        return;
    }
    let mut wrong = Vec::new();
    // Those of declared providers are all the same.
    let is_repeated = |name: &str| name != "operator/coreprovider";
    // It reads objects of the definitions that are there, once for each generation, and needs none of them.
    let reads_what_is_there = |name: &str| name == "crdmigrator";
    let parts = CONTROLLERS
        .iter()
        .filter(|info| !reads_what_is_there(info.name))
        .filter(|info| !info.is_of_operator() || !is_repeated(info.name));
    let server = Server::with_definitions().await;
    for info in parts {
        let selection = Selection::of(&[info.name]).unwrap();
        let (reads, own) = (Reads::default(), names(&selection.kinds()));
        let running = reads.start(&server, &selection);
        let unread = listed(&running, &reads, &own).await;
        let read = reads.kinds();
        let others: Vec<_> = read.difference(&own).collect();
        if !others.is_empty() || !unread.is_empty() {
            wrong.push(format!("{} asks for {others:?}, and never for {unread:?}", info.name));
        }
        running.shutdown().await;
    }
    server.stop().await;
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_names_only_definitions_of_its_own_part() {
    let server = Server::start().await;
    let admin = server.client("admin");
    let missing = async |names: &[&str]| {
        let wanted = Selection::of(names).unwrap().definitions();
        network::definitions(&admin, &wanted, false)
            .await
            .unwrap_err()
            .to_string()
    };
    let text = missing(&["devippool"]).await;
    assert!(text.starts_with("4 CustomResourceDefinitions are missing"), "{text}");
    for name in ["clusters", "devippools", "ipaddresses", "ipaddressclaims"] {
        assert!(text.contains(&format!("{name}.")), "{name}: {text}");
    }
    let text = missing(&["operator/coreprovider"]).await;
    assert!(!text.contains("machines.cluster.x-k8s.io"), "{text}");
    server.stop().await;
}
