//! Measures the store alone: `cargo xtask bench store`. Prints figures and asserts nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use windlass_store::{Change, Draft, Expect, Header, Key, Limits, ListQuery, Store, Write};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error>;

const OBJECT: usize = 4 << 10;
const OBJECTS: usize = 100_000;
const FOLLOWERS: usize = 1_000;

fn draft(number: usize) -> Draft {
    let start = b"{\"apiVersion\":\"example.com/v1\",\"metadata\":{\"resourceVersion\":\"";
    let mut value = start.to_vec();
    value.extend_from_slice(b"\"},\"spec\":{\"text\":\"");
    // All values differ and compress badly.
    let mut state = number as u64 + 1;
    while value.len() < OBJECT - 3 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        value.push(b'a' + u8::try_from((state >> 33) % 26).unwrap_or_default());
    }
    value.extend_from_slice(b"\"}}");
    Draft {
        header: Header {
            uid: format!("00000000-0000-4000-8000-{number:012}").into(),
            ..Header::default()
        },
        value,
        rv_at: u32::try_from(start.len()).unwrap_or_default(),
    }
}

fn write(resource: &Arc<str>, number: usize) -> Write {
    Write {
        key: Key::new(resource, "default", &format!("object-{number:08}")),
        expect: Expect::Absent,
        change: Change::Put(draft(number)),
    }
}

/// Resident memory of this process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or_default()
}

/// The processor time of this process, which does not include other processes.
fn busy() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

fn tell(what: &str, figure: impl std::fmt::Display) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout(), "{what:<44} {figure}");
}

fn spread(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    format!("p50 {:?}, p99 {:?}", at(50), at(99))
}

/// Runs this many writers for a while, each waiting for its answers.
async fn writers(folder: &Path, count: usize, while_: Duration) -> Result<(), Failure> {
    let store = Store::open(folder, Limits::default())?;
    let resource: Arc<str> = format!("things-{count}").into();
    let (started, worked) = (Instant::now(), busy());
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..count {
        let (store, resource) = (store.clone(), Arc::clone(&resource));
        tasks.spawn(async move {
            let mut times = Vec::new();
            while started.elapsed() < while_ {
                let write = write(&resource, writer * 10_000_000 + times.len());
                let sent = Instant::now();
                if store.commit(vec![write]).await.is_err() {
                    break;
                }
                times.push(sent.elapsed());
            }
            times
        });
    }
    let times: Vec<Duration> = tasks.join_all().await.into_iter().flatten().collect();
    let each = busy().saturating_sub(worked) / u32::try_from(times.len().max(1))?;
    let rate = u32::try_from(times.len()).map_or(0.0, f64::from) / started.elapsed().as_secs_f64();
    tell(
        &format!("{count} writers, 4 KiB, synced"),
        format!("{rate:.0}/s, {each:?} of a processor each, {}", spread(times)),
    );
    store.close().await;
    Ok(())
}

/// The cost of syncing on this disk.
fn disk(folder: &Path) -> Result<(), Failure> {
    use std::io::Write as _;
    let mut file = std::fs::File::create(folder.join("raw"))?;
    let bytes = vec![7; OBJECT];
    let mut times = Vec::new();
    for _ in 0..1_000 {
        let started = Instant::now();
        file.write_all(&bytes)?;
        file.sync_data()?;
        times.push(started.elapsed());
    }
    tell("append and sync of 4 KiB, nothing else", spread(times));
    Ok(())
}

async fn many(folder: &Path) -> Result<(), Failure> {
    let resource: Arc<str> = "things".into();
    let empty = resident();
    let store = Store::open(folder, Limits::default())?;
    for start in (0..OBJECTS).step_by(250) {
        let writes = (start..start + 250).map(|number| write(&resource, number)).collect();
        store.commit(writes).await?;
    }
    let each = (resident() - empty) * 1024 / OBJECTS as u64;
    tell(
        "100,000 objects of 4 KiB",
        format!("{} MiB, {each} bytes an object", resident() >> 10),
    );
    let started = Instant::now();
    let query = ListQuery {
        resource: &resource,
        namespace: None,
        after: None,
        at: None,
    };
    let bytes: usize = store.list(&query)?.items.iter().map(|record| record.value.len()).sum();
    tell(
        "a look at all of them",
        format!("{:?} for {} MiB", started.elapsed(), bytes >> 20),
    );
    let mut followers: Vec<_> = (0..FOLLOWERS)
        .map(|_| store.watch(&resource, store.revision()))
        .collect::<Result<_, _>>()?;
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for mut watcher in followers.drain(..) {
        tasks.spawn(async move {
            watcher.changed().await;
            watcher.take().map(|events| events.len())
        });
    }
    store.commit(vec![write(&resource, OBJECTS)]).await?;
    tasks.join_all().await;
    tell("one change to 1,000 followers", format!("{:?}", started.elapsed()));
    store.close().await;
    drop(store);
    let (started, worked) = (Instant::now(), busy());
    let store = Store::open(folder, Limits::default())?;
    tell(
        "open with 100,000 objects",
        format!(
            "{:?}, {:?} of a processor",
            started.elapsed(),
            busy().saturating_sub(worked)
        ),
    );
    store.close().await;
    Ok(())
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let folder = std::env::args_os().nth(1).map(std::path::PathBuf::from);
    let folder = tempfile::tempdir_in(folder.unwrap_or_else(std::env::temp_dir))?;
    disk(folder.path())?;
    for count in [1, 8, 32] {
        writers(&folder.path().join("writers"), count, Duration::from_secs(3)).await?;
    }
    many(&folder.path().join("many")).await
}
