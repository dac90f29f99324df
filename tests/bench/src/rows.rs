//! The rows of the table: operations and measurements.

use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::ValueEnum;
use http::Method;
use http_body_util::BodyExt as _;
use tokio::sync::mpsc;

use crate::item::{ITEMS, item, path};
use crate::load::{self, Work};
use crate::subject::Subject;
use crate::table::{Table, Unit};

/// A row, or a few related rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Row {
    /// From start to ready
    Start,
    /// Writes and reads with 32 clients
    Many,
    /// Writes and reads with one client
    One,
    /// One change to 1,000 watchers
    Watch,
    /// A list of 10,000 objects
    List,
    /// Memory with 100,000 objects
    Memory,
}

impl Row {
    pub(crate) const ALL: [Self; 6] = [
        Self::Start,
        Self::Many,
        Self::One,
        Self::Watch,
        Self::List,
        Self::Memory,
    ];
}

/// The amounts of everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) warm: Duration,
    pub(crate) time: Duration,
    pub(crate) watchers: usize,
    pub(crate) list: u64,
    pub(crate) objects: u64,
}

/// Measures the rows on a server that has just started, in the order in which they disturb each other least.
pub(crate) async fn measure(subject: &Subject, rows: &[Row], scale: Scale, into: &mut Table) -> Result<(), String> {
    for row in Row::ALL.iter().filter(|row| rows.contains(row)) {
        match row {
            Row::Start => into.add("start to ready", Unit::Seconds, None, subject.start.as_secs_f64()),
            Row::Many => work(subject, 32, scale, into).await?,
            Row::One => work(subject, 1, scale, into).await?,
            Row::Watch => watch(subject, scale, into).await?,
            Row::List => list(subject, scale, into).await?,
            Row::Memory => memory(subject, scale, into).await?,
        }
    }
    Ok(())
}

async fn work(subject: &Subject, clients: u64, scale: Scale, into: &mut Table) -> Result<(), String> {
    for work in Work::ALL {
        let tag = format!("{}-{clients}", work.name());
        let (_, before) = subject.usage();
        let outcome = load::run(&subject.access, work, clients, &tag, scale.warm, scale.time).await?;
        let (_, after) = subject.usage();
        let title = format!(
            "{}, {clients} client{}",
            work.name(),
            if clients == 1 { "" } else { "s" }
        );
        let (rate, tail) = if clients == 1 {
            (1.0, None)
        } else {
            (3.0, (work != Work::Get).then_some(3.0))
        };
        into.add(
            &format!("{title}: throughput"),
            Unit::PerSecond,
            Some(rate),
            outcome.rate,
        );
        into.add(&format!("{title}: p99"), Unit::Milliseconds, tail, outcome.p99 * 1e3);
        into.add(
            &format!("{title}: median"),
            Unit::Milliseconds,
            None,
            outcome.median * 1e3,
        );
        let cpu = after.saturating_sub(before).as_secs_f64() / (scale.warm + scale.time).as_secs_f64() / outcome.rate;
        into.add(
            &format!("{title}: processor time of the server for each"),
            Unit::Milliseconds,
            None,
            cpu * 1e3,
        );
    }
    Ok(())
}

/// The number of watches per connection.
const STREAMS: usize = 50;
/// The number of watched changes.
const CHANGES: u64 = 100;

async fn watch(subject: &Subject, scale: Scale, into: &mut Table) -> Result<(), String> {
    let mut writer = subject.access.connect().await?;
    writer
        .send(Method::POST, ITEMS, "application/json", item("watched", 0, None))
        .await?;
    let (sender, mut seen) = mpsc::unbounded_channel();
    let to = format!("{ITEMS}?watch=1&fieldSelector=metadata.name%3Dwatched");
    let mut open = 0;
    while open < scale.watchers {
        let mut connection = subject.access.connect().await?;
        for _ in 0..STREAMS.min(scale.watchers - open) {
            let response = connection
                .start(Method::GET, &to, "application/json", Bytes::new())
                .await?;
            let sender = sender.clone();
            tokio::spawn(async move {
                let mut body = response.into_body();
                let mut ended = false;
                while let Some(Ok(frame)) = body.frame().await {
                    // Events end with a line end; an event may arrive in parts.
                    let Ok(data) = frame.into_data() else { continue };
                    let mut lines = memchr::memchr_iter(b'\n', &data);
                    ended |= lines.any(|_| sender.send(()).is_err());
                    if ended {
                        return;
                    }
                }
            });
            open += 1;
        }
    }
    // Each watch begins with the current object.
    let all = async |seen: &mut mpsc::UnboundedReceiver<()>| {
        for _ in 0..scale.watchers {
            let next = tokio::time::timeout(Duration::from_mins(1), seen.recv()).await;
            next.map_err(|_| "a watcher saw nothing".to_owned())?
                .ok_or("watches ended")?;
        }
        Ok::<(), String>(())
    };
    all(&mut seen).await?;
    let mut took = Vec::new();
    let (_, before) = subject.usage();
    for count in 1..=CHANGES {
        let begun = Instant::now();
        let body = Bytes::from(format!("{{\"spec\":{{\"count\":{count}}}}}"));
        writer
            .send(Method::PATCH, &path("watched"), "application/merge-patch+json", body)
            .await?;
        all(&mut seen).await?;
        took.push(begun.elapsed().as_secs_f64());
    }
    let (_, after) = subject.usage();
    took.sort_by(f64::total_cmp);
    let title = format!("one change to {} watchers", scale.watchers);
    into.add(
        &format!("{title}, until the last has it"),
        Unit::Milliseconds,
        Some(5.0),
        took[took.len() / 2] * 1e3,
    );
    // The client's share of the time is the same for both.
    #[expect(clippy::cast_precision_loss, reason = "a hundred")]
    let each = after.saturating_sub(before).as_secs_f64() / took.len() as f64;
    into.add(
        &format!("{title}: processor time of the server"),
        Unit::Milliseconds,
        None,
        each * 1e3,
    );
    Ok(())
}

async fn list(subject: &Subject, scale: Scale, into: &mut Table) -> Result<(), String> {
    let mut connection = subject.access.connect().await?;
    let namespace = Bytes::from_static(br#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"listed"}}"#);
    connection
        .send(Method::POST, "/api/v1/namespaces", "application/json", namespace)
        .await?;
    let to = ITEMS.replace("default", "listed");
    load::fill(&subject.access, &to, "listed", scale.list).await?;
    let mut took = Vec::new();
    for _ in 0..5 {
        let begun = Instant::now();
        connection.drain(&to).await?;
        took.push(begun.elapsed().as_secs_f64());
    }
    took.sort_by(f64::total_cmp);
    into.add(
        &format!("list of {} objects", scale.list),
        Unit::Milliseconds,
        Some(5.0),
        took[took.len() / 2] * 1e3,
    );
    Ok(())
}

async fn memory(subject: &Subject, scale: Scale, into: &mut Table) -> Result<(), String> {
    let begun = Instant::now();
    load::fill(&subject.access, ITEMS, "kept", scale.objects).await?;
    into.add(
        &format!("creating {} objects", scale.objects),
        Unit::Seconds,
        None,
        begun.elapsed().as_secs_f64(),
    );
    let (memory, _) = subject.usage();
    #[expect(clippy::cast_precision_loss, reason = "megabytes")]
    let mebibytes = memory as f64 / 1_048_576.0;
    into.add(
        &format!("memory with {} objects", scale.objects),
        Unit::Mebibytes,
        Some(3.0),
        mebibytes,
    );
    Ok(())
}
