//! Helm for the controllers of a process. Its folder is created on first use: most clusters never get a chart.

use std::future::ready;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use windlass_addon_helm::release_proxy::Settings;
use windlass_controller_runtime::{Metrics, Table};
use windlass_helm::{
    BoxFuture, Chart, ChartSource, Engine, Freshness, Helm, HelmError, Kind, Options, Summary, Target,
};

pub(crate) const PROCESSES: Table = Table {
    name: "windlass_helm_processes",
    help: "Finished helm processes by command and result",
    counts: true,
    labels: &["verb", "result"],
};

/// How charts are fetched and installed.
#[derive(Clone, Debug)]
pub struct HelmUse {
    /// Settings of the helm program.
    pub program: windlass_helm::Settings,
    /// Settings of releases.
    pub releases: Settings,
}

impl HelmUse {
    /// The program in `PATH`, with its files below this folder.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        let releases = Settings::default();
        let count = releases.at_a_time;
        let mut used = Self {
            program: windlass_helm::Settings::new(home),
            releases,
        };
        used.at_a_time(count);
        used
    }

    /// Sets the number of concurrent helm processes.
    pub fn at_a_time(&mut self, count: usize) {
        self.releases.at_a_time = count;
        // Operations that wait for their release must not block others.
        self.program.operations = self.releases.most_operations();
    }
}

impl Default for HelmUse {
    fn default() -> Self {
        Self::new(std::env::temp_dir().join("windlass-helm"))
    }
}

/// The real helm, created on the first request.
#[derive(Clone, Debug)]
pub(crate) struct LateHelm(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: windlass_helm::Settings,
    helm: OnceLock<Result<Helm, String>>,
}

impl LateHelm {
    pub(crate) fn new(settings: windlass_helm::Settings) -> Self {
        let helm = OnceLock::new();
        Self(Arc::new(Inner { settings, helm }))
    }

    fn helm(&self) -> Result<&Helm, HelmError> {
        let Inner { settings, helm } = &*self.0;
        let made = helm.get_or_init(|| {
            Helm::new(settings.clone()).map_err(|error| {
                let home = settings.home.display();
                format!("helm cannot keep its files in {home}: {error}; let windlass write there")
            })
        });
        made.as_ref().map_err(|why| HelmError::new(Kind::Other, why.as_str()))
    }

    /// Whether a process runs.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.0.helm.get(), Some(Ok(helm)) if helm.is_running())
    }

    /// Adds the metrics of its processes.
    pub(crate) fn measure(&self, metrics: &Metrics) {
        let of = self.clone();
        metrics.table(PROCESSES, move || {
            let Some(Ok(helm)) = of.0.helm.get() else {
                return Vec::new();
            };
            let ended = helm.counters().ended().into_iter();
            ended
                .map(|(counted, count)| {
                    let labels = [counted.verb, counted.result].map(str::to_owned);
                    (labels.to_vec(), count.processes)
                })
                .collect()
        });
    }

    /// Ends running work.
    pub(crate) async fn close(&self) {
        if let Some(Ok(helm)) = self.0.helm.get() {
            helm.close().await;
        }
    }

    fn ask<'a, T: Send + 'a>(
        &'a self,
        ask: impl FnOnce(&'a Helm) -> BoxFuture<'a, Result<T, HelmError>>,
    ) -> BoxFuture<'a, Result<T, HelmError>> {
        match self.helm() {
            Ok(helm) => ask(helm),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }
}

impl Engine for LateHelm {
    fn unusable(&self) -> Option<String> {
        match self.helm() {
            Ok(helm) => helm.unusable(),
            Err(error) => Some(error.message),
        }
    }

    fn chart<'a>(&'a self, source: &'a ChartSource, fresh: Freshness) -> BoxFuture<'a, Result<Chart, HelmError>> {
        self.ask(move |helm| helm.chart(source, fresh))
    }

    fn install<'a>(
        &'a self,
        target: &'a Target,
        chart: &'a Chart,
        values: &'a str,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<Summary, HelmError>> {
        self.ask(move |helm| helm.install(target, chart, values, options))
    }

    fn upgrade<'a>(
        &'a self,
        target: &'a Target,
        chart: &'a Chart,
        values: &'a str,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<Summary, HelmError>> {
        self.ask(move |helm| helm.upgrade(target, chart, values, options))
    }

    fn rollback<'a>(
        &'a self,
        target: &'a Target,
        to_revision: u32,
        options: &'a Options,
    ) -> BoxFuture<'a, Result<(), HelmError>> {
        self.ask(move |helm| helm.rollback(target, to_revision, options))
    }

    fn uninstall<'a>(&'a self, target: &'a Target, options: &'a Options) -> BoxFuture<'a, Result<(), HelmError>> {
        self.ask(move |helm| helm.uninstall(target, options))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_created_and_a_missing_program_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let late = |home: PathBuf, program: &str| {
            let mut settings = windlass_helm::Settings::new(home);
            settings.program = program.into();
            LateHelm::new(settings)
        };
        let why = late(file.join("below"), "helm").unusable().unwrap();
        assert!(why.contains("file/below") && why.contains("write there"), "{why}");
        let why = late(folder.path().join("home"), "/nowhere/helm").unusable().unwrap();
        assert!(why.contains("/nowhere/helm"), "{why}");
    }
}
