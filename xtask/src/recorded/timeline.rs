//! The numbers of objects by kind at the recorded moments, and the events, from the list of all changes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Numbers of objects by kind.
pub(crate) type Counts = BTreeMap<String, usize>;

/// The timeline key of an event: kind of the object; type, reason and reporter of the event.
pub(crate) type Told = (String, String);

/// All events in the list: time, `EVENT`, object, type, reason, count, message, reporter.
pub(crate) fn events(text: &str) -> BTreeSet<Told> {
    let told = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [_, "EVENT", object, type_, reason, _, _, reporter] = cells[..] else {
            return None;
        };
        let kind = object.split_once('/').map_or(object, |(kind, _)| kind);
        Some(one_event(kind, type_, reason, reporter))
    };
    text.lines().filter_map(told).collect()
}

/// The events about objects whose names have this prefix.
pub(crate) fn events_about(objects: &[Value], prefix: &str) -> BTreeSet<Told> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let about = objects
        .iter()
        .filter(|event| text(&event["involvedObject"]["name"]).starts_with(prefix));
    let told = about.map(|event| {
        let kind = text(&event["involvedObject"]["kind"]);
        let reporter = event["source"]["component"].as_str().filter(|name| !name.is_empty());
        let reporter = reporter.map_or_else(|| text(&event["reportingComponent"]), str::to_owned);
        one_event(&kind, &text(&event["type"]), &text(&event["reason"]), &reporter)
    });
    told.collect()
}

fn one_event(kind: &str, type_: &str, reason: &str, reporter: &str) -> Told {
    (kind.to_owned(), format!("event {type_} {reason} by {reporter}"))
}

/// The objects after each request, in order: lines that begin with `#` are requests.
pub(crate) fn moments(text: &str) -> Vec<Counts> {
    let mut there: BTreeSet<&str> = BTreeSet::new();
    let mut moments = Vec::new();
    let mut asked = false;
    for line in text.lines() {
        if line.starts_with('#') {
            if asked {
                moments.push(counts(&there));
            }
            asked = true;
            continue;
        }
        let mut cells = line.split('\t').skip(1);
        match (cells.next(), cells.next()) {
            (Some("ADDED"), Some(object)) => drop(there.insert(object)),
            (Some("DELETED"), Some(object)) => drop(there.remove(object)),
            _ => {}
        }
    }
    moments.push(counts(&there));
    moments
}

fn counts(objects: &BTreeSet<&str>) -> Counts {
    let mut counts = Counts::new();
    for object in objects {
        let kind = object.split_once('/').map_or(*object, |(kind, _)| kind);
        *counts.entry(kind.to_owned()).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_compared_by_kind_type_reason_and_reporter() {
        let text =
            "2.79\tEVENT\tCluster/c\tNormal\tTopologyCreate\t1\tCreated X \"a/b\"\ttopology/cluster-controller\n";
        let event = |name: &str| {
            serde_json::json!({"involvedObject": {"kind": "Cluster", "name": name}, "type": "Normal", "reason": "TopologyCreate",
                "source": {"component": "topology/cluster-controller"}})
        };
        let expect = (
            "Cluster".to_owned(),
            "event Normal TopologyCreate by topology/cluster-controller".to_owned(),
        );
        assert_eq!(events(text), BTreeSet::from([expect.clone()]));
        assert_eq!(
            events_about(&[event("c"), event("other")], "c"),
            BTreeSet::from([expect])
        );
    }

    #[test]
    fn objects_are_counted_when_the_next_thing_is_asked_for() {
        let text = "# create\n1\tADDED\tMachine/a\tx\n1\tADDED\tMachine/b\n2\tMODIFIED\tMachine/a\ty\n2\tEVENT\tCluster/c\tz\n\
                    # delete\n3\tDELETED\tMachine/a\t\n3\tADDED\tSecret/s\n";
        let expect = |list: &[(&str, usize)]| {
            list.iter()
                .map(|(kind, count)| ((*kind).to_owned(), *count))
                .collect::<Counts>()
        };
        assert_eq!(
            moments(text),
            [expect(&[("Machine", 2)]), expect(&[("Machine", 1), ("Secret", 1)])]
        );
    }
}
