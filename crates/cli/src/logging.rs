//! Logs on standard error.

mod line;

use std::io::IsTerminal as _;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::LogFormat;

/// Starts logging. Libraries log from warnings on, except at the levels debug and trace.
pub(crate) fn start(level: LevelFilter, format: LogFormat) {
    let others = if level >= LevelFilter::DEBUG {
        LevelFilter::INFO
    } else {
        level.min(LevelFilter::WARN)
    };
    let targets = Targets::new()
        .with_default(if level == LevelFilter::TRACE { level } else { others })
        .with_target("windlass", level);
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let layer = match format {
        LogFormat::Json => layer.json().flatten_event(true).with_span_list(false).boxed(),
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
