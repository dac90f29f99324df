//! What is searched for, and where it could be.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::core::v1::Secret;

/// Texts that must not be anywhere, each with what it is. They are not shown.
pub(super) struct Needles(BTreeMap<String, String>);

impl std::fmt::Debug for Needles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.values()).finish()
    }
}

impl Needles {
    /// The marked texts, and what is secret in these Secrets.
    pub(super) fn of(secrets: &[Secret], marked: &[&str]) -> Self {
        let mut needles = Self(BTreeMap::new());
        for mark in marked {
            needles.0.insert((*mark).to_owned(), format!("the mark {mark}"));
            // Whatever is encoded together with it: the text at each of three positions, without the ends that depend on neighbours.
            for before in 0..3 {
                let encoded = BASE64_STANDARD.encode(format!("{}{mark}", &"xxx"[..before]));
                let inner = encoded.trim_end_matches('=');
                needles.0.insert(
                    inner[4..inner.len() - 2].to_owned(),
                    format!("the mark {mark} in base64"),
                );
            }
        }
        needles.add(secrets);
        needles
    }

    /// Also what is secret in these.
    pub(super) fn add(&mut self, secrets: &[Secret]) {
        for secret in secrets {
            let name = secret.metadata.name.clone().unwrap_or_default();
            for (key, value) in secret.data.iter().flatten() {
                let (text, name) = (String::from_utf8_lossy(&value.0), format!("{name}[{key}]"));
                self.add_text(&text, &name);
                // Files in Ignition are URLs.
                if text.contains("\"data:,") {
                    self.add_text(&without_percents(&text), &name);
                }
            }
        }
    }

    fn add_text(&mut self, text: &str, name: &str) {
        for line in private_lines(text) {
            self.0.insert(line, format!("private key: {name}"));
        }
        for token in tokens(text) {
            self.0.insert(token, format!("bootstrap token: {name}"));
        }
        for line in text.lines().map(str::trim) {
            if let Some(key) = line.strip_prefix("client-key-data: ")
                && let Ok(key) = BASE64_STANDARD.decode(key)
            {
                // The key as it is there, and as it is in a file.
                self.0.insert(
                    line["client-key-data: ".len() + 80..][..80].to_owned(),
                    format!("client key: {name}"),
                );
                self.add_text(&String::from_utf8_lossy(&key), name);
            }
        }
    }

    /// How many kinds of secrets there are.
    pub(super) fn kinds(&self) -> usize {
        let kinds: BTreeSet<&str> = self
            .0
            .values()
            .filter_map(|what| what.split([':', ' ']).next())
            .collect();
        kinds.len()
    }

    /// What is in a text.
    pub(super) fn found(&self, text: &str) -> BTreeSet<&str> {
        // In one pass: there are hundreds, and a log has millions of letters.
        let search = AhoCorasick::new(self.0.keys()).unwrap();
        let what: Vec<&str> = self.0.values().map(String::as_str).collect();
        let found = search.find_overlapping_iter(text);
        found.map(|found| what[found.pattern().as_usize()]).collect()
    }
}

/// The lines of private keys, without those that many keys have in common.
fn private_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("-----") {
            inside = line.contains("BEGIN") && line.contains("PRIVATE KEY");
        } else if inside && line.len() >= 40 {
            // The first bytes say what kind of key it is.
            lines.push(line[line.len() - 32..].to_owned());
        }
    }
    lines
}

/// A text of URLs with their characters as they are.
fn without_percents(text: &str) -> String {
    let mut parts = text.split('%');
    let mut plain = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                plain.push(byte);
                plain.extend_from_slice(&part.as_bytes()[2..]);
            }
            None => plain.extend_from_slice(part.as_bytes()),
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// The secret halves of bootstrap tokens.
fn tokens(text: &str) -> Vec<String> {
    let is_of = |part: &str, length: usize| {
        part.len() == length
            && part
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let words = text.split(|one: char| !(one.is_ascii_alphanumeric() || one == '.'));
    words
        .filter_map(|word| word.split_once('.'))
        .filter(|(id, secret)| is_of(id, 6) && is_of(secret, 16))
        .map(|(_, secret)| secret.to_owned())
        .collect()
}

/// The command lines of all processes that a process starts, as every user of the machine sees them.
pub(super) struct CommandLines {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<BTreeSet<String>>,
}

impl CommandLines {
    /// Of this process, from now on.
    pub(super) fn of(parent: u32) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            let mut seen = BTreeSet::new();
            while !until.load(Ordering::Relaxed) {
                look(parent, &mut seen);
                // Children live for some hundredths of a second at least.
                std::thread::park_timeout(Duration::from_millis(5));
            }
            seen
        });
        Self { ended, thread }
    }

    /// All of them.
    pub(super) fn end(self) -> String {
        self.ended.store(true, Ordering::Relaxed);
        let seen = self.thread.join().unwrap();
        seen.into_iter().collect::<Vec<_>>().join("\n")
    }
}

/// Adds the command lines of children of `parent`.
fn look(parent: u32, seen: &mut BTreeSet<String>) {
    for process in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        // A process may end while it is read.
        let Ok(stat) = fs::read_to_string(process.path().join("stat")) else {
            continue;
        };
        let parent_of = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1));
        if parent_of == Some(&parent.to_string())
            && let Ok(line) = fs::read_to_string(process.path().join("cmdline"))
        {
            seen.insert(line.replace('\0', " "));
        }
    }
}
