//! How many objects of each kind are reconciled at a time: an option of Cluster API's managers for each controller.

use std::num::NonZeroU16;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use windlass_manager::{CONCURRENCY_OPTIONS, Concurrency};

/// The options that are given.
#[derive(Clone, Debug, Default)]
pub(super) struct ConcurrencyArgs(pub(super) Concurrency);

impl Args for ConcurrencyArgs {
    fn augment_args(command: Command) -> Command {
        let args = CONCURRENCY_OPTIONS.iter().map(|option| {
            let help = format!(
                "How many objects the controllers {} reconcile at a time, each [default: {}]",
                option.controllers.join(", "),
                option.default
            );
            let help = match option.controllers {
                [one] => format!(
                    "How many objects the controller {one} reconciles at a time [default: {}]",
                    option.default
                ),
                _ => help,
            };
            Arg::new(option.name)
                .long(option.name)
                .value_name("N")
                .value_parser(value_parser!(NonZeroU16))
                .help_heading("Objects to reconcile")
                .help(help)
        });
        command.args(args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ConcurrencyArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut all = Self::default();
        all.update_from_arg_matches(matches)?;
        Ok(all)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for option in CONCURRENCY_OPTIONS {
            if let Some(most) = matches.get_one::<NonZeroU16>(option.name) {
                self.0.set(option, *most);
            }
        }
        Ok(())
    }
}
