//! How many objects of each kind there were at the recorded moments, from the list of every change.

use std::collections::{BTreeMap, BTreeSet};

/// Numbers of objects by kind.
pub(crate) type Counts = BTreeMap<String, usize>;

/// What was there after each request, in order: lines that begin with `#` ask for something.
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
