//! Logs on standard error.

mod json;
mod line;

use std::io::IsTerminal as _;
use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry, reload};

use crate::args::logs::{LogFormat, level};

/// Changes the level while the process runs, but not that of calls to etcd members if they have their own.
static LEVEL: OnceLock<(reload::Handle<Targets, Registry>, Option<LevelFilter>)> = OnceLock::new();

/// The crate that calls etcd members.
const ETCD: &str = "windlass_etcd";

/// Libraries log from warnings on, except at the levels debug and trace.
fn targets(level: LevelFilter, of_etcd: Option<LevelFilter>) -> Targets {
    let others = if level >= LevelFilter::DEBUG {
        LevelFilter::INFO
    } else {
        level.min(LevelFilter::WARN)
    };
    Targets::new()
        .with_default(if level == LevelFilter::TRACE { level } else { others })
        .with_target("windlass", level)
        .with_target(ETCD, of_etcd.unwrap_or(level))
}

/// Changes the log level of the process.
pub(crate) fn set_level(text: &str) -> Result<String, String> {
    let level = level(text)
        .ok_or("the log level must be off, error, warn, info, debug or trace, or a number: 4 is debug, 5 is trace")?;
    let (handle, of_etcd) = LEVEL.get().ok_or("the process does not log")?;
    handle
        .reload(targets(level, *of_etcd))
        .map_err(|error| error.to_string())?;
    tracing::info!(%level, "the log level was changed");
    Ok(format!("the log level is {level}"))
}

/// Starts logging, with another level for calls to etcd members if they have their own.
pub(crate) fn start(level: LevelFilter, of_etcd: Option<LevelFilter>, format: LogFormat) {
    let (targets, handle) = reload::Layer::new(targets(level, of_etcd));
    let _ = LEVEL.set((handle, of_etcd));
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let layer = match format {
        LogFormat::Json => layer.fmt_fields(JsonFields::new()).event_format(json::Json).boxed(),
        LogFormat::Text => {
            let colours =
                std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            let layer = layer.with_ansi(colours);
            if level >= LevelFilter::DEBUG {
                // In debug logs the source of a line matters.
                layer.boxed()
            } else {
                layer.fmt_fields(line::Fields).event_format(line::Line).boxed()
            }
        }
    };
    // Fails only if logging was started before.
    let _ = tracing_subscriber::registry().with(targets).with(layer).try_init();
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn calls_to_etcd_have_a_level_of_their_own() {
        let shows = |of_etcd: Option<LevelFilter>, level: Level| {
            let all = targets(LevelFilter::INFO, of_etcd);
            let others = all.would_enable("windlass_cluster_cache", &Level::INFO)
                && !all.would_enable("windlass_cluster_cache", &Level::DEBUG);
            assert!(others, "{of_etcd:?}");
            all.would_enable(ETCD, &level)
        };
        assert!(shows(None, Level::INFO) && !shows(None, Level::DEBUG));
        let (debug, error) = (Some(LevelFilter::DEBUG), Some(LevelFilter::ERROR));
        assert!(shows(debug, Level::DEBUG) && !shows(debug, Level::TRACE));
        assert!(shows(error, Level::ERROR) && !shows(error, Level::WARN));
    }
}
