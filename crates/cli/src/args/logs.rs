//! Options of the log, of all commands.

use clap::{Args as ClapArgs, ValueEnum};
use tracing::level_filters::LevelFilter;

/// Options of the log.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct LogArgs {
    /// Log level on stderr: off, error, warn, info, debug or trace [default: info for servers, else warn]
    #[arg(long = "log-level", id = "log_level", global = true, value_name = "LEVEL", display_order = 1000, value_parser = named)]
    level: Option<LevelFilter>,
    /// Log level as a number, as Kubernetes' components take it: 0 to 3 is info, 4 is debug, 5 and more is trace
    #[arg(short = 'v', long = "v", id = "verbosity", global = true, value_name = "N", display_order = 1001, value_parser = numbered, conflicts_with = "log_level")]
    verbosity: Option<LevelFilter>,
    /// Log format: text or json
    #[arg(long = "log-format", id = "log_format", global = true, value_name = "FORMAT", display_order = 1002, value_enum, hide_possible_values = true, default_value_t = LogFormat::Text)]
    pub(crate) format: LogFormat,
}

impl LogArgs {
    /// The chosen level.
    pub(crate) fn level(&self) -> Option<LevelFilter> {
        self.level.or(self.verbosity)
    }
}

/// A log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// A level by its name.
fn named(text: &str) -> Result<LevelFilter, String> {
    let level = level(text).filter(|_| text.parse::<u8>().is_err());
    level.ok_or_else(|| "expected off, error, warn, info, debug or trace".to_owned())
}

/// A level by its number.
fn numbered(text: &str) -> Result<LevelFilter, String> {
    let level = level(text).filter(|_| text.parse::<u8>().is_ok());
    level.ok_or_else(|| "expected a number: 4 is debug, 5 and more is trace".to_owned())
}

/// A level by its name, or by the number that Kubernetes' components have for it: debug messages are 4, and all are 5 or more.
pub(crate) fn level(text: &str) -> Option<LevelFilter> {
    match text.parse::<u8>() {
        Ok(0..=3) => Some(LevelFilter::INFO),
        Ok(4) => Some(LevelFilter::DEBUG),
        Ok(_) => Some(LevelFilter::TRACE),
        Err(_) => text.parse().ok().filter(|_| !text.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_a_name_or_a_number_of_kubernetes() {
        let check = |text: &str, expect: Option<LevelFilter>| assert_eq!(level(text), expect, "{text:?}");
        check("debug", Some(LevelFilter::DEBUG));
        check("off", Some(LevelFilter::OFF));
        check("0", Some(LevelFilter::INFO));
        check("4", Some(LevelFilter::DEBUG));
        check("10", Some(LevelFilter::TRACE));
        check("-1", None);
        check("loud", None);
        check("", None);
        assert!(named("4").is_err() && numbered("debug").is_err());
    }
}
