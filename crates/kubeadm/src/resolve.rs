//! File contents and passwords from Secrets, and file contents that are templates.

use serde_json::json;
use windlass_api_kubeadm::bootstrap::{File, KubeadmConfigSpec, User};
use windlass_gotemplate::{Functions, Missing, Rules, Template, TemplateError};

use crate::{KubeadmError, WriteFile, version};

/// A key of a Secret in the namespace of the KubeadmConfig.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretReference {
    /// Name of the Secret.
    pub name: String,
    /// Key in its data.
    pub key: String,
}

/// Files and users with all contents.
#[derive(Clone, Default)]
pub struct Resolved {
    /// Files of the spec, in its order.
    pub files: Vec<WriteFile>,
    /// Users of the spec, passwords included.
    pub users: Vec<User>,
}

/// All keys of Secrets in a spec.
pub fn referenced_secrets(spec: &KubeadmConfigSpec) -> Vec<SecretReference> {
    let files = spec
        .files
        .iter()
        .filter_map(|file| file.content_from.as_ref().map(|from| &from.secret));
    let users = spec
        .users
        .iter()
        .filter_map(|user| user.passwd_from.as_ref().map(|from| &from.secret));
    let mut references: Vec<_> = files
        .chain(users)
        .map(|source| SecretReference {
            name: source.name.clone(),
            key: source.key.clone(),
        })
        .collect();
    references.sort();
    references.dedup();
    references
}

/// Fills in files and users. `secret` returns the value of a key of a Secret; `control_plane_version` is the data of templates.
pub fn resolve<'a>(
    spec: &KubeadmConfigSpec,
    control_plane_version: Option<&str>,
    secret: &dyn Fn(&SecretReference) -> Option<&'a [u8]>,
) -> Result<Resolved, KubeadmError> {
    let files = spec
        .files
        .iter()
        .enumerate()
        .map(|(index, file)| resolve_file(index, file, control_plane_version, secret))
        .collect::<Result<_, _>>()?;
    let users = spec
        .users
        .iter()
        .enumerate()
        .map(|(index, user)| {
            let mut user = user.clone();
            if let Some(from) = user.passwd_from.take() {
                let field = format!("spec.users[{index}].passwdFrom.secret");
                user.passwd = Some(fetch(&field, from.secret.name, from.secret.key, secret)?);
            }
            Ok(user)
        })
        .collect::<Result<_, KubeadmError>>()?;
    Ok(Resolved { files, users })
}

fn resolve_file<'a>(
    index: usize,
    file: &File,
    control_plane_version: Option<&str>,
    secret: &dyn Fn(&SecretReference) -> Option<&'a [u8]>,
) -> Result<WriteFile, KubeadmError> {
    let mut content = match &file.content_from {
        Some(from) => {
            let field = format!("spec.files[{index}].contentFrom.secret");
            fetch(&field, from.secret.name.clone(), from.secret.key.clone(), secret)?
        }
        None => file.content.clone().unwrap_or_default(),
    };
    if file.content_format.as_deref() == Some("Template") {
        content = render(&content, control_plane_version).map_err(|why| KubeadmError::Field {
            field: format!("spec.files[{index}] ({})", file.path),
            why,
        })?;
    }
    Ok(WriteFile {
        path: file.path.clone(),
        owner: file.owner.clone().unwrap_or_default(),
        permissions: file.permissions.clone().unwrap_or_default(),
        encoding: file.encoding.clone().unwrap_or_default(),
        append: file.append == Some(true),
        content,
    })
}

fn fetch<'a>(
    field: &str,
    name: String,
    key: String,
    secret: &dyn Fn(&SecretReference) -> Option<&'a [u8]>,
) -> Result<String, KubeadmError> {
    let reference = SecretReference { name, key };
    let fail = |why: String| KubeadmError::Field {
        field: field.to_owned(),
        why,
    };
    let Some(bytes) = secret(&reference) else {
        return Err(fail(format!(
            "Secret {} with key \"{}\" does not exist in the namespace of the KubeadmConfig",
            reference.name, reference.key
        )));
    };
    String::from_utf8(bytes.to_vec()).map_err(|_| {
        fail(format!(
            "key \"{}\" of Secret {} is not text; store it base64-encoded and set encoding to base64",
            reference.key, reference.name
        ))
    })
}

/// A template sees only `.controlPlane.version`, so that each rendering gives the same text.
fn render(text: &str, control_plane_version: Option<&str>) -> Result<String, String> {
    const RULES: Rules = Rules {
        missing: Missing::Print,
        lenient: true,
    };
    let data = match control_plane_version {
        Some(version) => json!({"controlPlane": {"version": version::normalised(version).map_err(|e| e.to_string())?}}),
        // A control plane without a version, or none: templates test for it by `{{ if .controlPlane }}`.
        None => json!({}),
    };
    Template::parse(text, Functions::Builtin)
        .and_then(|template| template.render(&data, RULES))
        .map_err(|error| match error {
            TemplateError::Parse { line, why } => format!("not a valid template: line {line}: {why}"),
            other => other.to_string(),
        })
}
