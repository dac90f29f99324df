//! The figures of both servers, side by side.

use std::fmt::Write as _;

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Milliseconds,
    PerSecond,
    Mebibytes,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::Seconds => format!("{value:.2} s"),
            Self::Milliseconds => format!("{value:.2} ms"),
            Self::PerSecond => format!("{value:.0} /s"),
            Self::Mebibytes => format!("{value:.0} MiB"),
        }
    }

    /// The factor by which the first value is better.
    fn ratio(self, ours: f64, real: f64) -> f64 {
        if self == Self::PerSecond {
            ours / real
        } else {
            real / ours
        }
    }
}

#[derive(Clone, Debug)]
struct Figure {
    what: String,
    unit: Unit,
    goal: Option<f64>,
    values: Vec<f64>,
}

/// The figures of one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table(Vec<Figure>);

impl Table {
    /// Adds the value of a run; `goal` is the desired factor.
    pub(crate) fn add(&mut self, what: &str, unit: Unit, goal: Option<f64>, value: f64) {
        match self.0.iter_mut().find(|figure| figure.what == what) {
            Some(figure) => figure.values.push(value),
            None => self.0.push(Figure {
                what: what.to_owned(),
                unit,
                goal,
                values: vec![value],
            }),
        }
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[count / 2],
        count => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
    }
}

/// Both tables as one, with the ratio of the medians and the spread of each.
pub(crate) fn side_by_side(ours: &Table, real: &Table) -> String {
    let mut out =
        String::from("| work | windlass | kube-apiserver + etcd | times better | goal |\n|---|---|---|---|---|\n");
    let spread = |figure: &Figure| {
        let least = figure.values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = figure.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let middle = figure.unit.show(median(&figure.values));
        match figure.values.len() {
            0 | 1 => middle,
            _ => format!("{middle} ({least:.2} to {most:.2})"),
        }
    };
    for figure in &ours.0 {
        let other = real.0.iter().find(|other| other.what == figure.what);
        let ratio = other.map(|other| figure.unit.ratio(median(&figure.values), median(&other.values)));
        let goal = match (figure.goal, ratio) {
            (Some(goal), Some(ratio)) => format!("{goal}: {}", if ratio >= goal { "met" } else { "MISSED" }),
            (Some(goal), None) => goal.to_string(),
            (None, _) => String::new(),
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {goal} |",
            figure.what,
            spread(figure),
            other.map_or("-".to_owned(), spread),
            ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_of_a_rate_and_less_of_a_time_is_better() {
        let (mut ours, mut real) = (Table::default(), Table::default());
        ours.add("a", Unit::PerSecond, Some(3.0), 300.0);
        real.add("a", Unit::PerSecond, Some(3.0), 100.0);
        ours.add("b", Unit::Milliseconds, Some(5.0), 2.0);
        real.add("b", Unit::Milliseconds, Some(5.0), 4.0);
        let text = side_by_side(&ours, &real);
        assert!(text.contains("| a | 300 /s | 100 /s | 3.00 | 3: met |"), "{text}");
        assert!(text.contains("| b | 2.00 ms | 4.00 ms | 2.00 | 5: MISSED |"), "{text}");
    }
}
