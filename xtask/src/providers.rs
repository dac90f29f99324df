//! `cargo xtask providers FOLDER`: the operator with the files of real providers.
//!
//! Each provider in the folder is fetched from a server on loopback and installed into a separate API server (embedded, or the
//! one in `WINDLASS_TEST_SERVER`). Then it is reconciled again (without any write), damaged (everything must be restored),
//! upgraded to the same release under another version, and removed (only definitions and the namespace may be left).

pub(crate) mod declare;
pub(crate) mod files;
mod objects;
mod stage;
pub(crate) mod web;

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use self::files::Release;
use self::stage::Stage;
pub(crate) use self::stage::operators;
use self::web::Web;

/// The timeout of a repair.
const REPAIR: Duration = Duration::from_mins(1);

/// The outcome: the text to print, and whether it succeeded.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The report.
    pub(crate) text: String,
    /// Whether all checks succeeded.
    pub(crate) good: bool,
}

/// The result for a provider.
#[derive(Debug)]
struct Row {
    label: String,
    objects: usize,
    install: Duration,
    repair: Duration,
    upgrade: Duration,
    remove: Duration,
}

/// Runs all providers of a folder.
pub(crate) fn run(dir: &Path) -> Result<Outcome, String> {
    let releases = files::read(dir)?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    runtime.block_on(play(&releases))
}

async fn play(releases: &[Release]) -> Result<Outcome, String> {
    let mut later = Vec::new();
    for release in releases {
        later.push(release.renamed()?);
    }
    let web = Web::serve(releases.iter().chain(&later)).await?;
    let stage = Stage::start().await?;
    let mut rows: Vec<Row> = Vec::new();
    let mut problems = Vec::new();
    for release in releases {
        let started = Instant::now();
        declare::declare(&stage.client, release, &web.url(release)).await?;
        declare::installed(&stage.client, release).await?;
        let objects = objects::of(&stage.client, &release.label()).await?;
        rows.push(Row {
            label: release.label(),
            objects: objects.len(),
            install: started.elapsed(),
            repair: Duration::ZERO,
            upgrade: Duration::ZERO,
            remove: Duration::ZERO,
        });
    }
    for (release, row) in releases.iter().zip(&mut rows) {
        problems.extend(again(&stage, release).await?);
        row.repair = repaired(&stage, release, &mut problems).await?;
    }
    for (next, row) in later.iter().zip(&mut rows) {
        let started = Instant::now();
        declare::declare(&stage.client, next, &web.url(next)).await?;
        declare::installed(&stage.client, next).await?;
        row.upgrade = started.elapsed();
        problems.extend(again(&stage, next).await?);
    }
    for (next, row) in later.iter().zip(&mut rows).rev() {
        let started = Instant::now();
        declare::remove(&stage.client, next).await?;
        row.remove = started.elapsed();
        let left = objects::leftovers(&objects::of(&stage.client, &next.label()).await?);
        problems.extend(left.iter().map(|left| format!("{}: {left} is left", row.label)));
    }
    stage.stop().await;
    Ok(Outcome {
        text: report(&rows, &problems),
        good: problems.is_empty(),
    })
}

/// Makes the operator reconcile again. Returns its changes.
async fn again(stage: &Stage, release: &Release) -> Result<Vec<String>, String> {
    let label = release.label();
    let before = objects::versions(&objects::of(&stage.client, &label).await?);
    stage.prod(release).await?;
    let after = objects::versions(&objects::of(&stage.client, &label).await?);
    let changed = before
        .keys()
        .chain(after.keys())
        .filter(|key| before.get(*key) != after.get(*key));
    let mut changed: Vec<String> = changed
        .map(|key| format!("{label}: {key} was written without a reason"))
        .collect();
    changed.sort();
    changed.dedup();
    Ok(changed)
}

/// Damages objects, and waits until they are restored.
async fn repaired(stage: &Stage, release: &Release, problems: &mut Vec<String>) -> Result<Duration, String> {
    let label = release.label();
    let stored = objects::of(&stage.client, &label).await?;
    let wanted = objects::content(&stored);
    let started = Instant::now();
    objects::spoil(&stage.client, &stored).await?;
    loop {
        let found = objects::content(&objects::of(&stage.client, &label).await?);
        if found == wanted {
            return Ok(started.elapsed());
        }
        if started.elapsed() > REPAIR {
            let other = wanted.iter().filter(|(key, object)| found.get(*key) != Some(*object));
            problems.extend(other.map(|(key, _)| format!("{label}: {} does not come back", objects::shown(key))));
            return Ok(started.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn report(rows: &[Row], problems: &[String]) -> String {
    let mut text = format!(
        "{:<28} {:>7} {:>9} {:>9} {:>9} {:>9}\n",
        "provider", "objects", "install", "repair", "upgrade", "remove"
    );
    let mut line = |name: &str, objects: usize, times: [Duration; 4]| {
        let times = times.map(|time| format!("{:>7.2} s", time.as_secs_f64())).join(" ");
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{name:<28} {objects:>7} {times}");
    };
    for row in rows {
        line(
            &row.label,
            row.objects,
            [row.install, row.repair, row.upgrade, row.remove],
        );
    }
    let sum = |of: fn(&Row) -> Duration| rows.iter().map(of).sum();
    let objects = rows.iter().map(|row| row.objects).sum();
    let times = [
        sum(|r| r.install),
        sum(|r| r.repair),
        sum(|r| r.upgrade),
        sum(|r| r.remove),
    ];
    line("all", objects, times);
    for problem in problems {
        let _ = writeln!(text, "{problem}");
    }
    text
}
