//! Commands, options and environment variables, from clap and from the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command, CommandFactory as _};
use regex::Regex;

use super::{code, table};
use crate::sources;

#[path = "../../../crates/cli/src/args.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "only the definition of the command line is used here"
)]
mod args;

/// The page.
pub(super) fn page(root: &Path) -> Result<String, String> {
    let mut command = args::Args::command();
    command.build();
    let mut text = "# Commands, options and environment variables\n\n".to_owned();
    let global: Vec<&Arg> = command.get_arguments().filter(|arg| arg.is_global_set()).collect();
    text.push_str("## All commands\n\n");
    text.push_str(&options(global.into_iter()));
    for child in command.get_subcommands() {
        describe(child, "windlass", &mut text);
    }
    text.push_str("## Environment variables\n\n");
    let mut variables = BTreeMap::new();
    from_options(&command, &mut variables);
    for name in read_by_code(root)? {
        variables.entry(name).or_default();
    }
    let rows: Vec<Vec<String>> = variables
        .into_iter()
        .map(|(name, options)| vec![code(&name), options.into_iter().collect::<Vec<_>>().join(", ")])
        .collect();
    text.push_str(&table(&["variable", "sets the option"], &rows));
    Ok(text)
}

fn describe(command: &Command, parent: &str, text: &mut String) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = format!("{parent} {}", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = write!(text, "## {name}\n\n{about}.\n\n");
    let own = command.get_arguments().filter(|arg| !arg.is_global_set());
    text.push_str(&options(own));
    for child in command.get_subcommands() {
        describe(child, &name, text);
    }
}

fn shown(arg: &Arg) -> bool {
    !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str())
}

fn options<'a>(arguments: impl Iterator<Item = &'a Arg>) -> String {
    let rows: Vec<Vec<String>> = arguments
        .filter(|arg| shown(arg))
        .map(|arg| {
            let values: Vec<&str> = arg
                .get_value_names()
                .unwrap_or_default()
                .iter()
                .map(AsRef::as_ref)
                .collect();
            let takes_value = arg.get_action().takes_values();
            let name = match arg.get_long() {
                Some(long) if takes_value => format!("--{long} {}", values.join(" ")),
                Some(long) => format!("--{long}"),
                None => values.join(" "),
            };
            let defaults: Vec<_> = arg
                .get_default_values()
                .iter()
                .map(|value| value.to_string_lossy())
                .collect();
            let default = if takes_value { defaults.join(",") } else { String::new() };
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            vec![code(name.trim()), code(&default), help]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    table(&["option", "default", "meaning"], &rows)
}

fn from_options(command: &Command, variables: &mut BTreeMap<String, BTreeSet<String>>) {
    for arg in command.get_arguments() {
        if let (Some(variable), Some(long)) = (arg.get_env(), arg.get_long()) {
            let options = variables.entry(variable.to_string_lossy().into_owned()).or_default();
            options.insert(code(&format!("--{long}")));
        }
    }
    for child in command.get_subcommands() {
        from_options(child, variables);
    }
}

/// The variables that product code reads by a literal name.
fn read_by_code(root: &Path) -> Result<BTreeSet<String>, String> {
    let pattern = Regex::new(r#"env::var(?:_os)?\(\s*"([A-Za-z_]+)"|"((?:HTTPS?|ALL|NO)_PROXY)""#)
        .map_err(|error| error.to_string())?;
    let mut found = BTreeSet::new();
    for text in sources::product(root)?.values() {
        let names = pattern
            .captures_iter(text)
            .filter_map(|captures| captures.get(1).or(captures.get(2)));
        found.extend(names.map(|name| name.as_str().to_owned()));
    }
    Ok(found)
}
