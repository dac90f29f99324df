//! The text format of logs: one short line per event with time, level, controller, object and message.

use std::error::Error;
use std::fmt::{self, Debug};

use anstyle::{AnsiColor, Style};
use tracing::field::{Field, Visit};
use tracing::span::Record;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::{LookupSpan, Scope};

/// Writes events.
pub(super) struct Line;

/// Formats fields: fields that identify the work without their names, and none that only programs read.
pub(super) struct Fields;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, cx: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let style = |writer: &Writer<'_>, style: Style| {
            if writer.has_ansi_escapes() { style } else { Style::new() }
        };
        let dim = style(&writer, Style::new().dimmed());
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
        let level = event.metadata().level();
        let colour = style(&writer, level_style(*level));
        write!(writer, "{dim}{now}{dim:#} {colour}{level:>5}{colour:#} ")?;
        for span in cx.event_scope().into_iter().flat_map(Scope::from_root) {
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>()
                && !fields.is_empty()
            {
                write!(writer, "{dim}{fields}:{dim:#} ")?;
            }
        }
        let target = event.metadata().target();
        if !target.starts_with("windlass") {
            write!(writer, "{dim}{target}:{dim:#} ")?;
        }
        cx.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

fn level_style(level: Level) -> Style {
    match level {
        Level::ERROR => AnsiColor::Red.on_default(),
        Level::WARN => AnsiColor::Yellow.on_default(),
        _ => AnsiColor::Green.on_default(),
    }
}

impl<'writer> FormatFields<'writer> for Fields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut words = Words {
            writer,
            first: true,
            of_reconcile: false,
            result: Ok(()),
        };
        fields.record(&mut words);
        words.result
    }

    /// What a span records later is for programs.
    fn add_fields(&self, _: &'writer mut FormattedFields<Self>, _: &Record<'_>) -> fmt::Result {
        Ok(())
    }
}

struct Words<'writer> {
    writer: Writer<'writer>,
    first: bool,
    /// These are the fields of a reconcile: its object says them all.
    of_reconcile: bool,
    result: fmt::Result,
}

impl Words<'_> {
    fn word(&mut self, field: &Field, value: &str) {
        let name = field.name();
        self.of_reconcile |= name == "controller";
        let is_said = self.of_reconcile && ["namespace", "name"].contains(&name);
        if self.result.is_err() || is_said || name == "reconcile_id" {
            return;
        }
        let space = if self.first { "" } else { " " };
        self.first = false;
        // An event is one line, even if its text has line breaks.
        let value = value.replace('\n', " ");
        self.result = match name {
            "message" | "controller" | "object" => write!(self.writer, "{space}{value}"),
            _ if value.is_empty() || value.contains([' ', '"', '=']) => {
                write!(self.writer, "{space}{name}={value:?}")
            }
            _ => write!(self.writer, "{space}{name}={value}"),
        };
    }
}

impl Visit for Words<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.word(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.word(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.word(field, &value.to_string());
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::Registry;
    use tracing_subscriber::fmt::{Layer, MakeWriter};
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// What is written.
    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Sink {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    /// What is written of these events in a format.
    pub(crate) fn written<N, E>(layer: Layer<Registry, N, E>, events: impl FnOnce()) -> String
    where
        N: for<'w> FormatFields<'w> + Send + Sync + 'static,
        E: FormatEvent<Registry, N> + Send + Sync + 'static,
    {
        let sink = Sink::default();
        let layer = layer.with_ansi(false).with_writer(sink.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), events);
        String::from_utf8(sink.0.lock().unwrap().clone()).unwrap()
    }

    fn check(events: impl FnOnce(), expect: &str) {
        let layer = tracing_subscriber::fmt::layer().fmt_fields(Fields).event_format(Line);
        let text = written(layer, events);
        // Without the time, which is 20 characters long.
        assert_eq!(&text[20..], expect);
    }

    #[test]
    fn lines_say_whose_work_it_is_and_what_happens() {
        check(
            || {
                let span = tracing::info_span!(
                    "reconcile",
                    controller = "machine",
                    object = %"Machine a/b",
                    namespace = "a",
                    name = "b",
                    Cluster = tracing::field::Empty,
                    reconcile_id = %"1f",
                );
                span.record("Cluster", "a/c");
                let _in = span.enter();
                tracing::info!(name = "m-1", reason = "scale down", empty = "", "deleting Machine");
            },
            "  INFO machine Machine a/b: deleting Machine name=m-1 reason=\"scale down\" empty=\"\"\n",
        );
        check(|| tracing::warn!("two\nlines"), "  WARN two lines\n");
        check(
            || tracing::error!(target: "hyper", n = 2, "lost"),
            " ERROR hyper: lost n=2\n",
        );
    }
}
