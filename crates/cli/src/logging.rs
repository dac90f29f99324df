//! Logs on standard error.

use std::io::IsTerminal as _;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Starts logging. What libraries say is only interesting from warnings on, unless everything is asked for.
pub(crate) fn start(level: LevelFilter) {
    let others = if level >= LevelFilter::DEBUG {
        LevelFilter::INFO
    } else {
        level.min(LevelFilter::WARN)
    };
    let targets = Targets::new()
        .with_default(if level == LevelFilter::TRACE { level } else { others })
        .with_target("windlass", level);
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(colours);
    // Fails only when logging was started before.
    let _ = tracing_subscriber::registry().with(targets).with(lines).try_init();
}
