//! `cargo xtask tools`: builds the programs for `envtest` and the end-to-end tests from their Go modules.
//!
//! `tools/go.mod` and the module files in its folders pin them. Existing programs are kept until a pin, a flag or the Go version
//! changes. Each helm and each version of a provider has its own module file, because it uses other Kubernetes libraries than the API
//! server. There are two helms, for the two major versions in use.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use clap::Args;
use sha2::{Digest as _, Sha256};
use windlass_envtest::missing;

use crate::cargo;

/// Options of `tools`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Only these tools
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Succeed without building anything where there is no Go, or one that is too old
    #[arg(long)]
    if_possible: bool,
}

/// A program to build.
#[derive(Clone, Copy, Debug)]
struct Tool {
    name: &'static str,
    /// The folder of its module file, relative to the root.
    dir: &'static str,
    /// The package of its `main`.
    package: &'static str,
    /// The module with its version.
    module: &'static str,
    /// The linker variables of a release, by version.
    stamps: fn(&Version) -> Vec<(&'static str, String)>,
}

const KUBERNETES: &str = "k8s.io/kubernetes";
/// The module of the providers for tests and development.
const CLUSTER_API_TEST: &str = "sigs.k8s.io/cluster-api/test";
const IPAM_IN_CLUSTER: &str = "sigs.k8s.io/cluster-api-ipam-provider-in-cluster";
const CLUSTER_API: &str = "sigs.k8s.io/cluster-api";
/// The path of our own modules: a package `windlass.test/DIR` is the folder DIR of this project.
const OURS: &str = "windlass.test/";

const TOOLS: [Tool; 15] = [
    Tool {
        name: "etcd",
        dir: "tools",
        package: "go.etcd.io/etcd/server/v3",
        module: "go.etcd.io/etcd/server/v3",
        stamps: |_| vec![("go.etcd.io/etcd/api/v3/version.GitSHA", "module".to_owned())],
    },
    Tool {
        name: "kube-apiserver",
        dir: "tools",
        package: "k8s.io/kubernetes/cmd/kube-apiserver",
        module: KUBERNETES,
        stamps: kubernetes,
    },
    Tool {
        name: "kube-controller-manager",
        dir: "tools",
        package: "k8s.io/kubernetes/cmd/kube-controller-manager",
        module: KUBERNETES,
        stamps: kubernetes,
    },
    Tool {
        name: "kubeadm",
        dir: "tools",
        package: "k8s.io/kubernetes/cmd/kubeadm",
        module: KUBERNETES,
        stamps: kubernetes,
    },
    Tool {
        name: "kubectl",
        dir: "tools",
        package: "k8s.io/kubernetes/cmd/kubectl",
        module: KUBERNETES,
        stamps: kubernetes,
    },
    // The last one for clusters whose kubeadm reads v1beta3 alone.
    Tool {
        name: "kubeadm-1.30",
        dir: "tools/kubeadm-1.30",
        package: "k8s.io/kubernetes/cmd/kubeadm",
        module: KUBERNETES,
        stamps: kubernetes,
    },
    Tool {
        name: "helm",
        dir: "tools/helm",
        package: "helm.sh/helm/v3/cmd/helm",
        module: "helm.sh/helm/v3",
        stamps: helm,
    },
    Tool {
        name: "helm4",
        dir: "tools/helm4",
        package: "helm.sh/helm/v4/cmd/helm",
        module: "helm.sh/helm/v4",
        stamps: helm4,
    },
    Tool {
        name: "ignition-validate",
        dir: "tools/ignition-validate",
        package: "github.com/flatcar/ignition/validate",
        module: "github.com/flatcar/ignition",
        stamps: |_| Vec::new(),
    },
    Tool {
        name: "clusterctl",
        dir: "tools/clusterctl",
        package: "sigs.k8s.io/cluster-api/cmd/clusterctl",
        module: CLUSTER_API,
        stamps: |version| {
            let mut numbers = version.text.trim_start_matches('v').split('.');
            let mut number = || numbers.next().unwrap_or_default().to_owned();
            vec![
                ("sigs.k8s.io/cluster-api/version.gitVersion", version.text.clone()),
                ("sigs.k8s.io/cluster-api/version.gitMajor", number()),
                ("sigs.k8s.io/cluster-api/version.gitMinor", number()),
                ("sigs.k8s.io/cluster-api/version.gitTreeState", "clean".to_owned()),
            ]
        },
    },
    // Beside clusterctl, because it uses the same libraries.
    Tool {
        name: "health-rules",
        dir: "tools/clusterctl",
        package: "windlass.test/tools/clusterctl/health-rules",
        module: "github.com/fluxcd/cli-utils",
        stamps: |_| Vec::new(),
    },
    Tool {
        name: "ipam-in-cluster",
        dir: "tools/ipam-in-cluster",
        package: IPAM_IN_CLUSTER,
        module: IPAM_IN_CLUSTER,
        stamps: |_| Vec::new(),
    },
    Tool {
        name: "ipam-in-cluster-1.0",
        dir: "tools/ipam-in-cluster-1.0",
        package: IPAM_IN_CLUSTER,
        module: IPAM_IN_CLUSTER,
        stamps: |_| Vec::new(),
    },
    Tool {
        name: "capd",
        dir: "tools/capd",
        package: "sigs.k8s.io/cluster-api/test/infrastructure/docker",
        module: CLUSTER_API_TEST,
        stamps: |_| Vec::new(),
    },
    Tool {
        name: "capim",
        dir: "tools/capim",
        package: "sigs.k8s.io/cluster-api/test/infrastructure/inmemory",
        module: CLUSTER_API_TEST,
        stamps: |_| Vec::new(),
    },
];

/// The version of a tool, and of its Kubernetes libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Version {
    /// `v1.36.3`.
    text: String,
    /// The minor version of its Kubernetes libraries.
    kubernetes_minor: String,
}

fn kubernetes(version: &Version) -> Vec<(&'static str, String)> {
    vec![
        ("k8s.io/component-base/version.gitVersion", version.text.clone()),
        ("k8s.io/component-base/version.gitMajor", "1".to_owned()),
        (
            "k8s.io/component-base/version.gitMinor",
            version.kubernetes_minor.clone(),
        ),
        // The value of a build from a source archive; a module has no commit.
        ("k8s.io/component-base/version.gitTreeState", "archive".to_owned()),
        ("k8s.io/component-base/version.gitCommit", String::new()),
        ("k8s.io/client-go/pkg/version.gitVersion", version.text.clone()),
        ("k8s.io/client-go/pkg/version.gitMajor", "1".to_owned()),
        (
            "k8s.io/client-go/pkg/version.gitMinor",
            version.kubernetes_minor.clone(),
        ),
        ("k8s.io/client-go/pkg/version.gitTreeState", "archive".to_owned()),
        ("k8s.io/client-go/pkg/version.gitCommit", String::new()),
    ]
}

fn helm(version: &Version) -> Vec<(&'static str, String)> {
    let minor = || version.kubernetes_minor.clone();
    vec![
        ("helm.sh/helm/v3/internal/version.version", version.text.clone()),
        ("helm.sh/helm/v3/internal/version.gitTreeState", "clean".to_owned()),
        ("helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor", "1".to_owned()),
        ("helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor", minor()),
        ("helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor", "1".to_owned()),
        ("helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor", minor()),
    ]
}

fn helm4(version: &Version) -> Vec<(&'static str, String)> {
    // It reads the version of its Kubernetes libraries from its build information.
    vec![
        ("helm.sh/helm/v4/internal/version.version", version.text.clone()),
        ("helm.sh/helm/v4/internal/version.gitTreeState", "clean".to_owned()),
    ]
}

/// Builds missing tools.
pub(crate) fn run(root: &Path, options: &Options) -> Result<(), String> {
    let chosen = choose(&options.only)?;
    let go = match Go::find(root, chosen.iter().map(|tool| (tool.dir, tool.name))) {
        Ok(go) => go,
        Err(why) => {
            let names: Vec<&str> = chosen.iter().map(|tool| tool.name).collect();
            if !options.if_possible {
                return Err(format!("{why}: {} not built", names.join(", ")));
            }
            missing::left_out(&format!("building {}", names.join(", ")), &why)?;
            return Ok(());
        }
    };
    let folder = folder(root);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: cannot be made: {error}", folder.display()))?;
    for tool in chosen {
        tool.make(root, &folder, &go)?;
    }
    Ok(())
}

/// The folder of the tools.
fn folder(root: &Path) -> PathBuf {
    cargo::target(root).join("tools")
}

fn choose(only: &[String]) -> Result<Vec<Tool>, String> {
    if let Some(name) = only.iter().find(|name| !TOOLS.iter().any(|tool| tool.name == **name)) {
        let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        return Err(format!("there is no tool \"{name}\"; there are {}", known.join(", ")));
    }
    let is_chosen = |tool: &&Tool| only.is_empty() || only.iter().any(|name| name == tool.name);
    Ok(TOOLS.iter().filter(is_chosen).copied().collect())
}

/// A Go installation.
#[derive(Clone, Debug)]
pub(crate) struct Go {
    /// `go1.26.8`.
    version: String,
}

impl Go {
    /// Finds a Go that is new enough for some modules, given by folder and name.
    pub(crate) fn find<'a>(root: &Path, modules: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut asked = go();
        let answer = asked
            .args(["env", "GOVERSION"])
            .output()
            .map_err(|error| format!("there is no Go here (go: {error})"))?;
        let version = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        let have = numbers(&version).ok_or_else(|| format!("the version of Go cannot be read from \"{version}\""))?;
        for (dir, name) in modules {
            let pins = read(&root.join(dir).join("go.mod"))?;
            let text = pins
                .lines()
                .find_map(|line| line.strip_prefix("go "))
                .unwrap_or_default();
            let need = numbers(text).ok_or_else(|| format!("{dir}/go.mod names no version of Go"))?;
            if have < need {
                return Err(format!("Go is {version} here, {name} needs {text} or newer"));
            }
        }
        Ok(Self { version })
    }
}

/// A Go command without the user's settings for other work; caches stay in the user's folders.
pub(crate) fn go() -> Command {
    let mut command = Command::new("go");
    command
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off")
        // The same for every program: Go's cache keeps packages for each set of flags, and most are in several programs.
        .env("GOFLAGS", "-mod=readonly -buildvcs=false -trimpath");
    command
}

/// Runs a Go program with cases on its standard input. Returns its output.
pub(crate) fn ask(program: &Path, words: &[&str], cases: String) -> Result<String, String> {
    let failed = |error| format!("cannot run go: {error}");
    let mut child = go()
        .args(words)
        .current_dir(program)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // It writes while it reads, so writing everything before reading could block forever.
    let asking = child
        .stdin
        .take()
        .map(|mut stdin| std::thread::spawn(move || std::io::Write::write_all(&mut stdin, cases.as_bytes())));
    let out = child.wait_with_output().map_err(failed)?;
    let asked = asking.is_none_or(|asking| asking.join().is_ok_and(|written| written.is_ok()));
    if !out.status.success() || !asked {
        return Err(format!("{}: failed", program.display()));
    }
    String::from_utf8(out.stdout).map_err(|_| format!("{}: its answer is no text", program.display()))
}

/// The numbers in `go1.26.8` or `1.26.0`.
fn numbers(version: &str) -> Option<Vec<u32>> {
    let plain = version.trim().trim_start_matches("go");
    let end = plain
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(plain.len());
    plain.get(..end)?.split('.').map(|part| part.parse().ok()).collect()
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: cannot be read: {error}", path.display()))
}

/// The version of a module in a module file.
fn pinned<'a>(pins: &'a str, module: &str) -> Option<&'a str> {
    pins.lines().find_map(|line| {
        let mut words = line.trim().trim_start_matches("require ").split_whitespace();
        (words.next()? == module)
            .then(|| words.next())
            .flatten()
            .filter(|word| word.starts_with('v'))
    })
}

impl Tool {
    fn version(&self, pins: &str) -> Result<Version, String> {
        let missing = |module: &str| format!("{}/go.mod does not pin {module}", self.dir);
        let text = pinned(pins, self.module).ok_or_else(|| missing(self.module))?;
        // The libraries of Kubernetes v1.36.3 have the version v0.36.3.
        let library = if self.module == KUBERNETES {
            Some(text)
        } else {
            pinned(pins, "k8s.io/client-go")
        };
        let minor = library
            .and_then(|library| library.split('.').nth(1))
            .unwrap_or_default();
        Ok(Version {
            text: text.to_owned(),
            kubernetes_minor: minor.to_owned(),
        })
    }

    fn link_flags(&self, version: &Version) -> String {
        let mut flags = "-s -w".to_owned();
        for (name, value) in (self.stamps)(version) {
            let _ = write!(flags, " -X {name}={value}");
        }
        flags
    }

    /// Builds the tool, unless it exists already with the same pins, flags and Go version.
    fn make(&self, root: &Path, folder: &Path, go: &Go) -> Result<(), String> {
        let dir = root.join(self.dir);
        let pins = read(&dir.join("go.mod"))?;
        let version = self.version(&pins)?;
        let flags = self.link_flags(&version);
        let sums = read(&dir.join("go.sum"))?;
        let sources = match self.package.strip_prefix(OURS) {
            Some(folder) => read(&root.join(folder).join("main.go"))?,
            None => String::new(),
        };
        let stamp = stamp(&[&pins, &sums, &sources, self.package, &flags, &go.version]);
        let (program, stamped) = (folder.join(self.name), folder.join(format!("{}.stamp", self.name)));
        if program.is_file() && fs::read_to_string(&stamped).is_ok_and(|found| found == stamp) {
            anstream::println!("{} {}: there already", self.name, version.text);
            return Ok(());
        }
        let begun = Instant::now();
        let status = go_build(&dir, &program, self.package, &flags)?;
        if !status {
            return Err(format!("{} {}: go build failed", self.name, version.text));
        }
        fs::write(&stamped, stamp).map_err(|error| format!("{}: cannot be written: {error}", stamped.display()))?;
        let seconds = begun.elapsed().as_secs_f64();
        anstream::println!("{} {}: built in {seconds:.0} s", self.name, version.text);
        Ok(())
    }
}

fn go_build(dir: &Path, program: &Path, package: &str, flags: &str) -> Result<bool, String> {
    let mut build = go();
    build
        .args(["build", "-ldflags", flags, "-o"])
        .arg(program)
        .arg(package)
        .current_dir(dir);
    let status = build.status().map_err(|error| format!("cannot run go: {error}"))?;
    Ok(status.success())
}

fn stamp(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_go_are_compared_by_number() {
        assert_eq!(numbers("go1.26.8"), Some(vec![1, 26, 8]));
        assert_eq!(numbers("go1.27rc1"), Some(vec![1, 27]));
        assert_eq!(numbers("devel"), None);
        assert!(numbers("go1.9.7") < numbers("1.26.0"));
    }

    #[test]
    fn every_tool_is_pinned_and_says_its_version() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for tool in TOOLS {
            let pins = read(&root.join(tool.dir).join("go.mod")).unwrap();
            let version = tool.version(&pins).unwrap();
            assert!(
                pins.contains(&format!("\t{}\n", tool.package)) || pins.contains(&format!("tool {}\n", tool.package))
            );
            if tool.name.starts_with("kube") {
                let flags = tool.link_flags(&version);
                let expect = format!("-X k8s.io/component-base/version.gitVersion={} ", version.text);
                assert!(flags.contains(&expect), "{flags}");
                let library = format!("k8s.io/apiserver v0{}", version.text.trim_start_matches("v1"));
                assert!(pins.contains(&library), "{library}");
            }
        }
    }

    #[test]
    fn an_unknown_tool_is_reported_with_the_known_ones() {
        let error = choose(&["helm".to_owned(), "etdc".to_owned()]).unwrap_err();
        assert!(
            error.contains("\"etdc\"") && error.contains("etcd, kube-apiserver"),
            "{error}"
        );
    }
}
