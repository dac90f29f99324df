//! Events for users: `kubectl describe` shows them. Repetitions increase the count of one Event. Events that come faster than
//! they can be written are dropped, as conditions carry the important facts.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::json;
use tokio::sync::mpsc;
use windlass_meta::{Clock, NameSource};

use crate::api_client::{ApiClient, PatchKind};
use crate::object::{Dynamic, Object, ObjectKey};
use crate::tasks::Tasks;

/// The number of events that may wait to be written.
const BUFFER: usize = 4096;
/// After this long without a repetition, the same event makes a new Event.
const SERIES: Duration = Duration::from_mins(6);
/// The same event within this time is not counted as a repetition: the reconcile ran again before its first write was visible.
const ECHO: Duration = Duration::from_secs(5);
/// Longest message that API servers accept.
const MESSAGE: usize = 1024;

/// The severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Normal operation.
    Normal,
    /// A problem that needs attention.
    Warning,
}

impl EventType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// An object that an event can be about.
pub trait EventSubject {
    /// A full reference.
    fn reference(&self) -> ObjectReference;
}

impl<K: Object> EventSubject for K {
    fn reference(&self) -> ObjectReference {
        let meta = self.meta();
        ObjectReference {
            api_version: Some(K::api_version(&()).into_owned()),
            kind: Some(K::kind(&()).into_owned()),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            field_path: None,
        }
    }
}

impl EventSubject for Dynamic {
    fn reference(&self) -> ObjectReference {
        let meta = self.metadata();
        ObjectReference {
            api_version: Some(self.api_version().to_owned()),
            kind: Some(self.kind().to_owned()),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            field_path: None,
        }
    }
}

#[derive(Debug)]
struct Emitted {
    controller: &'static str,
    about: ObjectReference,
    kind: EventType,
    reason: String,
    message: String,
    at: Timestamp,
}

/// Takes events and writes them in the background. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    queue: mpsc::Sender<Emitted>,
    clock: Arc<dyn Clock>,
}

impl Events {
    pub(crate) fn start(
        client: kube::Client,
        clock: Arc<dyn Clock>,
        names: Arc<dyn NameSource>,
        tasks: &Tasks,
    ) -> Self {
        let (queue, mut incoming) = mpsc::channel::<Emitted>(BUFFER);
        tasks.spawn("events", async move {
            let (client, mut series) = (ApiClient::from(&client), Series::default());
            while let Some(event) = incoming.recv().await {
                series.write(&client, &*names, event).await;
            }
        });
        Self { queue, clock }
    }

    pub(crate) fn emit(
        &self,
        controller: &'static str,
        about: ObjectReference,
        kind: EventType,
        reason: &str,
        mut message: String,
    ) {
        if message.len() > MESSAGE {
            let end = (0..=MESSAGE - 3)
                .rev()
                .find(|i| message.is_char_boundary(*i))
                .unwrap_or(0);
            message.truncate(end);
            message.push_str("...");
        }
        let event = Emitted {
            controller,
            about,
            kind,
            reason: reason.to_owned(),
            message,
            at: self.clock.now(),
        };
        // Best effort: conditions carry the important facts.
        if self.queue.try_send(event).is_err() {
            tracing::debug!("an event was dropped");
        }
    }
}

/// Recently written events, to count their repetitions.
#[derive(Default)]
struct Series {
    known: HashMap<Same, Known>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Same {
    uid: String,
    kind: EventType,
    reason: String,
    message: String,
    controller: &'static str,
}

struct Known {
    namespace: String,
    name: String,
    count: i32,
    last: Timestamp,
}

/// What to do with an event.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Create,
    Count {
        namespace: String,
        name: String,
        count: i32,
    },
    Nothing,
}

impl Series {
    fn step(&mut self, same: &Same, at: Timestamp) -> Step {
        let since = |known: &Known| at.duration_since(known.last).unsigned_abs();
        let over = |known: &Known| since(known) > SERIES;
        if self.known.len() > BUFFER {
            self.known.retain(|_, known| !over(known));
        }
        match self.known.get_mut(same) {
            Some(known) if since(known) < ECHO => Step::Nothing,
            Some(known) if !over(known) => {
                known.count += 1;
                known.last = at;
                // Written at 2, 4, 8, ...: a loop cannot flood the server.
                if (known.count & (known.count - 1)) == 0 {
                    Step::Count {
                        namespace: known.namespace.clone(),
                        name: known.name.clone(),
                        count: known.count,
                    }
                } else {
                    Step::Nothing
                }
            }
            _ => Step::Create,
        }
    }

    async fn write(&mut self, client: &ApiClient, names: &dyn NameSource, event: Emitted) {
        let same = Same {
            uid: event.about.uid.clone().unwrap_or_default(),
            kind: event.kind,
            reason: event.reason.clone(),
            message: event.message.clone(),
            controller: event.controller,
        };
        match self.step(&same, event.at) {
            Step::Nothing => {}
            Step::Count { namespace, name, count } => {
                let patch = json!({"count": count, "lastTimestamp": Time(event.at)});
                let key = ObjectKey::new(namespace, name);
                let patched = client.patch::<Event>("", &key, PatchKind::Merge, &patch);
                if let Err(error) = patched.await {
                    tracing::debug!(%error, "cannot count an event");
                    self.known.remove(&same);
                }
            }
            Step::Create => {
                let object = to_event(&event, names);
                let namespace = object.metadata.namespace.clone().unwrap_or_default();
                let name = object.metadata.name.clone().unwrap_or_default();
                match client.create("", &object).await {
                    Ok(()) => {
                        let known = Known {
                            namespace,
                            name,
                            count: 1,
                            last: event.at,
                        };
                        self.known.insert(same, known);
                    }
                    Err(error) => tracing::debug!(%error, "cannot write an event"),
                }
            }
        }
    }
}

fn to_event(event: &Emitted, names: &dyn NameSource) -> Event {
    let about = event.about.clone();
    // Events about cluster-scoped objects are in the namespace where kubectl looks for them.
    let namespace = about.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let subject = about.name.as_deref().unwrap_or("object");
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{subject}.{}{}", names.suffix(8), names.suffix(8))),
            namespace: Some(namespace),
            ..ObjectMeta::default()
        },
        involved_object: about,
        reason: Some(event.reason.clone()),
        message: Some(event.message.clone()),
        type_: Some(event.kind.as_str().to_owned()),
        count: Some(1),
        first_timestamp: Some(Time(event.at)),
        last_timestamp: Some(Time(event.at)),
        source: Some(EventSource {
            component: Some(format!("{}-controller", event.controller)),
            host: None,
        }),
        reporting_component: Some(format!("{}-controller", event.controller)),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_counted_with_ever_fewer_writes() {
        let mut series = Series::default();
        let same = Same {
            uid: "u".to_owned(),
            kind: EventType::Warning,
            reason: "Failed".to_owned(),
            message: "no".to_owned(),
            controller: "machine",
        };
        let mut at = Timestamp::constant(1_800_000_000, 0);
        assert_eq!(series.step(&same, at), Step::Create);
        let known = Known {
            namespace: "n".to_owned(),
            name: "e".to_owned(),
            count: 1,
            last: at,
        };
        series.known.insert(same.clone(), known);
        at += jiff::SignedDuration::from_secs(1);
        assert_eq!(series.step(&same, at), Step::Nothing, "the same said twice at once");
        assert_eq!(series.known[&same].count, 1);
        let mut writes = 0;
        for _ in 0..1000 {
            at += jiff::SignedDuration::from_secs(10);
            if series.step(&same, at) != Step::Nothing {
                writes += 1;
            }
        }
        assert_eq!(writes, 9);
        at += jiff::SignedDuration::from_secs(400);
        assert_eq!(series.step(&same, at), Step::Create, "a new series after a pause");
    }
}
