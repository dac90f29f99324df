//! What an embedded server stores in one file, and back. Certificates are no part of it: a folder that has some keeps them, another
//! gets new ones.

use std::path::Path;

use windlass_store::snapshot;

pub use windlass_store::snapshot::Summary;

use crate::ManagerError;
use crate::embedded::STORE;

/// Saves what a data folder holds, whether a server is using it or not, into a file that must not exist.
pub fn save(data_dir: &Path, file: &Path) -> Result<Summary, ManagerError> {
    Ok(snapshot::save(&data_dir.join(STORE), file)?)
}

/// Has a data folder without objects hold those of a file.
pub fn restore(file: &Path, data_dir: &Path) -> Result<Summary, ManagerError> {
    Ok(snapshot::restore(file, &data_dir.join(STORE))?)
}
