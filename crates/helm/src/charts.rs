//! The chart cache: each chart is resolved and fetched once for all callers.
//!
//! Concurrent callers with the same chart wait for one of them to fetch it, and share its result, also an error. Lists of
//! versions (the index of a repository) are shared by all charts of a repository. Archives are stored by their digest, and
//! verified before reuse, because other programs may clean up temporary folders.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::{Mutex as Turn, RwLock};

use crate::address::{Address, NAME, Sort, digest};
use crate::blame::Asked;
use crate::flags::text;
use crate::helm::{Call, Helm, file};
use crate::home::CallFolder;
use crate::version::Version;
use crate::words::Mask;
use crate::{Chart, ChartSource, Freshness, HelmError, Kind};

/// After this time, an unused chart or index is dropped if there are many.
const FORGOTTEN: Duration = Duration::from_hours(24);
const MANY: usize = 128;
/// A constraint that no version matches: with it, helm's error is about the list alone.
const NO_VERSION: &str = "<0.0.0-0";

/// Fetched and pending entries.
#[derive(Debug, Default)]
pub(crate) struct Charts {
    slots: Mutex<HashMap<String, Entry<Turn<Slot>>>>,
    repositories: Mutex<HashMap<String, Entry<RwLock<Index>>>>,
}

#[derive(Debug)]
struct Entry<T> {
    used: Instant,
    what: Arc<T>,
}

/// A chart from one source.
#[derive(Debug, Default)]
struct Slot {
    found: Option<Found>,
    /// The last attempt, if it failed.
    failed: Option<(Instant, HelmError)>,
}

#[derive(Clone, Debug)]
struct Found {
    chart: Chart,
    /// When the list was read that contains the version.
    read: Instant,
    /// The digest of the index.
    list: Option<String>,
}

/// The index of a repository.
#[derive(Debug, Default)]
struct Index {
    read: Option<Instant>,
    digest: String,
}

/// The fetching call and its waiters.
struct Fetch<'a> {
    helm: &'a Helm,
    program: PathBuf,
    version: Version,
    address: Address<'a>,
    mask: Mask,
}

/// The files of a call.
struct Files {
    folder: CallFolder,
    flags: Vec<String>,
}

impl Freshness {
    /// Whether a list that was read at `read` is fresh enough for a call that began at `began`.
    fn allows(self, read: Instant, began: Instant) -> bool {
        match self {
            Self::Any => true,
            Self::Within(age) => began.saturating_duration_since(read) <= age,
            Self::Now => read >= began,
        }
    }
}

/// Finds and fetches a chart.
pub(crate) async fn chart(helm: &Helm, source: &ChartSource, fresh: Freshness) -> Result<Chart, HelmError> {
    let began = Instant::now();
    let address = Address::new(source)?;
    let fresh = if source.is_exact() { Freshness::Any } else { fresh };
    let slot = entry(&helm.charts().slots, &address.chart_key());
    let mut slot = slot.lock().await;
    if let Some(found) = &slot.found
        && fresh.allows(found.read, began)
        && is_intact(&found.chart).await
    {
        return Ok(found.chart.clone());
    }
    if let Some((at, error)) = &slot.failed
        && *at >= began
    {
        return Err(error.clone());
    }
    let mut mask = Mask::default();
    address.hide(&mut mask);
    let fetched = async {
        let (program, version) = helm.ready().await?;
        let fetch = Fetch {
            helm,
            program,
            version,
            address,
            mask,
        };
        match fetch.address.sort {
            Sort::Index => fetch.of_index(fresh, began, slot.found.as_ref()).await,
            Sort::Registry => fetch.of_registry().await,
        }
    };
    match fetched.await {
        Ok(found) => {
            let chart = found.chart.clone();
            *slot = Slot {
                found: Some(found),
                failed: None,
            };
            Ok(chart)
        }
        Err(error) => {
            slot.failed = Some((Instant::now(), error.clone()));
            Err(error)
        }
    }
}

impl Fetch<'_> {
    async fn of_registry(&self) -> Result<Found, HelmError> {
        let read = Instant::now();
        match self.pull(None).await {
            Ok(chart) => Ok(Found {
                chart,
                read,
                list: None,
            }),
            // The message for a missing tag and for a missing chart is the same.
            Err(error) if error.kind == Kind::VersionNotFound && self.address.source.is_exact() => {
                match self.pull(Some(NO_VERSION)).await {
                    Err(list) if list.kind == Kind::ChartNotFound => Err(list),
                    _ => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    async fn of_index(&self, fresh: Freshness, began: Instant, known: Option<&Found>) -> Result<Found, HelmError> {
        let key = self.address.repository_key();
        let folder = self
            .helm
            .home()
            .index(&key)
            .map_err(|error| file("a folder for an index", &error))?;
        let repository = entry(&self.helm.charts().repositories, &key);
        loop {
            let index = repository.read().await;
            let usable = index.read.filter(|read| fresh.allows(*read, began));
            let Some(read) = usable.filter(|_| index_file(&folder).is_file()) else {
                drop(index);
                self.refresh(&repository, &folder, began).await?;
                continue;
            };
            // The result for an unchanged list is unchanged.
            if let Some(known) = known.filter(|known| known.list.as_ref() == Some(&index.digest))
                && is_intact(&known.chart).await
            {
                return Ok(Found { read, ..known.clone() });
            }
            match self.pull_indexed(&folder).await {
                Ok(chart) => {
                    let list = Some(index.digest.clone());
                    return Ok(Found { chart, read, list });
                }
                // The version may have been published since.
                Err(error) if matches!(error.kind, Kind::VersionNotFound | Kind::ChartNotFound) && read < began => {
                    drop(index);
                    self.refresh(&repository, &folder, began).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the list of a repository, unless another caller has read it meanwhile.
    async fn refresh(&self, repository: &RwLock<Index>, folder: &Path, began: Instant) -> Result<(), HelmError> {
        let mut index = repository.write().await;
        let is_new = index.read.is_some_and(|read| read >= began);
        if !is_new || !index_file(folder).is_file() {
            *index = self.update(folder).await?;
        }
        Ok(())
    }

    /// Reads the list of a repository.
    async fn update(&self, index: &Path) -> Result<Index, HelmError> {
        let read = Instant::now();
        let mut files = self.files()?;
        let mut args = vec!["repo".to_owned(), "update".to_owned(), NAME.to_owned()];
        args.append(&mut files.flags);
        args.push(format!("--repository-cache={}", text(index)?));
        if !self.version.is_four() {
            args.push("--fail-on-repo-update-fail".to_owned());
        }
        let updated = self.run("repo-update", args, files.folder).await;
        updated.map_err(|error| {
            let kind = match error.kind {
                // A response other than a list means that it is not a repository.
                Kind::Other | Kind::ChartBroken => Kind::RepositoryUnreachable,
                kind => kind,
            };
            HelmError::new(kind, format!("{}: {error}", self.address.source.repo_url))
        })?;
        let path = index_file(index);
        let content = tokio::task::spawn_blocking(move || fs::read(path).map(digest)).await;
        let digest = content
            .map_err(std::io::Error::other)
            .flatten()
            .map_err(|error| file("an index", &error))?;
        Ok(Index {
            read: Some(read),
            digest,
        })
    }

    async fn pull_indexed(&self, index: &Path) -> Result<Chart, HelmError> {
        let files = self.files()?;
        let mut args = vec!["pull".to_owned(), format!("{NAME}/{}", self.address.source.chart)];
        args.push(format!("--repository-cache={}", text(index)?));
        // The repository's setting applies only to the index.
        if self.address.insecure() {
            args.push("--insecure-skip-tls-verify".to_owned());
        }
        self.pulled(args, files, self.address.source.version()).await
    }

    async fn pull(&self, version: Option<&str>) -> Result<Chart, HelmError> {
        let files = self.files()?;
        let mut args = vec!["pull".to_owned(), self.address.reference()];
        if self.address.insecure() {
            args.push("--insecure-skip-tls-verify".to_owned());
        }
        if self.address.source.plain_http {
            args.push("--plain-http".to_owned());
        }
        if self.address.ca().is_some() {
            args.push(format!("--ca-file={}", text(&files.folder.path().join("ca.pem"))?));
        }
        self.pulled(args, files, version.or(self.address.source.version()))
            .await
    }

    async fn pulled(&self, mut args: Vec<String>, mut files: Files, version: Option<&str>) -> Result<Chart, HelmError> {
        args.append(&mut files.flags);
        args.extend(version.map(|version| format!("--version={version}")));
        // Outside of the call's folder, which is removed with the process.
        let here = self.helm.folder()?;
        args.push(format!("--destination={}", text(here.path())?));
        let pulled = self.run("pull", args, files.folder).await;
        pulled.map_err(|error| not_there(&self.address, version, error))?;
        let largest = self.helm.settings().largest_chart;
        let charts = self.helm.home().charts();
        let kept = tokio::task::spawn_blocking(move || keep(&here, &charts, largest)).await;
        let (digest, archive) =
            kept.unwrap_or_else(|_| Err(HelmError::new(Kind::Cancelled, "the chart was not kept")))?;
        self.show(digest, archive).await
    }

    /// Asks helm for the metadata of a chart.
    async fn show(&self, digest: String, archive: PathBuf) -> Result<Chart, HelmError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Says {
            name: String,
            version: String,
            #[serde(default)]
            app_version: Option<String>,
        }
        let args = vec!["show".to_owned(), "chart".to_owned(), text(&archive)?];
        let call = self.call("show-chart", Asked::LocalFile, args);
        let printed = self.helm.fetch(&self.program, call, self.helm.folder()?).await?;
        let says: Says = serde_saphyr::from_str(&printed).map_err(|_| {
            HelmError::new(
                Kind::ChartBroken,
                "Chart.yaml does not say the chart's name and version",
            )
        })?;
        Ok(Chart {
            name: says.name,
            version: says.version,
            app_version: says.app_version.filter(|version| !version.is_empty()),
            digest,
            archive,
        })
    }

    /// The repository settings for helm, in files that are removed after the call.
    fn files(&self) -> Result<Files, HelmError> {
        let folder = self.helm.folder()?;
        let write = |name: &str, content: &[u8]| {
            let path = folder.write(name, content).map_err(|error| file(name, &error))?;
            text(&path)
        };
        let mut flags = Vec::new();
        let ca = self.address.ca().map(|ca| write("ca.pem", ca.as_bytes())).transpose()?;
        match self.address.sort {
            Sort::Index => {
                let repositories = self.address.repositories(ca.as_deref())?;
                flags.push(format!(
                    "--repository-config={}",
                    write("repositories.json", &repositories)?
                ));
            }
            Sort::Registry => {
                let registries = self.address.registries()?;
                flags.push(format!("--registry-config={}", write("registries.json", &registries)?));
            }
        }
        Ok(Files { folder, flags })
    }

    fn call(&self, verb: &'static str, asked: Asked, args: Vec<String>) -> Call {
        Call {
            verb,
            asked,
            args,
            input: Vec::new(),
            limit: self.helm.settings().fetch_limit,
            mask: self.mask.clone(),
        }
    }

    async fn run(&self, verb: &'static str, args: Vec<String>, folder: CallFolder) -> Result<String, HelmError> {
        let call = self.call(verb, Asked::Repository, args);
        self.helm.fetch(&self.program, call, folder).await
    }
}

/// The error for a missing chart or version with the repository's address: helm's message has the name in our files, and advice
/// that does not apply.
fn not_there(address: &Address<'_>, version: Option<&str>, error: HelmError) -> HelmError {
    let (url, chart) = (&address.source.repo_url, &address.source.chart);
    let lacks = match (error.kind, version) {
        (Kind::ChartNotFound, _) => format!("{url} has no chart {chart:?}"),
        (Kind::VersionNotFound, Some(version)) => format!("chart {chart:?} of {url} has no version {version}"),
        (Kind::VersionNotFound, None) => format!("chart {chart:?} of {url} has no version but pre-releases"),
        _ => return error,
    };
    // A registry may answer the same if the credentials lack permission.
    let message = match address.sort {
        Sort::Registry => format!("{lacks}: {error}"),
        Sort::Index => lacks,
    };
    HelmError::new(error.kind, message)
}

fn index_file(folder: &Path) -> PathBuf {
    folder.join(format!("{NAME}-index.yaml"))
}

/// The value of a key, created on first use.
fn entry<T: Default>(all: &Mutex<HashMap<String, Entry<T>>>, key: &str) -> Arc<T> {
    let mut all = all.lock();
    if all.len() > MANY {
        // Entries in use are held.
        all.retain(|_, entry| entry.used.elapsed() < FORGOTTEN || Arc::strong_count(&entry.what) > 1);
    }
    let entry = all.entry(key.to_owned()).or_insert_with(|| Entry {
        used: Instant::now(),
        what: Arc::default(),
    });
    entry.used = Instant::now();
    Arc::clone(&entry.what)
}

/// Moves a fetched archive to its final place. Returns its digest and path.
fn keep(from: &CallFolder, charts: &Path, largest: u64) -> Result<(String, PathBuf), HelmError> {
    let broken = |why: String| HelmError::new(Kind::ChartBroken, why);
    let failed = |error: std::io::Error| file("the archive of a chart", &error);
    let mut archives = Vec::new();
    for entry in fs::read_dir(from.path()).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        archives.extend(path.extension().is_some_and(|end| end == "tgz").then_some(path));
    }
    let [archive] = archives.as_slice() else {
        return Err(broken(format!(
            "helm pulled {} archives where one was expected",
            archives.len()
        )));
    };
    let size = fs::metadata(archive).map_err(failed)?.len();
    if size > largest {
        return Err(broken(format!(
            "the archive of the chart has {size} bytes, {largest} are allowed"
        )));
    }
    let digest = digest(fs::read(archive).map_err(failed)?);
    let kept = charts.join(format!("{digest}.tgz"));
    fs::rename(archive, &kept).map_err(failed)?;
    tidy(charts, &kept);
    Ok((format!("sha256:{digest}"), kept))
}

/// Removes archives that were not used for a long time, if there are many.
fn tidy(charts: &Path, kept: &Path) {
    let Ok(entries) = fs::read_dir(charts) else { return };
    let archives: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    if archives.len() <= MANY {
        return;
    }
    for archive in archives.iter().filter(|archive| *archive != kept) {
        let used = fs::metadata(archive).and_then(|file| file.modified()).ok();
        let age = used.and_then(|used| used.elapsed().ok());
        if age.is_some_and(|age| age > FORGOTTEN) {
            let _ = fs::remove_file(archive);
        }
    }
}

/// Whether the archive of a chart is unchanged.
async fn is_intact(chart: &Chart) -> bool {
    let (archive, expect) = (chart.archive.clone(), chart.digest.clone());
    let check = move || {
        let Ok(content) = fs::read(&archive) else { return false };
        // Marks it as used: see `tidy`.
        let used = fs::File::options().append(true).open(&archive);
        let _ = used.and_then(|file| file.set_modified(std::time::SystemTime::now()));
        format!("sha256:{}", digest(content)) == expect
    };
    tokio::task::spawn_blocking(check).await.unwrap_or_default()
}
