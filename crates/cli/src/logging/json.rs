//! The JSON format of logs: one object per event. The fields of a reconcile, such as `controller`, `namespace`, `name` and `Cluster`, stand
//! beside those of the event, as in the logs of controller-runtime.

use std::error::Error;
use std::fmt::{self, Debug};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormattedFields};
use tracing_subscriber::registry::{LookupSpan, Scope};

/// The fields of each line.
const OF_EACH: [&str; 3] = ["timestamp", "level", "target"];

/// Writes events. Spans have [`JsonFields`].
pub(super) struct Json;

impl<S> FormatEvent<S, JsonFields> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        cx: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let mut fields = Fields(Map::new());
        event.record(&mut fields);
        let mut line = Map::new();
        for span in cx.event_scope().into_iter().flat_map(Scope::from_root) {
            let extensions = span.extensions();
            let of_span = extensions.get::<FormattedFields<JsonFields>>();
            let of_span = of_span.and_then(|fields| serde_json::from_str::<Map<String, Value>>(&fields.fields).ok());
            line.extend(of_span.unwrap_or_default());
        }
        for (name, value) in fields.0 {
            // What the reconcile is about keeps its name, as what each line has.
            let name = if line.contains_key(&name) || OF_EACH.contains(&name.as_str()) {
                format!("event_{name}")
            } else {
                name
            };
            line.insert(name, value);
        }
        let time = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ");
        line.insert("timestamp".to_owned(), time.to_string().into());
        line.insert("level".to_owned(), metadata.level().as_str().into());
        line.insert("target".to_owned(), metadata.target().into());
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// The fields of an event.
struct Fields(Map<String, Value>);

impl Fields {
    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.add(field, value.to_string());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::line::tests::written;
    use super::*;

    fn check(events: impl FnOnce(), expect: &Value) {
        let layer = tracing_subscriber::fmt::layer()
            .fmt_fields(JsonFields::new())
            .event_format(Json);
        let text = written(layer, events);
        let mut line: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let time = line.as_object_mut().unwrap().remove("timestamp").unwrap();
        assert!(time.as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{time}");
        line.as_object_mut().unwrap().remove("target").unwrap();
        assert_eq!(&line, expect);
    }

    #[test]
    fn lines_have_the_fields_of_the_reconcile_beside_their_own() {
        check(
            || {
                let span = tracing::info_span!("reconcile", name = "b", Cluster = tracing::field::Empty);
                span.record("Cluster", "a/c");
                let _in = span.enter();
                tracing::info!(name = "other", level = "high", count = 2, good = true, "two\nlines");
            },
            &json!({
                "level": "INFO", "name": "b", "Cluster": "a/c", "event_name": "other", "event_level": "high", "count": 2, "good": true,
                "message": "two\nlines",
            }),
        );
        check(
            || tracing::warn!("alone"),
            &json!({"level": "WARN", "message": "alone"}),
        );
    }
}
