//! The migration of Corefiles: a table of changes, each with the releases to which it belongs, and one pass for each release.

use super::{MigrationError, Version, steps};
use crate::corefile::{self, Directive};

/// What changes in each server of a Corefile.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// An option of a plugin goes; with a word, only where this is its first argument.
    DropOption {
        plugin: &'static str,
        option: &'static str,
        with: Option<&'static str>,
    },
    /// An option of a plugin keeps its first argument only.
    FirstArgument { plugin: &'static str, option: &'static str },
    /// A plugin gets an option that it lacks.
    AddOption {
        plugin: &'static str,
        option: [&'static str; 2],
    },
    /// A server with one of the plugins `beside` gets a plugin that it lacks.
    AddPlugin {
        plugin: &'static str,
        beside: &'static [&'static str],
    },
    /// Plugin `transfer` does what an option of `kubernetes` did.
    TransferPlugin,
    /// Plugin `proxy` becomes `forward`, which has other options.
    ProxyToForward,
    /// Plugin `forward` of a zone becomes a server of this zone: older releases read one `forward` in a server.
    StubDomains,
}

/// A change, and the first and last release to which it belongs.
type Row = (Version, Version, Change);

/// No later release lifts the change.
const STILL: Version = Version(u64::MAX, 0, 0);

/// In the order in which they are made within one release.
const CHANGES: &[Row] = &[
    at(Version(1, 8, 0), Change::TransferPlugin),
    (
        Version(1, 1, 4),
        Version(1, 3, 1),
        drops("proxy", "protocol", Some("https_google")),
    ),
    (
        Version(1, 4, 0),
        STILL,
        Change::FirstArgument {
            plugin: "kubernetes",
            option: "endpoint",
        },
    ),
    (
        Version(1, 5, 0),
        Version(1, 7, 1),
        drops("kubernetes", "upstream", None),
    ),
    (
        Version(1, 6, 0),
        Version(1, 7, 1),
        drops("kubernetes", "resyncperiod", None),
    ),
    at(Version(1, 8, 0), drops("kubernetes", "transfer", None)),
    at(Version(1, 5, 0), Change::ProxyToForward),
    at(
        Version(1, 6, 5),
        Change::AddOption {
            plugin: "health",
            option: ["lameduck", "5s"],
        },
    ),
    at(
        Version(1, 7, 0),
        Change::AddOption {
            plugin: "forward",
            option: ["max_concurrent", "1000"],
        },
    ),
    at(
        Version(1, 2, 1),
        Change::AddPlugin {
            plugin: "loop",
            beside: &["forward", "proxy"],
        },
    ),
    at(
        Version(1, 5, 0),
        Change::AddPlugin {
            plugin: "ready",
            beside: &["kubernetes"],
        },
    ),
    (Version(1, 4, 0), Version(1, 5, 0), Change::StubDomains),
];

const fn at(release: Version, change: Change) -> Row {
    (release, release, change)
}

const fn drops(plugin: &'static str, option: &'static str, with: Option<&'static str>) -> Change {
    Change::DropOption { plugin, option, with }
}

/// The Corefile of one release as another reads it; none when it stays as it is, with its comments and its layout.
pub fn migrate(text: &str, from: Version, to: Version) -> Result<Option<String>, MigrationError> {
    let steps = steps(from, to)?;
    if steps.is_empty() {
        return Ok(None);
    }
    let before = corefile::read(text).map_err(MigrationError::Syntax)?;
    let mut after = before.clone();
    for release in steps {
        let rows = CHANGES
            .iter()
            .filter(|(first, last, _)| first <= release && release <= last);
        for (_, _, change) in rows {
            make(*change, &mut after)?;
        }
    }
    Ok((after != before).then(|| corefile::write(&after)))
}

fn make(change: Change, servers: &mut Vec<Directive>) -> Result<(), MigrationError> {
    if let Change::StubDomains = change {
        return stub_domains(servers);
    }
    for plugins in servers.iter_mut().filter_map(|server| server.block.as_mut()) {
        match change {
            Change::DropOption { plugin, option, with } => {
                let drops = |one: &Directive| {
                    one.name() == option && with.is_none_or(|word| one.arguments().first().is_some_and(|a| a == word))
                };
                options(plugins, plugin, |options| options.retain(|one| !drops(one)));
            }
            Change::FirstArgument { plugin, option } => options(plugins, plugin, |options| {
                let named = options.iter_mut().filter(|one| one.name() == option);
                named.for_each(|one| one.words.truncate(2));
            }),
            Change::AddOption { plugin, option } => {
                for one in plugins.iter_mut().filter(|one| one.name() == plugin) {
                    if !has(one.children(), option[0]) {
                        one.block.get_or_insert_default().push(Directive::line(&option));
                    }
                }
            }
            Change::AddPlugin { plugin, beside } => {
                if !has(plugins, plugin) && beside.iter().any(|name| has(plugins, name)) {
                    plugins.push(Directive::line(&[plugin]));
                }
            }
            Change::TransferPlugin => transfer(plugins),
            Change::ProxyToForward => {
                for proxy in plugins.iter_mut().filter(|one| one.name() == "proxy") {
                    proxy_to_forward(proxy);
                }
            }
            Change::StubDomains => {}
        }
    }
    Ok(())
}

fn has(directives: &[Directive], name: &str) -> bool {
    directives.iter().any(|one| one.name() == name)
}

/// Changes the options of the plugins with a name. A block that loses its last option goes with it.
fn options(plugins: &mut [Directive], name: &str, change: impl Fn(&mut Vec<Directive>)) {
    for plugin in plugins.iter_mut().filter(|one| one.name() == name) {
        if let Some(block) = plugin.block.as_mut().filter(|block| !block.is_empty()) {
            change(block);
            if block.is_empty() {
                plugin.block = None;
            }
        }
    }
}

/// `kubernetes ZONE { transfer to ADDRESS }` becomes `transfer ZONE { to ADDRESS }` beside it.
fn transfer(plugins: &mut Vec<Directive>) {
    let mut added = Vec::new();
    for kubernetes in plugins.iter().filter(|one| one.name() == "kubernetes") {
        let transfers = kubernetes.children().iter().filter(|one| one.name() == "transfer");
        let to = transfers.filter(|one| one.arguments().len() > 1).map(|one| {
            let addresses = one.arguments()[1..].iter().map(String::as_str);
            Directive::line(&["to"].into_iter().chain(addresses).collect::<Vec<_>>())
        });
        let to: Vec<Directive> = to.collect();
        if !to.is_empty() {
            let zone = kubernetes.arguments().first().map(String::as_str);
            let mut transfer = Directive::line(&["transfer"].into_iter().chain(zone).collect::<Vec<_>>());
            transfer.block = Some(to);
            added.push(transfer);
        }
    }
    plugins.append(&mut added);
}

fn proxy_to_forward(proxy: &mut Directive) {
    // It stands behind the protocol: the migration library, which takes the first word alone, loses it there.
    let forced = |one: &Directive| one.arguments().iter().any(|word| word == "force_tcp");
    if let Some(name) = proxy.words.first_mut() {
        "forward".clone_into(name);
    }
    let Some(before) = proxy.block.take() else {
        return;
    };
    let after: Vec<Directive> = before
        .into_iter()
        .filter_map(|one| match one.name() {
            // `forward` has no policy for connections in use.
            "policy" if one.arguments() == ["least_conn"] => Some(Directive::line(&["force_tcp"])),
            "protocol" => forced(&one).then(|| Directive::line(&["force_tcp"])),
            "fail_timeout" | "max_fails" | "health_check" | "spray" => None,
            _ => Some(one),
        })
        .collect();
    proxy.block = Some(after).filter(|block| !block.is_empty());
}

fn stub_domains(servers: &mut Vec<Directive>) -> Result<(), MigrationError> {
    let mut added = Vec::new();
    for server in servers.iter_mut() {
        let of_all_zones = matches!(server.words.as_slice(), [only] if only == "." || only == ".:53");
        let words = server.words.join(" ");
        let Some(plugins) = server.block.as_mut() else {
            continue;
        };
        let is_stub =
            |one: &Directive| one.name() == "forward" && one.arguments().first().is_some_and(|zone| zone != ".");
        let (stubs, rest): (Vec<Directive>, Vec<Directive>) = plugins.drain(..).partition(is_stub);
        *plugins = rest;
        for mut stub in stubs {
            let zone = std::mem::replace(&mut stub.words[1], ".".to_owned());
            if !of_all_zones {
                return Err(MigrationError::Stub { zone, server: words });
            }
            let beside = [&["loop"][..], &["errors"], &["cache", "30"]];
            let block = std::iter::once(stub).chain(beside.map(Directive::line)).collect();
            added.push(Directive {
                words: vec![zone],
                block: Some(block),
            });
        }
    }
    servers.append(&mut added);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::RELEASES;
    use super::*;

    fn version(text: &str) -> Version {
        Version::of_tag(text).unwrap()
    }

    fn migrated(from: &str, to: &str, text: &str) -> String {
        migrate(text, version(from), version(to)).unwrap().unwrap()
    }

    /// The Corefile of kubeadm 1.11, with stub domains, as Kubernetes 1.12 wrote them.
    const OLDEST: &str = ".:53 {
    errors
    health
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        upstream
        endpoint http://a http://b
        resyncperiod 5m
        transfer to 10.0.0.1 10.0.0.2
    }
    prometheus :9153
    proxy . /etc/resolv.conf {
        protocol dns force_tcp
        max_fails 3
        except example.org
    }
    proxy example.com 10.0.0.3
    cache 30
}
";

    #[test]
    fn each_change_is_made_with_its_release() {
        for (from, to, before, after) in [
            (
                "1.2.0",
                "1.2.1",
                "    proxy . 1.1.1.1\n",
                "    proxy . 1.1.1.1\n    loop\n",
            ),
            (
                "1.2.1",
                "1.2.2",
                "    proxy . a {\n        protocol https_google\n    }\n",
                "    proxy . a\n",
            ),
            (
                "1.3.1",
                "1.4.0",
                "    kubernetes a {\n        endpoint b c\n        upstream\n    }\n",
                "    kubernetes a {\n        endpoint b\n        upstream\n    }\n",
            ),
            (
                "1.4.0",
                "1.5.0",
                "    kubernetes a {\n        upstream\n        resyncperiod 1m\n    }\n",
                "    kubernetes a {\n        resyncperiod 1m\n    }\n    ready\n",
            ),
            (
                "1.4.0",
                "1.5.0",
                "    proxy . a {\n        policy least_conn\n        spray\n    }\n",
                "    forward . a {\n        force_tcp\n    }\n",
            ),
            (
                "1.5.2",
                "1.6.0",
                "    kubernetes a {\n        resyncperiod 1m\n    }\n",
                "    kubernetes a\n",
            ),
            (
                "1.6.4",
                "1.6.5",
                "    health\n",
                "    health {\n        lameduck 5s\n    }\n",
            ),
            (
                "1.6.9",
                "1.7.0",
                "    forward . a\n",
                "    forward . a {\n        max_concurrent 1000\n    }\n",
            ),
            (
                "1.7.1",
                "1.8.0",
                "    kubernetes a b {\n        transfer to *\n        ttl 5\n    }\n",
                "    kubernetes a b {\n        ttl 5\n    }\n    transfer a {\n        to *\n    }\n",
            ),
        ] {
            let server = |plugins: &str| format!(".:53 {{\n{plugins}}}\n");
            assert_eq!(migrated(from, to, &server(before)), server(after), "{from} to {to}");
        }
    }

    #[test]
    fn stub_domains_become_servers() {
        let text =
            ".:53 {\n    forward . 1.1.1.1\n    forward b.org 2.2.2.2\n    forward c.org 3.3.3.3\n    cache 30\n}\n";
        let stub =
            |zone: &str, to: &str| format!("\n{zone} {{\n    forward . {to}\n    loop\n    errors\n    cache 30\n}}\n");
        let after = format!(
            ".:53 {{\n    forward . 1.1.1.1\n    cache 30\n}}\n{}{}",
            stub("b.org", "2.2.2.2"),
            stub("c.org", "3.3.3.3")
        );
        assert_eq!(migrated("1.3.1", "1.4.0", text), after);
        let elsewhere = "a.org {\n    forward b.org 1.1.1.1\n}\n";
        let error = migrate(elsewhere, version("1.3.1"), version("1.4.0")).unwrap_err();
        assert!(
            error.to_string().contains("\"forward b.org\" in server \"a.org\""),
            "{error}"
        );
    }

    #[test]
    fn the_oldest_corefile_comes_to_the_newest_release_in_one_go_or_step_by_step() {
        let newest = *RELEASES.last().unwrap();
        let at_once = migrate(OLDEST, RELEASES[0], newest).unwrap().unwrap();
        let mut text = OLDEST.to_owned();
        for pair in RELEASES.windows(2) {
            text = migrate(&text, pair[0], pair[1]).unwrap().unwrap_or(text);
        }
        assert_eq!(text, at_once);
        for gone in [
            "proxy",
            "upstream",
            "resyncperiod",
            "http://b",
            "transfer to",
            "max_fails",
        ] {
            assert!(!text.contains(gone), "{gone}: {text}");
        }
        assert!(text.contains("\nexample.com {\n"), "{text}");
        // A migration that was interrupted is begun again with what it made.
        assert_eq!(migrate(&text, RELEASES[0], newest).unwrap(), None);
    }

    #[test]
    fn from_1_8_on_a_corefile_keeps_its_comments_and_layout() {
        let text =
            "# ours\n.:53 {\n  kubernetes cluster.local {\n     pods insecure\n  }\n  forward . /etc/resolv.conf\n}\n";
        let begin = RELEASES
            .iter()
            .position(|release| *release == version("1.8.0"))
            .unwrap();
        for (at, from) in RELEASES.iter().enumerate().skip(begin) {
            for to in &RELEASES[at..] {
                assert_eq!(migrate(text, *from, *to), Ok(None), "{from} to {to}");
            }
        }
        let broken = migrate(".:53 {\n", version("1.8.0"), version("1.9.0")).unwrap_err();
        assert_eq!(
            broken.to_string(),
            "Corefile: line 1: the block that begins here has no end"
        );
    }
}
