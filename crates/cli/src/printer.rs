//! The only place that prints.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use windlass_demo::DemoError;
use windlass_demo::terminal::Terminal;
pub(crate) use windlass_demo::terminal::{BOLD, styled};

use crate::error::CliError;

/// Writes to standard output and standard error, with colours only on terminals (`NO_COLOR`, pipes).
#[derive(Debug)]
pub(crate) struct Printer {
    terminal: bool,
    colours: ColorChoice,
    error_colours: ColorChoice,
}

/// An error.
const ERROR: Style = AnsiColor::Red.on_default().bold();

impl Printer {
    /// Prints to the streams of the process.
    pub(crate) fn standard() -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self {
            terminal: io::stdout().is_terminal() && !dumb,
            colours: AutoStream::choice(&io::stdout()),
            error_colours: AutoStream::choice(&io::stderr()),
        }
    }

    /// Writes text at once; styles are removed unless the output supports them.
    pub(crate) fn text(&self, text: &str) -> Result<(), CliError> {
        Ok(self.write(text)?)
    }

    /// Writes a line.
    pub(crate) fn line(&self, line: &str) -> Result<(), CliError> {
        self.text(&format!("{line}\n"))
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut out = AutoStream::new(io::stdout().lock(), self.colours);
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Prints an error: one line, its explaining lines, and one for the hint. A failure to print is ignored.
    pub(crate) fn error(&self, error: &CliError) {
        let mut text = format!("{} {}\n", styled(ERROR, "error:"), error.line());
        for line in error.lines() {
            let _ = writeln!(text, "  {line}");
        }
        if let Some(hint) = error.hint() {
            let _ = writeln!(text, "{} {hint}", styled(BOLD, "hint:"));
        }
        let mut out = AutoStream::new(io::stderr().lock(), self.error_colours);
        let _ = out.write_all(text.as_bytes());
    }
}

impl Terminal for Printer {
    fn is_terminal(&self) -> bool {
        self.terminal
    }

    fn text(&self, text: &str) -> Result<(), DemoError> {
        Ok(self.write(text)?)
    }

    fn control(&self, text: &str) -> Result<(), DemoError> {
        if !self.terminal {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    }
}
