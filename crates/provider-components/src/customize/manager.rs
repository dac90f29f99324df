//! Settings of a manager: the flags of its container, and the fields that depend on them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api_operator::Settings;

use super::flags::{self, FLAGS, Flag, Wanted};
use super::{CustomizeError, Note, arguments, container, container_mut};
use crate::args::{Arguments, Was};

/// The container of a manager.
pub(super) struct Place<'a> {
    pub(super) object: &'a mut Value,
    /// The Deployment, for notes.
    pub(super) name: &'a str,
    pub(super) container: &'a str,
    /// The field with the settings.
    pub(super) field: &'a str,
    pub(super) notes: &'a mut Vec<Note>,
}

impl Place<'_> {
    fn done(&mut self, setting: &str, what: impl Into<String>) {
        let note = Note::done(&format!("{}.{setting}", self.field), self.name, what);
        self.notes.push(note.in_container(self.container));
    }

    fn ignored(&mut self, setting: &str, why: &str) {
        let note = Note::ignored(&format!("{}.{setting}", self.field), self.name, why);
        self.notes.push(note.in_container(self.container));
    }

    fn write(&mut self, args: Arguments) {
        if let Some(container) = container_mut(self.object, self.container) {
            args.write(container);
        }
    }

    /// Removes arguments that limit the manager to one namespace.
    pub(super) fn watch_all(&mut self) -> Result<(), CustomizeError> {
        let mut args = arguments(self.object, self.container)?;
        if args.remove(flags::NAMESPACE) {
            let what = "took --namespace away: providers watch all namespaces";
            self.notes
                .push(Note::done("components", self.name, what).in_container(self.container));
            self.write(args);
        }
        Ok(())
    }

    /// Passes all settings as flags.
    pub(super) fn flags(&mut self, declared: &Settings, merge_gates: bool) -> Result<(), CustomizeError> {
        let mut args = arguments(self.object, self.container)?;
        let before = args.clone();
        let settings = flags::effective(declared);
        self.check(&settings)?;
        for note in container::set_all(
            &mut args,
            &settings.additional_args,
            &format!("{}.additionalArgs", self.field),
        )? {
            self.notes.push(Note {
                object: self.name.to_owned(),
                ..note.in_container(self.container)
            });
        }
        for flag in FLAGS {
            let Some(mut wanted) = (flag.value)(&settings) else {
                continue;
            };
            if merge_gates && flag.field == flags::FEATURE_GATES {
                wanted = Wanted::Always(merged_gates(&args, &settings.feature_gates));
            }
            self.flag(&mut args, flag, &wanted, &settings);
        }
        for (kind, number) in &settings.group_kind_concurrency {
            let name = flags::concurrency_flag(kind);
            let what = described(args.set(&name, &number.to_string()), &name, &number.to_string());
            self.done(&format!("controller.groupKindConcurrency[{kind}]"), what);
        }
        self.without_flags(declared);
        if args != before {
            self.write(args);
        }
        Ok(())
    }

    fn flag(&mut self, args: &mut Arguments, flag: &Flag, wanted: &Wanted, settings: &Settings) {
        let field = match flag.field {
            "verbosity" | "profilerAddress" if settings.debug => "debug",
            field => field,
        };
        let there: Vec<&str> = flag.names().filter(|name| args.has(name)).collect();
        let otherwise = flag.otherwise.filter(|other| args.has(other));
        let name = match (there.first(), otherwise) {
            (Some(name), _) => name,
            (None, Some(_)) if settings.diagnostics_address.is_some() => {
                return self.ignored(
                    field,
                    "metrics.diagnosticsAddress says where this manager serves metrics",
                );
            }
            (None, Some(other)) => other,
            (None, None) if matches!(wanted, Wanted::WhereKnown(_)) => {
                return self.ignored(field, "the manager shows no flag for it");
            }
            (None, None) => flag.name,
        };
        for other in there.iter().skip(1) {
            args.remove(other);
        }
        let was = args.set(name, wanted.value());
        self.done(field, described(was, name, wanted.value()));
    }

    /// Adds notes about settings without a flag.
    fn without_flags(&mut self, declared: &Settings) {
        if declared.debug {
            for (field, set) in [
                ("verbosity", declared.verbosity.is_some()),
                ("profilerAddress", declared.profiler_address.is_some()),
            ] {
                if set {
                    self.ignored(field, "debug is on");
                }
            }
        }
        if declared.cache_namespace.is_some() {
            self.ignored("cacheNamespace", "providers watch all namespaces");
        }
        if declared.cache_sync_timeout.is_some() {
            self.ignored("controller.cacheSyncTimeout", "managers have no flag for it");
        }
        if declared.recover_panic.is_some() {
            self.ignored("controller.recoverPanic", "managers have no flag for it");
        }
        let election = declared
            .leader_election
            .as_ref()
            .filter(|election| !election.leader_elect);
        let more = election.is_some_and(|e| e.lease_duration.or(e.renew_deadline).or(e.retry_period).is_some());
        if more {
            self.ignored("leaderElection", "but for leaderElect: there is no election");
        }
    }

    /// Checks for invalid values.
    fn check(&self, settings: &Settings) -> Result<(), CustomizeError> {
        let wrong = |setting: &str, why: String| CustomizeError::Setting {
            field: format!("{}.{setting}", self.field),
            why,
        };
        if let Some(election) = settings
            .leader_election
            .as_ref()
            .filter(|election| election.leader_elect)
            && let (Some(lease), Some(renew)) = (election.lease_duration, election.renew_deadline)
            && renew > lease
        {
            let why = format!("{renew} is longer than leaseDuration, {lease}: two replicas would lead at once");
            return Err(wrong("leaderElection.renewDeadline", why));
        }
        for (key, value) in &settings.additional_args {
            let set = FLAGS.iter().find_map(|flag| {
                let same = flag.names().any(|name| crate::args::flag_name(key) == Some(name));
                let wanted = (flag.value)(settings).filter(|wanted| same && wanted.value() != value)?;
                Some((flag, wanted))
            });
            if let Some((flag, _)) = set {
                let why = format!(
                    "is the flag of {}.{}, which is set as well: keep one of them",
                    self.field, flag.field
                );
                return Err(wrong(&format!("additionalArgs[{key}]"), why));
            }
        }
        Ok(())
    }

    /// Names of health probes have no flag; a user who sets them knows that the manager serves them.
    pub(super) fn probes(&mut self, settings: &Settings) {
        let names = [
            (
                "health.livenessEndpointName",
                "livenessProbe",
                &settings.liveness_endpoint_name,
            ),
            (
                "health.readinessEndpointName",
                "readinessProbe",
                &settings.readiness_endpoint_name,
            ),
        ];
        for (setting, probe, name) in names {
            let Some(name) = name else { continue };
            let path = format!("/{}", name.trim_start_matches('/'));
            let container = container_mut(self.object, self.container);
            let http = container.and_then(|container| container.get_mut(probe)?.get_mut("httpGet"));
            match http.and_then(Value::as_object_mut) {
                Some(http) => {
                    http.insert("path".to_owned(), json!(path));
                    self.done(setting, format!("set the path of {probe} to {path}"));
                }
                None => self.ignored(setting, &format!("the container has no {probe} over HTTP")),
            }
        }
    }
}

fn described(was: Was, name: &str, value: &str) -> String {
    match was {
        Was::Absent => format!("added --{name}={value}"),
        Was::Different => format!("set --{name}={value}"),
        Was::Same => format!("--{name}={value} is so already"),
    }
}

/// The feature gates of the container, overridden by those in the settings.
fn merged_gates(args: &Arguments, gates: &BTreeMap<String, bool>) -> String {
    let texts = args.all("feature-gates");
    let pairs = texts
        .iter()
        .flat_map(|text| text.split(','))
        .filter_map(|pair| pair.trim().split_once('='));
    let mut out: BTreeMap<&str, String> = pairs.map(|(name, on)| (name, on.to_owned())).collect();
    out.extend(gates.iter().map(|(name, on)| (name.as_str(), on.to_string())));
    out.iter()
        .map(|(name, on)| format!("{name}={on}"))
        .collect::<Vec<_>>()
        .join(",")
}
