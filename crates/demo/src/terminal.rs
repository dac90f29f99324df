//! The output of the demo, with styles. The program that runs the demo owns the streams.

use anstyle::{AnsiColor, Style};

use crate::error::DemoError;

/// Good.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Not ready, or failed.
pub const BAD: Style = AnsiColor::Yellow.on_default();
/// A heading.
pub const BOLD: Style = Style::new().bold();
/// Less important.
pub const DIM: Style = Style::new().dimmed();

/// Text in a style.
pub fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Standard output.
pub trait Terminal: Sync {
    /// Whether lines can be redrawn.
    fn is_terminal(&self) -> bool;

    /// Writes text at once; styles are removed unless the output supports them.
    fn text(&self, text: &str) -> Result<(), DemoError>;

    /// Writes control sequences on a terminal; writes nothing elsewhere.
    fn control(&self, text: &str) -> Result<(), DemoError>;

    /// Writes a line.
    fn line(&self, line: &str) -> Result<(), DemoError> {
        self.text(&format!("{line}\n"))
    }
}
