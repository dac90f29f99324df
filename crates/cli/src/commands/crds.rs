//! `windlass crds`.

use windlass_manager::registry::{crds, kinds};

use crate::error::CliError;
use crate::printer::Printer;

/// Prints all CustomResourceDefinitions.
pub(crate) fn run(printer: &Printer) -> Result<(), CliError> {
    let mut text = String::new();
    for (index, crd) in kinds::published_crds().iter().enumerate() {
        if index > 0 {
            text.push_str("---\n");
        }
        text.push_str(&crds::to_yaml(crd).map_err(|why| CliError::plain(why, None))?);
    }
    printer.text(&text)
}
