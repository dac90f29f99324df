//! Finds the programs.

use std::path::{Path, PathBuf};

use crate::{StartError, missing};

/// The programs of a control plane, as files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    folder: PathBuf,
}

impl Tools {
    /// The programs that a control plane needs.
    pub const NEEDED: [&'static str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];

    /// The programs in a folder.
    pub fn of(folder: &Path) -> Result<Self, StartError> {
        let is_missing = |name: &&str| !folder.join(name).is_file();
        let missing: Vec<&'static str> = Self::NEEDED.into_iter().filter(is_missing).collect();
        if missing.is_empty() {
            Ok(Self {
                folder: folder.to_owned(),
            })
        } else {
            Err(StartError::NotBuilt {
                folder: folder.to_owned(),
                missing,
            })
        }
    }

    /// The programs in the folder `WINDLASS_TOOLS`, else in `target/tools` of the checkout.
    pub fn find() -> Result<Self, StartError> {
        Self::of(&Self::default_folder())
    }

    /// Another program that `cargo xtask tools` builds, such as helm.
    pub fn program(name: &'static str) -> Result<PathBuf, StartError> {
        let folder = Self::default_folder();
        let path = folder.join(name);
        if path.is_file() {
            return Ok(path);
        }
        let missing = vec![name];
        Err(StartError::NotBuilt { folder, missing })
    }

    /// [`Self::program`] for a test. Without the program, the test is left out and a line says so; in strict mode it fails
    /// ([`missing`]).
    pub fn required(name: &'static str) -> Option<PathBuf> {
        missing::required(Self::program(name))
    }

    /// The programs of a control plane for a test, as [`Tools::required`].
    pub fn required_control_plane() -> Option<Self> {
        missing::required(Self::find())
    }

    fn default_folder() -> PathBuf {
        let named = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty());
        if let Some(folder) = named("WINDLASS_TOOLS") {
            return folder.into();
        }
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let target = named("CARGO_TARGET_DIR").map_or_else(|| checkout.join("target"), PathBuf::from);
        target.join("tools")
    }

    /// The file of a program, which need not be one of [`Tools::NEEDED`].
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_reported_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("etcd"), "").unwrap();
        let error = Tools::of(folder.path()).unwrap_err().to_string();
        assert!(
            error.starts_with("kube-apiserver, kube-controller-manager not in") && error.contains("cargo xtask tools"),
            "{error}"
        );
        for name in Tools::NEEDED {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert!(Tools::of(folder.path()).is_ok());
    }
}
