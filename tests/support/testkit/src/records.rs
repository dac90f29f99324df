//! What was logged last, for the report of a simulation that fails.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::leaks::Search;

/// How many records are kept.
const LAST: usize = 60;

/// Runs `simulation` and prints its last records if it panics: reconciles that fail, and what the controllers did. Only this thread is heard.
pub fn shown_on_failure<T>(simulation: impl FnOnce() -> T) -> T {
    let last = Last::default();
    let heard = Targets::new()
        .with_target("windlass", LevelFilter::INFO)
        .with_target("windlass_controller_runtime::driver", LevelFilter::DEBUG);
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .without_time()
        .with_writer(last.clone())
        .with_filter(heard);
    let _shown = Shown(last);
    let subscriber = tracing_subscriber::registry().with(lines).with(Search);
    tracing::subscriber::with_default(subscriber, simulation)
}

/// The last records, each a line.
#[derive(Clone, Default)]
struct Last(Arc<Mutex<VecDeque<String>>>);

impl io::Write for Last {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut lines = self.0.lock();
        if lines.len() == LAST {
            lines.pop_front();
        }
        lines.push_back(String::from_utf8_lossy(bytes).into_owned());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Last {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Prints the records if the test fails.
struct Shown(Last);

impl Drop for Shown {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let lines: String = self.0.0.lock().iter().cloned().collect();
            #[expect(clippy::print_stderr, reason = "the test harness shows it with the test that fails")]
            {
                eprintln!("the last records:\n{lines}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_records_are_kept() {
        let last = Last::default();
        let lines = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(last.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            for number in 0..=LAST {
                tracing::info!(number, "a record");
            }
        });
        let lines = last.0.lock();
        assert_eq!(lines.len(), LAST);
        assert!(
            lines[0].contains("number=1") && lines[0].ends_with('\n'),
            "{}",
            lines[0]
        );
    }
}
