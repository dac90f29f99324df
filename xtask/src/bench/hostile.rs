//! `cargo xtask bench hostile`: requests that are made to cost much, by users with and without rights, while a prober asks whether the
//! server is ready. Fails if the server is slow to say so, or takes much memory.

mod requests;
mod world;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use self::requests::{Class, Sent};
use self::world::World;
use super::{build, say};

/// The interval of questions to `/readyz`.
const PACE: Duration = Duration::from_millis(50);
/// The limit of the 99th percentile of answers of `/readyz`.
const SLOWEST: Duration = Duration::from_millis(200);
/// The limit of the server's memory, in MiB.
const MEMORY: f64 = 1024.0;
/// Connections that send the beginning of a handshake and no more.
const HALF_OPEN: usize = 800;
/// How long connections and watches stay open.
const OPEN: Duration = Duration::from_secs(3);

/// Options of `bench hostile`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Requests of each class
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..))]
    requests: u32,
    /// Only these classes
    #[arg(long, value_enum, value_name = "CLASS", value_delimiter = ',')]
    only: Vec<Class>,
}

/// The durations of answers of `/readyz` in milliseconds, sorted, and how many answers were wrong.
#[derive(Default)]
struct Ready {
    took: Vec<f64>,
    wrong: usize,
}

impl Ready {
    fn add(&mut self, other: &Self) {
        self.took.extend(&other.took);
        self.took.sort_by(f64::total_cmp);
        self.wrong += other.wrong;
    }

    fn p99(&self) -> f64 {
        let place = (self.took.len() * 99).div_ceil(100).saturating_sub(1);
        self.took.get(place).copied().unwrap_or(f64::NAN)
    }

    fn max(&self) -> f64 {
        self.took.last().copied().unwrap_or(f64::NAN)
    }
}

/// Measures and prints. Returns false if a limit is exceeded.
pub(crate) fn run(root: &Path, options: &Options) -> Result<bool, String> {
    let program = build(root, &["windlass"])?.join("windlass");
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let world = runtime.block_on(World::start(&program))?;
    let mut all = Ready::default();
    print_row("class", "seconds", "p99 ms", "max ms", "MiB", "answers");
    let mut phases: Vec<Vec<Class>> = Class::ALL.iter().map(|class| vec![*class]).collect();
    phases.push(Class::ALL.to_vec());
    if !options.only.is_empty() {
        phases = options.only.iter().map(|class| vec![*class]).collect();
    }
    for classes in phases {
        let name = match classes.as_slice() {
            [class] => class.name(),
            _ => "all at once".to_owned(),
        };
        say(&name);
        let begun = Instant::now();
        let mut codes = BTreeMap::new();
        let ready = while_probed(&world, || {
            runtime.block_on(attack(&world, &classes, options.requests, &mut codes))
        })?;
        let codes: Vec<String> = codes.iter().map(|(code, count)| format!("{count}x {code}")).collect();
        print_row(
            &name,
            &format!("{:.1}", begun.elapsed().as_secs_f64()),
            &format!("{:.1}", ready.p99()),
            &format!("{:.1}", ready.max()),
            &format!("{:.0}", world.peak_memory()?),
            &codes.join(", "),
        );
        all.add(&ready);
    }
    let memory = world.peak_memory()?;
    anstream::println!(
        "/readyz: {} answers, {} wrong, p99 {:.1} ms (limit {}), max {:.1} ms; peak memory {memory:.0} MiB (limit {MEMORY})",
        all.took.len(),
        all.wrong,
        all.p99(),
        SLOWEST.as_millis(),
        all.max()
    );
    let is_fast = all.p99() <= SLOWEST.as_secs_f64() * 1e3;
    Ok(is_fast && all.wrong == 0 && memory <= MEMORY)
}

fn print_row(class: &str, seconds: &str, p99: &str, max: &str, memory: &str, answers: &str) {
    anstream::println!("{class:<24} {seconds:>8} {p99:>8} {max:>8} {memory:>6}  {answers}");
}

/// Runs something while a thread of its own asks `/readyz`.
fn while_probed(world: &World, work: impl FnOnce() -> Result<(), String>) -> Result<Ready, String> {
    let running = Arc::new(AtomicBool::new(true));
    let (still, access) = (Arc::clone(&running), world.access());
    let prober = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        runtime.block_on(async {
            let client = access.client("prober").await?;
            let mut ready = Ready::default();
            while still.load(Ordering::Relaxed) {
                let begun = Instant::now();
                let request = http::Request::get("/readyz")
                    .body(Vec::new())
                    .map_err(|error| error.to_string())?;
                let answer = client.request_text(request).await;
                ready.took.push(begun.elapsed().as_secs_f64() * 1e3);
                ready.wrong += usize::from(!answer.is_ok_and(|text| text == "ok"));
                tokio::time::sleep(PACE.saturating_sub(begun.elapsed())).await;
            }
            ready.took.sort_by(f64::total_cmp);
            Ok::<Ready, String>(ready)
        })
    });
    let done = work();
    running.store(false, Ordering::Relaxed);
    let ready = prober.join().map_err(|_| "the prober was lost".to_owned())??;
    done.map(|()| ready)
}

/// Sends all requests of some classes at once, and counts the answers by code.
async fn attack(
    world: &World,
    classes: &[Class],
    count: u32,
    codes: &mut BTreeMap<String, usize>,
) -> Result<(), String> {
    let mut tasks = JoinSet::new();
    for class in classes {
        if *class == Class::HalfOpen {
            let address = world.address.clone();
            tasks.spawn(async move { half_open(&address).await });
            continue;
        }
        for number in 0..class.count(count) {
            let (user, request) = class.request(number);
            let client = world.access().client(&user).await?;
            let stays = *class == Class::Watches;
            tasks.spawn(async move { send(&client, request, stays).await });
        }
    }
    while let Some(done) = tasks.join_next().await {
        let code = done.map_err(|error| error.to_string())?;
        *codes.entry(code).or_default() += 1;
    }
    Ok(())
}

/// Sends a request and reads the answer. A watch stays open for a while.
async fn send(client: &Client, request: Sent, stays: bool) -> String {
    match client.send(request.map(Body::from)).await {
        Ok(answer) => {
            let code = answer.status().as_u16().to_string();
            let read = answer.into_body().collect();
            if stays {
                let _ = tokio::time::timeout(OPEN, read).await;
            } else if read.await.is_err() {
                return "cut off".to_owned();
            }
            code
        }
        Err(_) => "no answer".to_owned(),
    }
}

/// Opens connections that send the beginning of a handshake.
async fn half_open(address: &str) -> String {
    let mut open = Vec::new();
    for _ in 0..HALF_OPEN {
        let Ok(stream) = TcpStream::connect(address).await else {
            return "refused".to_owned();
        };
        // An error is as good: the server has closed it.
        let _ = stream.try_write(&[0x16, 0x03, 0x01]);
        open.push(stream);
    }
    tokio::time::sleep(OPEN).await;
    "opened".to_owned()
}
