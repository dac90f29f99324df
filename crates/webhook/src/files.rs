//! A certificate of the user, in files with the names that Kubernetes uses for mounted Secrets.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use rustls::sign::CertifiedKey;
use windlass_pki::Certificate;

use crate::certified::{accepted, certified};

/// The files of a folder.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Files {
    certificate: String,
    key: String,
    /// The authorities to trust; `None` leaves them to other field managers.
    pub(crate) authorities: Option<String>,
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").finish_non_exhaustive()
    }
}

impl Files {
    /// Reads `tls.crt`, `tls.key` and, if it exists, `ca.crt`.
    pub(crate) fn read(folder: &Path) -> Result<Self, String> {
        let read = |name: &str| fs::read_to_string(folder.join(name)).map_err(|error| format!("{name}: {error}"));
        let authorities = match fs::read_to_string(folder.join("ca.crt")) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(format!("ca.crt: {error}")),
        };
        Ok(Self {
            certificate: read("tls.crt")?,
            key: read("tls.key")?,
            authorities,
        })
    }

    /// The TLS configuration, if API servers accept the certificate for these names.
    pub(crate) fn certified(&self, names: &[String], now: Timestamp) -> Result<Arc<CertifiedKey>, String> {
        let pair = certified(&self.certificate, &self.key).map_err(|why| format!("tls.crt and tls.key: {why}"))?;
        let chain = Certificate::all_from_pem(&self.certificate).map_err(|error| format!("tls.crt: {error}"))?;
        if let Some(last) = chain
            .iter()
            .map(Certificate::not_after)
            .min()
            .filter(|last| *last <= now)
        {
            return Err(format!("tls.crt: it was valid until {last}"));
        }
        if let Some(text) = &self.authorities {
            let authorities = Certificate::all_from_pem(text).map_err(|error| format!("ca.crt: {error}"))?;
            if authorities.is_empty() {
                return Err("ca.crt: there is no certificate in it".to_owned());
            }
            // Service names have two forms, and API servers request the first one.
            for name in names.iter().take(1) {
                accepted(&authorities, &chain, name, now).map_err(|why| {
                    format!("an API server that trusts ca.crt would not accept tls.crt for {name}: {why}")
                })?;
            }
        }
        Ok(pair)
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::material::Material;

    #[test]
    fn bad_files_are_reported_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["a.b.svc".to_owned()];
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        let good = Material::make(None, &names, now).unwrap();
        let other = Material::make(None, &names, now).unwrap();
        let check = |change: &dyn Fn(&mut Material), names: &[String], now: Timestamp, expect: Option<&str>| {
            let mut material = good.clone();
            change(&mut material);
            let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
            write("tls.crt", &material.certificate);
            write("tls.key", &material.key);
            write("ca.crt", &material.authorities);
            let result = Files::read(folder.path()).and_then(|files| files.certified(names, now).map(drop));
            match (&result, expect) {
                (Ok(()), None) => {}
                (Err(why), Some(part)) => assert!(why.contains(part) && !why.contains("PRIVATE"), "{why}"),
                _ => panic!("{result:?} is not {expect:?}"),
            }
        };
        assert!(Files::read(folder.path()).unwrap_err().starts_with("tls.crt: "));
        check(&|_| {}, &names, now, None);
        check(&|material| material.certificate.clear(), &names, now, Some("tls.crt"));
        check(
            &|material| material.key = "rubbish".to_owned(),
            &names,
            now,
            Some("tls.key"),
        );
        check(
            &|material| material.key.clone_from(&other.key),
            &names,
            now,
            Some("does not belong"),
        );
        check(
            &|material| material.authorities.clone_from(&other.authorities),
            &names,
            now,
            Some("ca.crt"),
        );
        check(&|material| material.authorities.clear(), &names, now, Some("ca.crt"));
        check(&|_| {}, &["c.d.svc".to_owned()], now, Some("c.d.svc"));
        check(
            &|_| {},
            &names,
            now + SignedDuration::from_hours(24 * 400),
            Some("valid until"),
        );
        fs::remove_file(folder.path().join("ca.crt")).unwrap();
        let files = Files::read(folder.path()).unwrap();
        assert!(files.authorities.is_none());
        assert!(files.certified(&names, now).is_ok());
    }
}
