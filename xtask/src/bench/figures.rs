//! Measured figures, as a table and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Mebibytes,
    /// Millions of bytes.
    Megabytes,
    Count,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::Seconds => format!("{value:.2} s"),
            Self::Mebibytes => format!("{value:.0} MiB"),
            Self::Megabytes => format!("{value:.1} MB"),
            Self::Count => format!("{value:.1}"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Mebibytes => "MiB",
            Self::Megabytes => "MB",
            Self::Count => "1",
        }
    }
}

/// One figure, measured once or more.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    what: String,
    unit: Unit,
    values: Vec<f64>,
    target: Option<f64>,
}

impl Figure {
    /// A figure with the values of all runs; a target is an upper limit.
    pub(super) fn new(what: impl Into<String>, unit: Unit, values: Vec<f64>, target: Option<f64>) -> Self {
        Self {
            what: what.into(),
            unit,
            values,
            target,
        }
    }

    /// The median; of an even number, the mean of the two in the middle.
    fn median(&self) -> f64 {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            count if count % 2 == 1 => sorted[count / 2],
            count => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
        }
    }

    fn verdict(&self) -> &'static str {
        match self.target {
            None => "",
            Some(target) if self.median() <= target => "met",
            Some(_) => "MISSED",
        }
    }
}

/// All figures, and the machine.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    machine: String,
    measured: Vec<Figure>,
    details: Vec<(String, f64)>,
}

impl Figures {
    /// No figures yet.
    pub(super) fn of_this_machine() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let memory = read("/proc/meminfo").lines().find_map(|line| {
            line.strip_prefix("MemTotal:")?
                .trim()
                .strip_suffix(" kB")?
                .parse::<u64>()
                .ok()
        });
        let load = read("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" ");
        let memory = memory.map_or_else(|| "?".to_owned(), |kib| (kib >> 20).to_string());
        Self {
            machine: format!("{cores} cores, {memory} GiB; load {load} at the start"),
            measured: Vec::new(),
            details: Vec::new(),
        }
    }

    /// Adds a figure.
    pub(super) fn add(&mut self, figure: Figure) {
        self.measured.push(figure);
    }

    /// Adds a count that explains a figure.
    pub(super) fn detail(&mut self, what: String, value: f64) {
        self.details.push((what, value));
    }

    /// The figures as a table.
    pub(super) fn text(&self) -> String {
        let width = self
            .measured
            .iter()
            .map(|figure| figure.what.len())
            .chain([6])
            .max()
            .unwrap_or_default();
        let mut text = format!(
            "{}\n\n{:<width$}  {:>10}  {:>10}  {:<6}  RUNS\n",
            self.machine, "FIGURE", "MEDIAN", "TARGET", ""
        );
        for figure in &self.measured {
            let target = figure.target.map_or_else(String::new, |target| {
                format!("<= {}", figure.unit.show(target).trim_end_matches(".0"))
            });
            let runs: Vec<String> = figure.values.iter().map(|value| format!("{value:.2}")).collect();
            let line = format!(
                "{:<width$}  {:>10}  {target:>10}  {:<6}  {}",
                figure.what,
                figure.unit.show(figure.median()),
                figure.verdict(),
                runs.join(" ")
            );
            text.push_str(line.trim_end());
            text.push('\n');
        }
        let mut details = self.details.clone();
        details.sort_by(|a, b| b.1.total_cmp(&a.1));
        if !details.is_empty() {
            text.push('\n');
        }
        for (what, value) in details {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{value:>8.2}  {what}");
        }
        text
    }

    /// The figures as a JSON document.
    pub(super) fn json(&self) -> Value {
        let figures: Vec<Value> = self
            .measured
            .iter()
            .map(|figure| {
                json!({"what": figure.what, "unit": figure.unit.name(), "median": figure.median(), "target": figure.target, "runs": figure.values})
            })
            .collect();
        let details: Vec<Value> = self
            .details
            .iter()
            .map(|(what, value)| json!({"what": what, "value": value}))
            .collect();
        json!({"machine": self.machine, "figures": figures, "details": details})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_the_middle() {
        let check = |values: &[f64], expect: f64| {
            let found = Figure::new("", Unit::Count, values.to_vec(), None).median();
            assert!((found - expect).abs() < 1e-9, "{values:?}: {found}");
        };
        check(&[3.0], 3.0);
        check(&[9.0, 1.0, 2.0], 2.0);
        check(&[4.0, 1.0], 2.5);
        assert!(Figure::new("", Unit::Count, Vec::new(), None).median().is_nan());
    }

    #[test]
    fn a_target_is_shown_beside_its_figure() {
        let mut figures = Figures::of_this_machine();
        figures.add(Figure::new(
            "fast enough",
            Unit::Seconds,
            vec![1.0, 2.0, 3.0],
            Some(5.0),
        ));
        figures.add(Figure::new("too fat", Unit::Mebibytes, vec![700.4], Some(600.0)));
        let text = figures.text();
        assert!(
            text.contains("2.00 s   <= 5.00 s  met") && text.contains("700 MiB  <= 600 MiB  MISSED"),
            "{text}"
        );
        assert_eq!(figures.json()["figures"][0]["median"], 2.0);
    }
}
