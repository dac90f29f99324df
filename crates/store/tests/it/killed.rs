//! Acknowledged writes survive a killed process and a full disk.
//!
//! The test runs itself as a child process, which writes and reports acknowledged writes, and kills it in the middle.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use windlass_store::{Limits, Store};

use crate::support::{set, text, things};

const CHILD: &str = "WINDLASS_STORE_TEST_CHILD";
const PER_ROUND: usize = 40;

/// The child process; without the variable this test does nothing.
#[test]
fn child_writes_until_it_is_killed() {
    let Ok(folder) = std::env::var(CHILD) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = Store::open(Path::new(&folder), Limits::default()).unwrap();
        let first = store.count(&things());
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..4 {
            let store = store.clone();
            writers.spawn(async move {
                for i in 0_usize.. {
                    let name = format!("w{writer}-{first}-{i}");
                    set(&store, &name, &name).await.unwrap();
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "answered {name}").unwrap();
                    out.flush().unwrap();
                }
            });
        }
        while writers.join_next().await.is_some() {}
    });
}

#[tokio::test]
async fn what_was_answered_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut answered: Vec<String> = Vec::new();
    let rounds: usize = std::env::var("WINDLASS_CRASH_ROUNDS").map_or(5, |n| n.parse().unwrap());
    for _ in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["killed::child_writes_until_it_is_killed", "--exact", "--nocapture"])
            .env(CHILD, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = 0;
        for line in lines.map_while(Result::ok) {
            if let Some((_, name)) = line.split_once("answered ") {
                answered.push(name.to_owned());
                seen += 1;
                if seen == PER_ROUND {
                    child.kill().unwrap();
                }
            }
        }
        child.wait().unwrap();
        assert!(seen >= PER_ROUND);
        let store = Store::open(folder.path(), Limits::default()).unwrap();
        for name in &answered {
            let record = store
                .get(&things(), "ns", name)
                .unwrap_or_else(|| panic!("{name} was answered, and is gone"));
            assert!(text(&record).contains(name.as_str()));
        }
        store.close().await;
    }
}

const LIMITED: &str = "WINDLASS_STORE_TEST_LIMITED";

/// The child process with a file size limit: writes until the disk is full; then continues to read.
#[test]
fn child_writes_until_the_disk_takes_no_more() {
    let Ok(folder) = std::env::var(LIMITED) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(Path::new(&folder), Limits::default()).unwrap();
        let filler = "x".repeat(100_000);
        let mut stored = 0;
        let error = loop {
            match set(&store, &format!("o{stored}"), &filler).await {
                Ok(_) => stored += 1,
                Err(error) => break error,
            }
        };
        let words = error.to_string();
        assert!(words.contains("cannot be written"), "{words}");
        // Failed writes are absent, acknowledged ones are present, and further ones are refused in the same way.
        assert!(store.get(&things(), "ns", &format!("o{stored}")).is_none());
        assert_eq!(store.count(&things()), stored);
        assert!(set(&store, "again", &filler).await.is_err());
        let mut out = std::io::stdout().lock();
        writeln!(out, "stored {stored} of").unwrap();
    });
}

#[tokio::test]
async fn a_disk_that_takes_no_more_is_an_error_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // The shell limits the size of files, and ignores the signal that would end the child.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8000; exec \"$0\" killed::child_writes_until_the_disk_takes_no_more --exact --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .env(LIMITED, folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, rest) = said
        .split_once("stored ")
        .unwrap_or_else(|| panic!("{said} {}", String::from_utf8_lossy(&output.stderr)));
    let stored: usize = rest.split(' ').next().unwrap().parse().unwrap();
    assert!(stored > 0);
    let store = Store::open(folder.path(), Limits::default()).unwrap();
    assert_eq!(store.count(&things()), stored);
    set(&store, "more", "x").await.unwrap();
}
