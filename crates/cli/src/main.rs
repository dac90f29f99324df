//! The program `windlass`.

mod args;
mod commands;
mod error;
mod logging;
mod printer;
mod signals;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Args, Command};
use crate::error::CliError;
use crate::printer::Printer;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Prints help or argument errors (exit code 2) by itself.
    let args = Args::parse();
    let printer = Printer::standard();
    let level = args.log_level.unwrap_or_else(|| args.command.log_level());
    logging::start(level, args.log_format);
    let result = run(args, &printer);
    windlass_pki::stop_generating();
    match result {
        Ok(()) => ExitCode::SUCCESS,
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

fn run(args: Args, printer: &Printer) -> Result<(), CliError> {
    // Commands that only read files and print.
    let command = match args.command {
        Command::Crds => return commands::crds::run(printer),
        Command::Lint(args) => return commands::lint::run(&args, printer),
        Command::Test(args) => return commands::test::run(&args, printer),
        command => command,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| CliError::failed("cannot start the runtime", source))?;
    runtime.block_on(async {
        match command {
            Command::Demo(args) => commands::demo::run(args, printer).await,
            Command::Up(args) => commands::up::run(args, printer).await,
            Command::Manager(args) => commands::manager::run(args, printer).await,
            Command::Apiserver(args) => commands::apiserver::run(args, printer).await,
            Command::Crds | Command::Lint(_) | Command::Test(_) => Ok(()),
        }
    })
}
