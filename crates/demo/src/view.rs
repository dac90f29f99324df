//! Shows the objects while they change: redrawn in place on a terminal, as lines of changes elsewhere.

use std::time::{Duration, Instant};

use super::item::Item;
use super::table;
use super::world::World;
use crate::error::DemoError;
use crate::terminal::{BOLD, DIM, Terminal, styled};

/// Time between two drawings on a terminal.
const FRAME: Duration = Duration::from_millis(80);

enum Form {
    /// The tree, redrawn, with the number of its lines on the screen.
    Live { drawn: usize },
    /// Lines of changes.
    Lines,
    /// Nothing.
    Silent,
}

/// The current view.
pub(crate) struct View<'a> {
    terminal: &'a dyn Terminal,
    form: Form,
    started: Instant,
    clusters: usize,
    title: String,
    last: Instant,
    is_stale: bool,
}

impl<'a> View<'a> {
    /// A view of this many clusters; silent when `quiet`.
    pub(crate) fn new(terminal: &'a dyn Terminal, clusters: usize, quiet: bool, started: Instant) -> Self {
        let form = match (quiet, terminal.is_terminal()) {
            (true, _) => Form::Silent,
            (false, true) => Form::Live { drawn: 0 },
            (false, false) => Form::Lines,
        };
        Self {
            terminal,
            form,
            started,
            clusters,
            title: String::new(),
            last: started,
            is_stale: false,
        }
    }

    fn clock(&self) -> String {
        format!("{:8.3}s", self.started.elapsed().as_secs_f64())
    }

    /// A step begins.
    pub(crate) fn begin(&mut self, title: &str, world: &World) -> Result<(), DemoError> {
        title.clone_into(&mut self.title);
        match self.form {
            Form::Live { .. } => self.draw(world),
            Form::Lines => self.terminal.line(&format!("{} {}", self.clock(), styled(BOLD, title))),
            Form::Silent => Ok(()),
        }
    }

    /// A line that stays.
    pub(crate) fn say(&mut self, line: &str) -> Result<(), DemoError> {
        match self.form {
            Form::Silent => Ok(()),
            Form::Lines => self.terminal.line(line),
            Form::Live { .. } => {
                self.erase()?;
                self.terminal.line(line)
            }
        }
    }

    /// An object changed.
    pub(crate) fn changed(&mut self, before: Option<&Item>, after: Option<&Item>) -> Result<(), DemoError> {
        match self.form {
            Form::Live { .. } => self.is_stale = true,
            Form::Silent => {}
            Form::Lines => {
                let item = after.or(before);
                let is_shown = item.is_some_and(|item| match item.id.kind.as_str() {
                    "KubeadmConfig" | "DevMachine" => false,
                    "Cluster" => true,
                    _ => self.clusters <= table::FEW,
                });
                if let Some(line) = table::change(before, after).filter(|_| is_shown) {
                    self.terminal
                        .line(&format!("{}   {line}", styled(DIM, &self.clock())))?;
                }
            }
        }
        Ok(())
    }

    /// When the screen must be redrawn, if it must.
    pub(crate) fn due(&self) -> Option<Instant> {
        (self.is_stale && matches!(self.form, Form::Live { .. })).then(|| self.last + FRAME)
    }

    /// Redraws if it is due.
    pub(crate) fn tick(&mut self, world: &World) -> Result<(), DemoError> {
        match self.due() {
            Some(due) if due <= Instant::now() => self.draw(world),
            _ => Ok(()),
        }
    }

    /// Ends a step: a small tree stays on the screen.
    pub(crate) fn end(&mut self, world: &World, line: &str) -> Result<(), DemoError> {
        match self.form {
            Form::Live { .. } => {
                self.draw(world)?;
                self.erase()?;
                self.terminal.line(line)
            }
            Form::Lines => self.terminal.line(&format!("{} {line}", self.clock())),
            Form::Silent => Ok(()),
        }
    }

    /// Prints the tree; nothing if changes were printed as lines.
    pub(crate) fn picture(&mut self, world: &World) -> Result<(), DemoError> {
        if matches!(self.form, Form::Silent) {
            return Ok(());
        }
        self.erase()?;
        let (width, _) = size();
        for line in self.lines(world, width) {
            self.terminal.line(&line)?;
        }
        Ok(())
    }

    fn lines(&self, world: &World, width: usize) -> Vec<String> {
        if self.clusters > table::FEW {
            return vec![table::summary(world, self.clusters)];
        }
        let names: Vec<String> = world.clusters().map(|cluster| cluster.id.name.clone()).collect();
        names.iter().flat_map(|name| table::tree(world, name, width)).collect()
    }

    fn draw(&mut self, world: &World) -> Result<(), DemoError> {
        self.erase()?;
        let (width, height) = size();
        let mut lines = vec![format!("{} {}", self.clock(), styled(BOLD, &self.title))];
        lines.extend(self.lines(world, width));
        let room = height.saturating_sub(2).max(3);
        if lines.len() > room {
            let more = lines.len() - room + 1;
            lines.truncate(room - 1);
            lines.push(styled(DIM, &format!("… {more} more")));
        }
        self.terminal.text(&(lines.join("\n") + "\n"))?;
        self.form = Form::Live { drawn: lines.len() };
        self.last = Instant::now();
        self.is_stale = false;
        Ok(())
    }

    /// Removes the drawn lines from the screen.
    fn erase(&mut self) -> Result<(), DemoError> {
        if let Form::Live { drawn } = self.form
            && drawn > 0
        {
            self.terminal.control(&format!("\x1b[{drawn}A\x1b[J"))?;
            self.form = Form::Live { drawn: 0 };
        }
        Ok(())
    }
}

/// Columns and lines of the terminal.
fn size() -> (usize, usize) {
    terminal_size::terminal_size().map_or((120, 50), |(width, height)| (width.0.into(), height.0.into()))
}
