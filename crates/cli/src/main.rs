//! The program `windlass`.

mod args;
mod commands;
mod error;
mod logging;
mod printer;
mod signals;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::args::{Args, Command};
use crate::error::CliError;
use crate::printer::Printer;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(unusable) => return explained(&unusable),
    };
    let printer = Printer::standard();
    let level = args.log.level().unwrap_or_else(|| args.command.log_level());
    logging::start(level, args.command.etcd_log_level(), args.log.format);
    let result = run(args, &printer);
    windlass_pki::stop_generating();
    match result {
        Ok(code) => code,
        // The reader of the output has closed it.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            if !error.is_reported() {
                printer.error(&error);
            }
            error.exit_code()
        }
    }
}

/// Prints help, or what is wrong with the arguments. That is exit code 2, except where 2 has another meaning.
fn explained(unusable: &clap::Error) -> ExitCode {
    // A failure to print is ignored.
    let _ = unusable.print();
    if !unusable.use_stderr() {
        return ExitCode::SUCCESS;
    }
    let is_plan =
        command_of(std::env::args_os().skip(1)).is_some_and(|command| command == "plan" || command == "adopt");
    ExitCode::from(if is_plan { 1 } else { 2 })
}

/// The command of a command line that is not right: the first argument that is neither an option of the program nor the value of one.
fn command_of(arguments: impl IntoIterator<Item = OsString>) -> Option<OsString> {
    let program = Args::command();
    let takes_value = |option: &str| {
        let of_name = |known: &&clap::Arg| known.get_long().is_some_and(|long| option == format!("--{long}"));
        let known = program.get_arguments().find(of_name);
        known.is_some_and(|known| known.get_action().takes_values())
    };
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        if !text.starts_with('-') {
            return Some(argument);
        }
        if takes_value(&text) {
            arguments.next();
        }
    }
    None
}

fn run(args: Args, printer: &Printer) -> Result<ExitCode, CliError> {
    let done = |()| ExitCode::SUCCESS;
    // Commands that only read files and print.
    let command = match args.command {
        Command::Crds => return commands::crds::run(printer).map(done),
        Command::Lint(args) => return commands::lint::run(&args, printer).map(done),
        Command::Test(args) => return commands::test::run(&args, printer).map(done),
        command => command,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| CliError::failed("cannot start the runtime", source))?;
    runtime.block_on(async {
        match command {
            Command::Demo(args) => commands::demo::run(args, printer).await?,
            Command::Up(args) => commands::up::run(args, printer).await?,
            Command::Manager(args) => commands::manager::run(args, printer).await?,
            Command::Apiserver(args) => commands::apiserver::run(args, printer).await?,
            Command::Adopt(args) => return commands::adopt::run(args, printer).await,
            Command::Plan(args) => return commands::plan::run(args, printer).await,
            Command::Crds | Command::Lint(_) | Command::Test(_) => {}
        }
        Ok(ExitCode::SUCCESS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_found_in_a_command_line_that_is_not_right() {
        let command =
            |line: &str| command_of(line.split(' ').map(OsString::from)).and_then(|found| found.into_string().ok());
        for (line, expect) in [
            ("plan --bogus", Some("plan")),
            ("--bogus plan", Some("plan")),
            ("--log-level warn plan", Some("plan")),
            ("--log-level=warn plan -f x --bogus", Some("plan")),
            ("--log-level plan lint --bogus", Some("lint")),
            ("lint --bogus plan", Some("lint")),
            ("manager --namespace plan --bogus", Some("manager")),
            ("--bogus", None),
        ] {
            assert_eq!(command(line).as_deref(), expect, "{line}");
        }
    }
}
