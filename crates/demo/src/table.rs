//! Formats the tree, changes, and missing items.

use anstyle::Style;

use super::item::{Item, Replicas};
use super::world::{Node, World};
use crate::terminal::{BAD, BOLD, DIM, GOOD, styled};

/// Headings of the columns.
const HEADINGS: [&str; 6] = ["NAME", "REPLICAS", "VERSION", "PHASE", "AVAILABLE", "READY"];
/// To how many characters names are cut.
const SHORTEST: usize = 16;
/// The largest number of clusters whose objects are all shown.
pub(crate) const FEW: usize = 3;

/// A line: text in columns, and the style of each.
struct Line {
    cells: [(String, Style); 6],
    why: String,
}

const PLAIN: Style = Style::new();

fn truth(status: &str) -> (String, Style) {
    let style = match status {
        "True" => GOOD,
        "" => PLAIN,
        _ => BAD,
    };
    (status.to_owned(), style)
}

fn replicas(replicas: Replicas) -> (String, Style) {
    let Some(wanted) = replicas.wanted else {
        return (String::new(), PLAIN);
    };
    let available = replicas.available.unwrap_or(0);
    let style = if available == wanted { GOOD } else { BAD };
    (format!("{available}/{wanted}"), style)
}

fn phase(item: &Item) -> (String, Style) {
    let text = if item.is_deleting && item.phase.is_empty() {
        "Deleting"
    } else {
        &item.phase
    };
    let style = match text {
        "Running" | "Provisioned" => GOOD,
        "Failed" => BAD,
        _ => PLAIN,
    };
    (text.to_owned(), style)
}

/// The first sentence of a message: a line that is only a heading is joined with the next one.
fn first_words(message: &str) -> Option<String> {
    let mut out = String::new();
    let lines = message.lines().map(|line| line.trim().trim_start_matches("* "));
    for line in lines.filter(|line| !line.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(line);
        if !line.ends_with(':') {
            break;
        }
    }
    (!out.is_empty()).then_some(out)
}

/// The reason and the first words of the message of a problem.
pub(crate) fn why(item: &Item) -> String {
    let Some(trouble) = item.trouble() else {
        return String::new();
    };
    match first_words(&trouble.message) {
        Some(message) if !trouble.reason.is_empty() => format!("{}: {message}", trouble.reason),
        Some(message) => message,
        None => trouble.reason.clone(),
    }
}

fn line(node: &Node<'_>) -> Line {
    let item = node.item;
    let name = format!("{}{}", node.prefix, item.id);
    let name_style = if item.id.kind == "Cluster" { BOLD } else { PLAIN };
    Line {
        cells: [
            (name, name_style),
            replicas(item.replicas),
            (item.version.clone(), PLAIN),
            phase(item),
            truth(item.status("Available")),
            truth(item.status("Ready")),
        ],
        why: why(item),
    }
}

/// Cuts text to a number of characters.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    if width == 0 {
        return String::new();
    }
    let mut short: String = text.chars().take(width - 1).collect();
    short.push('…');
    short
}

/// The tree of a cluster as lines of at most `width` characters, with headings.
pub(crate) fn tree(world: &World, cluster: &str, width: usize) -> Vec<String> {
    let lines: Vec<Line> = world.tree(cluster).iter().map(line).collect();
    let mut widths: Vec<usize> = (0..HEADINGS.len())
        .map(|column| {
            let cells = lines.iter().map(|line| line.cells[column].0.chars().count());
            cells.chain([HEADINGS[column].len()]).max().unwrap_or(0)
        })
        .collect();
    // Long names are cut first: what says how far an object is stays in sight.
    let too_many = (widths.iter().sum::<usize>() + 2 * (HEADINGS.len() - 1)).saturating_sub(width);
    widths[0] = widths[0].saturating_sub(too_many).max(SHORTEST.min(widths[0]));
    let headings = HEADINGS.map(|heading| (heading.to_owned(), DIM));
    let mut out = vec![row(&headings, &widths, "WHY", width)];
    out.extend(lines.iter().map(|line| row(&line.cells, &widths, &line.why, width)));
    out
}

fn row(cells: &[(String, Style); 6], widths: &[usize], why: &str, width: usize) -> String {
    let mut text = String::new();
    let mut left = width;
    for ((cell, style), column) in cells.iter().zip(widths) {
        if left == 0 {
            break;
        }
        let shown = cut(cell, left.min(*column));
        let padding = column - shown.chars().count().min(*column);
        left = left.saturating_sub(column + 2);
        if shown.is_empty() || *style == PLAIN {
            text.push_str(&shown);
        } else {
            text.push_str(&styled(*style, &shown));
        }
        if left > 0 {
            text.push_str(&" ".repeat(padding + 2));
        }
    }
    if !why.is_empty() && left > 8 {
        text.push_str(&styled(DIM, &cut(why, left)));
    }
    text.truncate(text.trim_end().len());
    text
}

/// One line that sums a fleet up.
pub(crate) fn summary(world: &World, wanted: usize) -> String {
    let clusters = world.clusters().count();
    let available = world.clusters().filter(|cluster| cluster.is("Available")).count();
    let machines = world.kind("Machine").count();
    let running = world.kind("Machine").filter(|machine| machine.is("Available")).count();
    let going = world.kind("Machine").filter(|machine| machine.is_deleting).count();
    let going = if going == 0 {
        String::new()
    } else {
        format!(", {going} going")
    };
    format!(
        "{available}/{wanted} clusters available ({clusters} there), {running}/{machines} machines available{going}"
    )
}

/// The visible changes; `None` without any.
pub(crate) fn change(before: Option<&Item>, after: Option<&Item>) -> Option<String> {
    let told = |item: &Item| {
        let mut words: Vec<String> = Vec::new();
        if item.is_deleting {
            words.push("deleting".to_owned());
        }
        words.extend(
            [item.phase.clone(), item.version.clone()]
                .into_iter()
                .filter(|word| !word.is_empty()),
        );
        words.extend(Some(replicas(item.replicas).0).filter(|text| !text.is_empty()));
        for kind in ["Available", "Ready"] {
            words.extend(
                Some(item.status(kind))
                    .filter(|s| !s.is_empty())
                    .map(|status| format!("{kind}={status}")),
            );
        }
        words.join(" ")
    };
    match (before, after) {
        (None, Some(after)) => Some(format!("{} created", after.id)),
        (Some(before), None) => Some(format!("{} gone", before.id)),
        (Some(before), Some(after)) if told(before) != told(after) => {
            let why = why(after);
            let why = if why.is_empty() {
                why
            } else {
                format!(" ({})", cut(&why, 100))
            };
            Some(format!("{} {}{why}", after.id, told(after)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::world::tests::{item, world};
    use super::*;

    fn bare(line: &str) -> String {
        anstream::adapter::strip_str(line).to_string()
    }

    #[test]
    fn a_message_is_shown_by_its_first_words() {
        let check = |message: &str, expect: Option<&str>| assert_eq!(first_words(message).as_deref(), expect);
        check("", None);
        check("\n* one\n* two", Some("one"));
        check(
            "* Workers:\n  * MachineDeployment d: none\n* more",
            Some("Workers: MachineDeployment d: none"),
        );
        check("only:", Some("only:"));
    }

    #[test]
    fn the_tree_is_a_table() {
        let world = world(vec![
            item(
                "Cluster",
                "c",
                "c",
                &[],
                &json!({"spec": {"topology": {"version": "v1.35.0"}}, "status": {"phase": "Provisioned", "conditions": [
                    {"type": "Available", "status": "False", "reason": "NotAvailable", "message": "* WorkersAvailable: 0 of 1"},
                ]}}),
            ),
            item(
                "MachineDeployment",
                "d",
                "d",
                &["c"],
                &json!({"spec": {"replicas": 1}, "status": {"availableReplicas": 0}}),
            ),
        ]);
        let lines: Vec<String> = tree(&world, "c", 100).iter().map(|line| bare(line)).collect();
        assert_eq!(
            lines,
            [
                "NAME                   REPLICAS  VERSION  PHASE        AVAILABLE  READY  WHY",
                "Cluster/c                        v1.35.0  Provisioned  False             NotAvailable: WorkersAvail…",
                "└─MachineDeployment/d  0/1",
            ]
        );
        // On a narrow terminal, names are cut before columns are lost.
        let narrow: Vec<String> = tree(&world, "c", 66).iter().map(|line| bare(line)).collect();
        assert_eq!(
            narrow[0],
            "NAME              REPLICAS  VERSION  PHASE        AVAILABLE  READY"
        );
        assert_eq!(narrow[2], "└─MachineDeploy…  0/1");
        for line in tree(&world, "c", 40) {
            assert!(bare(&line).chars().count() <= 40, "{line}");
        }
    }

    #[test]
    fn changes_are_shown_once() {
        let at = |phase: &str| {
            item(
                "Machine",
                "m",
                "m",
                &[],
                &json!({"status": {"phase": phase, "nodeRef": {"name": phase}}}),
            )
        };
        assert_eq!(change(None, Some(&at("Pending"))).unwrap(), "Machine/m created");
        assert_eq!(change(Some(&at("Pending")), Some(&at("Pending"))), None);
        assert_eq!(
            change(Some(&at("Pending")), Some(&at("Running"))).unwrap(),
            "Machine/m Running"
        );
        assert_eq!(change(Some(&at("Running")), None).unwrap(), "Machine/m gone");
    }

    #[test]
    fn a_fleet_is_summed_up() {
        let available = json!({"status": {"conditions": [{"type": "Available", "status": "True"}]}});
        let world = world(vec![
            item("Cluster", "a", "a", &[], &available),
            item("Cluster", "b", "b", &[], &json!({})),
            item("Machine", "m", "m", &[], &available),
        ]);
        assert_eq!(
            summary(&world, 2),
            "1/2 clusters available (2 there), 1/1 machines available"
        );
    }
}
