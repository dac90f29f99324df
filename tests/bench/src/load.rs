//! Many clients with the same load, and the duration of each response.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use tokio::task::JoinSet;

use crate::client::{Access, Connection};
use crate::item::{ITEMS, item, path, version};

/// The repeated operation of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Create,
    Update,
    Patch,
    Apply,
    Get,
}

impl Work {
    pub(crate) const ALL: [Self; 5] = [Self::Create, Self::Update, Self::Patch, Self::Apply, Self::Get];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Apply => "apply",
            Self::Get => "get",
        }
    }
}

/// The result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// Responses per second.
    pub(crate) rate: f64,
    /// The median duration, in seconds.
    pub(crate) median: f64,
    /// The 99th percentile of durations, in seconds.
    pub(crate) p99: f64,
}

/// The number of each client's own objects.
const OWN: u64 = 8;

/// Runs clients, each over its own connection, and measures after a warm-up.
pub(crate) async fn run(
    access: &Access,
    work: Work,
    clients: u64,
    tag: &str,
    warm: Duration,
    time: Duration,
) -> Result<Outcome, String> {
    let mut tasks = JoinSet::new();
    let mut workers = Vec::new();
    for client in 0..clients {
        let mut worker = Worker {
            connection: access.connect().await?,
            prefix: format!("{tag}-{client}"),
            versions: Vec::new(),
            count: 0,
        };
        worker.prepare(work).await?;
        workers.push(worker);
    }
    let begin = Instant::now() + warm;
    let end = begin + time;
    for mut worker in workers {
        tasks.spawn(async move {
            let mut took = Vec::with_capacity(1 << 14);
            loop {
                let started = Instant::now();
                if started >= end {
                    return Ok::<_, String>(took);
                }
                worker.once(work).await?;
                if started >= begin {
                    took.push(started.elapsed());
                }
            }
        });
    }
    let mut took = Vec::new();
    while let Some(done) = tasks.join_next().await {
        took.extend(done.map_err(|e| e.to_string())??);
    }
    took.sort_unstable();
    let at = |share: f64| {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a place in a list"
        )]
        let place = (took.len() as f64 * share) as usize;
        took.get(place).map_or(f64::NAN, Duration::as_secs_f64)
    };
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let rate = took.len() as f64 / time.as_secs_f64();
    Ok(Outcome {
        rate,
        median: at(0.5),
        p99: at(0.99),
    })
}

struct Worker {
    connection: Connection,
    prefix: String,
    versions: Vec<String>,
    count: u64,
}

impl Worker {
    fn name(&self, at: u64) -> String {
        format!("{}-{at}", self.prefix)
    }

    /// Creates the objects for the operation.
    async fn prepare(&mut self, work: Work) -> Result<(), String> {
        if work == Work::Create {
            return Ok(());
        }
        for at in 0..OWN {
            let name = self.name(at);
            let answer = if work == Work::Apply {
                let to = format!("{}?fieldManager=bench", path(&name));
                self.connection
                    .send(Method::PATCH, &to, "application/apply-patch+yaml", item(&name, 0, None))
                    .await?
            } else {
                self.connection
                    .send(Method::POST, ITEMS, "application/json", item(&name, 0, None))
                    .await?
            };
            self.versions
                .push(version(&answer).ok_or("an answer without resourceVersion")?);
        }
        Ok(())
    }

    async fn once(&mut self, work: Work) -> Result<(), String> {
        self.count += 1;
        let (count, own) = (self.count, self.count % OWN);
        let name = self.name(if work == Work::Create { count } else { own });
        #[expect(clippy::cast_possible_truncation, reason = "one of eight")]
        let slot = own as usize;
        match work {
            Work::Create => {
                self.connection
                    .send(Method::POST, ITEMS, "application/json", item(&name, count, None))
                    .await?;
            }
            Work::Update => {
                let body = item(&name, count, self.versions.get(slot).map(String::as_str));
                let answer = self
                    .connection
                    .send(Method::PUT, &path(&name), "application/json", body)
                    .await?;
                self.versions[slot] = version(&answer).ok_or("an answer without resourceVersion")?;
            }
            Work::Patch => {
                let body = Bytes::from(format!("{{\"spec\":{{\"count\":{count}}}}}"));
                self.connection
                    .send(Method::PATCH, &path(&name), "application/merge-patch+json", body)
                    .await?;
            }
            Work::Apply => {
                let to = format!("{}?fieldManager=bench", path(&name));
                let body = item(&name, count, None);
                self.connection
                    .send(Method::PATCH, &to, "application/apply-patch+yaml", body)
                    .await?;
            }
            Work::Get => {
                self.connection
                    .send(Method::GET, &path(&name), "application/json", Bytes::new())
                    .await?;
            }
        }
        Ok(())
    }
}

/// Creates items up to a number.
pub(crate) async fn fill(access: &Access, items: &str, tag: &str, count: u64) -> Result<(), String> {
    const CLIENTS: usize = 32;
    let mut tasks = JoinSet::new();
    for client in (0..count).take(CLIENTS) {
        let mut connection = access.connect().await?;
        let (items, tag) = (items.to_owned(), tag.to_owned());
        tasks.spawn(async move {
            for at in (client..count).step_by(CLIENTS) {
                let name = format!("{tag}-{at}");
                connection
                    .send(Method::POST, &items, "application/json", item(&name, at, None))
                    .await?;
            }
            Ok::<_, String>(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.map_err(|e| e.to_string())??;
    }
    Ok(())
}
