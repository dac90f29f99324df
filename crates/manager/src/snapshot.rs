//! Saves the objects of an embedded server to one file, and restores them. Certificates are not included: a folder that has some keeps
//! them, another one gets new ones.

use std::path::Path;

use windlass_store::snapshot;

pub use windlass_store::snapshot::Summary;

use crate::ManagerError;
use crate::embedded::STORE;

/// Saves the contents of a data folder to a new file, with or without a running server.
pub fn save(data_dir: &Path, file: &Path) -> Result<Summary, ManagerError> {
    Ok(snapshot::save(&data_dir.join(STORE), file)?)
}

/// Restores the objects of a file into a data folder without objects.
pub fn restore(file: &Path, data_dir: &Path) -> Result<Summary, ManagerError> {
    Ok(snapshot::restore(file, &data_dir.join(STORE))?)
}
