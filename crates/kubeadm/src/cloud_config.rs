//! Cloud-config: the instructions for cloud-init on a machine's first start.

mod disks;

use std::fmt::Write as _;

use windlass_api_kubeadm::bootstrap::{KubeadmConfigSpec, NTP, User};
use windlass_gocompat::yaml;

use crate::Resolved;
use crate::render::{BootstrapData, WriteFile};

/// The default format.
pub(crate) const CLOUD_CONFIG: &str = "cloud-config";

/// Writing a file creates the folder on both Linux and Windows.
const PLACEHOLDER: &str = "-   path: /run/cluster-api/placeholder
    owner: root:root
    permissions: '0640'
    content: \"This placeholder file is used to create the /run/cluster-api sub directory in a way that is compatible with \
both Linux and Windows (mkdir -p /run/cluster-api does not work with Windows)\"
";

/// kubeadm's configuration.
pub(crate) fn own_file(path: &str, content: String) -> WriteFile {
    WriteFile {
        path: path.to_owned(),
        owner: "root:root".to_owned(),
        permissions: "0640".to_owned(),
        content,
        ..WriteFile::default()
    }
}

/// Bootstrap data: `kubeadm` is kubeadm's configuration, `command` the line that runs kubeadm.
pub(crate) fn render(
    spec: &KubeadmConfigSpec,
    certificates: &[WriteFile],
    resolved: &Resolved,
    kubeadm: &WriteFile,
    command: &str,
) -> BootstrapData {
    let mut out = "## template: jinja\n#cloud-config\n\nwrite_files:\n".to_owned();
    for file in certificates.iter().chain(&resolved.files).chain([kubeadm]) {
        write_file(&mut out, file);
    }
    out.push_str(PLACEHOLDER);
    commands(&mut out, "bootcmd", &spec.boot_commands);
    out.push_str("runcmd:\n");
    command_lines(&mut out, &spec.pre_kubeadm_commands);
    line(&mut out, format_args!("  - {command}"));
    command_lines(&mut out, &spec.post_kubeadm_commands);
    if let Some(ntp) = &spec.ntp {
        write_ntp(&mut out, ntp);
    }
    write_users(&mut out, &resolved.users);
    if let Some(setup) = &spec.disk_setup {
        disks::write(&mut out, setup);
    }
    if !spec.mounts.is_empty() {
        out.push_str("mounts:\n");
        for mount in &spec.mounts {
            for (index, part) in mount.iter().enumerate() {
                let lead = if index == 0 { "  - - " } else { "    - " };
                line(&mut out, format_args!("{lead}{}", yaml::scalar(part, 3)));
            }
        }
    }
    BootstrapData {
        format: CLOUD_CONFIG,
        value: out,
        warnings: Vec::new(),
    }
}

pub(crate) fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{text}");
}

fn write_file(out: &mut String, file: &WriteFile) {
    line(out, format_args!("-   path: {}", yaml::scalar(&file.path, 2)));
    if !file.encoding.is_empty() {
        line(out, format_args!("    encoding: \"{}\"", file.encoding));
    }
    if !file.owner.is_empty() {
        line(out, format_args!("    owner: {}", yaml::scalar(&file.owner, 2)));
    }
    if !file.permissions.is_empty() {
        line(out, format_args!("    permissions: '{}'", file.permissions));
    }
    if file.append {
        line(out, format_args!("    append: true"));
    }
    if needs_quotes(&file.content) {
        line(out, format_args!("    content: {}", yaml::double_quoted(&file.content)));
        return;
    }
    line(out, format_args!("    content: |"));
    for content in file.content.split('\n') {
        line(out, format_args!("      {content}"));
    }
}

/// Whether a literal block would change a content: its first line sets the indentation, and control characters are not allowed in
/// it.
fn needs_quotes(content: &str) -> bool {
    content.starts_with([' ', '\t'])
        || content.starts_with('\n') && content.trim_start_matches('\n').starts_with(' ')
        || content.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t'))
}

fn commands(out: &mut String, key: &str, commands: &[String]) {
    if !commands.is_empty() {
        line(out, format_args!("{key}:"));
        command_lines(out, commands);
    }
}

fn command_lines(out: &mut String, commands: &[String]) {
    for command in commands {
        line(out, format_args!("  - {}", yaml::double_quoted(command)));
    }
}

fn write_ntp(out: &mut String, ntp: &NTP) {
    if ntp.enabled.is_none() && ntp.servers.is_empty() {
        return;
    }
    out.push_str("ntp:\n");
    // Also where servers are named: cloud-init sets up any service that is not disabled.
    if let Some(enabled) = ntp.enabled {
        line(out, format_args!("  enabled: {enabled}"));
    }
    if !ntp.servers.is_empty() {
        out.push_str("  servers:\n");
        for server in &ntp.servers {
            line(out, format_args!("    - {}", yaml::scalar(server, 3)));
        }
    }
}

fn write_users(out: &mut String, users: &[User]) {
    if users.is_empty() {
        return;
    }
    out.push_str("users:\n");
    for user in users {
        line(out, format_args!("  - name: {}", yaml::scalar(&user.name, 3)));
        let text = |out: &mut String, key: &str, value: &Option<String>| {
            if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
                line(out, format_args!("    {key}: {}", yaml::scalar(value, 3)));
            }
        };
        text(out, "passwd", &user.passwd);
        text(out, "gecos", &user.gecos);
        text(out, "groups", &user.groups);
        text(out, "homedir", &user.home_dir);
        if let Some(inactive) = user.inactive {
            line(out, format_args!("    inactive: {inactive}"));
        }
        if let Some(lock) = user.lock_password {
            line(out, format_args!("    lock_passwd: {lock}"));
        }
        text(out, "shell", &user.shell);
        text(out, "primary_group", &user.primary_group);
        text(out, "sudo", &user.sudo);
        if !user.ssh_authorized_keys.is_empty() {
            out.push_str("    ssh_authorized_keys:\n");
            for key in &user.ssh_authorized_keys {
                line(out, format_args!("      - {}", yaml::scalar(key, 4)));
            }
        }
    }
}

#[cfg(test)]
mod tests;
