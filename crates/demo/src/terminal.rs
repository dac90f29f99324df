//! Where the demo writes, and in which styles. The program that runs the demo owns the streams.

use anstyle::{AnsiColor, Style};

use crate::error::DemoError;

/// Good.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Not yet, or not well.
pub const BAD: Style = AnsiColor::Yellow.on_default();
/// A heading.
pub const BOLD: Style = Style::new().bold();
/// Beside the point.
pub const DIM: Style = Style::new().dimmed();

/// Text in a style.
pub fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Standard output, as the program writes it.
pub trait Terminal: Sync {
    /// Whether lines can be redrawn.
    fn is_terminal(&self) -> bool;

    /// Writes text at once; styles are dropped where they are not wanted.
    fn text(&self, text: &str) -> Result<(), DemoError>;

    /// Writes control sequences, which stay even where styles are not wanted; writes nothing where there is no terminal.
    fn control(&self, text: &str) -> Result<(), DemoError>;

    /// Writes a line.
    fn line(&self, line: &str) -> Result<(), DemoError> {
        self.text(&format!("{line}\n"))
    }
}
