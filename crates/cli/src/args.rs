//! The command line: commands, options and their help texts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use tracing::level_filters::LevelFilter;
use windlass_manager::{Fetcher, Fetching, Helming, ManagerError, WebhookTarget};
use windlass_meta::{GoDuration, KubernetesVersion, ParseDurationError};

// The reference is generated from this file, so that it has to be found from there, too.
#[path = "args/adopting.rs"]
pub(crate) mod adopting;
#[path = "args/concurrency.rs"]
mod concurrency;
#[path = "args/listening.rs"]
mod listening;
#[path = "args/logs.rs"]
pub(crate) mod logs;
#[path = "args/planning.rs"]
pub(crate) mod planning;
#[path = "args/reconciling.rs"]
mod reconciling;
#[path = "args/workloads.rs"]
mod workloads;

use adopting::AdoptArgs;
use listening::{ServingArgs, address};
use logs::LogArgs;
use planning::PlanArgs;
pub(crate) use reconciling::ReconcilingArgs;
use workloads::WorkloadArgs;

/// Cluster API in Rust: creates, upgrades and deletes fleets of Kubernetes clusters.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, max_term_width = 110)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) log: LogArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create, scale, upgrade and delete a simulated cluster, shown live
    #[command(
        after_help = "Examples:\n  windlass demo\n  windlass demo --keep\n  windlass demo --externally-managed\n  windlass demo --clusters 100 --control-plane-replicas 1 --workers 1"
    )]
    Demo(DemoArgs),
    /// Run the embedded management cluster: API server, all controllers, provider operator, in-memory infrastructure, in one process
    #[command(
        after_help = "Examples:\n  windlass up\n  windlass up --data-dir /var/lib/windlass --kubeconfig windlass.kubeconfig\n  kubectl --kubeconfig windlass.kubeconfig get clusters,machines\n  kubectl --kubeconfig windlass.kubeconfig apply -f examples/provider-operator/    # install providers"
    )]
    Up(Box<UpArgs>),
    /// Run the controllers, including the provider operator, and admission webhooks against any Kubernetes API server
    #[command(
        after_help = "Examples:\n  windlass manager --kubeconfig management.kubeconfig --install-crds\n  windlass manager --controllers machine,machineset --diagnostics-address localhost:8080 --insecure-diagnostics\n  windlass manager --webhook-address 0.0.0.0:9443 --webhook-service windlass-system/windlass-webhook\n  kubectl apply --server-side -f config/provider-operator.yaml    # only the provider operator, in a cluster"
    )]
    Manager(Box<ManagerArgs>),
    /// Run only the embedded API server
    #[command(
        after_help = "Examples:\n  windlass apiserver --data-dir ./data --kubeconfig management.kubeconfig --port 0\n  windlass apiserver snapshot save backup-1 --data-dir ./data\n  windlass apiserver snapshot restore backup-1 --data-dir ./restored"
    )]
    Apiserver(ApiserverArgs),
    /// Check ClusterClasses, their templates and Clusters in files, without a server
    #[command(
        after_help = "Exit code: 0 without errors, 1 with errors, 2 for wrong usage and files that cannot be read.\n\nExamples:\n  windlass lint clusterclass.yaml\n  windlass lint --strict classes/ crds/\n  kustomize build . | windlass lint --output json -"
    )]
    Lint(LintArgs),
    /// Run unit tests of ClusterClasses from files, without a server
    #[command(
        after_help = "Exit code: 0 if all cases pass, 1 if some fail, 2 for wrong usage and test files that cannot be read.\n\nExamples:\n  windlass test tests/clusterclass-test.yaml\n  windlass test --filter proxy --verbose tests/\n  windlass test --update tests/\n  windlass test --output junit tests/ >results.xml"
    )]
    Test(TestArgs),
    /// Show what a change of classes, templates or Clusters would do: objects, Machines, their order, what waits. Writes nothing
    ///
    /// Exit code 0: nothing changes; 2: something changes; 1: a change is refused, or there is no plan.
    #[command(
        after_help = "Examples:\n  windlass plan -f class.yaml\n  windlass plan --class quick-start --set 'spec.variables[name=nodeLabel].schema.openAPIV3Schema.default=blue'\n  windlass plan --rebase my-cluster=quick-start-v2 --output yaml\n  windlass plan --offline clusters/ -f changed/ --output markdown    # in a pull request, without a management cluster"
    )]
    Plan(Box<PlanArgs>),
    /// Show what this program would change in a management cluster that Cluster API's own managers run, and how to take it over. Writes
    /// nothing, neither there nor to workload clusters
    ///
    /// Exit code 0: nothing changes, or all steps are done; 2: something changes, or steps are left; 1: that is not known.
    #[command(
        after_help = "Examples:\n  windlass adopt\n  windlass adopt --output yaml\n  windlass adopt --take-over    # after each step again\n  windlass adopt --way-back"
    )]
    Adopt(Box<AdoptArgs>),
    /// Print all CustomResourceDefinitions as YAML
    #[command(after_help = "Example:\n  windlass crds | kubectl apply --server-side -f -")]
    Crds,
}

impl Command {
    /// The default log level of the command.
    pub(crate) fn log_level(&self) -> LevelFilter {
        match self {
            Self::Demo(_) | Self::Lint(_) | Self::Test(_) | Self::Plan(_) | Self::Crds => LevelFilter::WARN,
            Self::Adopt(_) => LevelFilter::ERROR,
            Self::Up(_) | Self::Manager(_) | Self::Apiserver(_) => LevelFilter::INFO,
        }
    }

    /// The log level of calls to etcd members, if they have their own.
    pub(crate) fn etcd_log_level(&self) -> Option<LevelFilter> {
        match self {
            Self::Up(args) => args.reconciling.etcd_level(),
            Self::Manager(args) => args.reconciling.etcd_level(),
            _ => None,
        }
    }
}

/// Options of `demo`.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct DemoArgs {
    /// Number of clusters to create
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=9999))]
    pub(crate) clusters: u32,
    /// Control plane machines per cluster: an odd number, because etcd needs a majority
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = odd)]
    pub(crate) control_plane_replicas: u32,
    /// Worker machines per cluster; the demo adds one when it scales up
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=9999))]
    pub(crate) workers: u32,
    /// Kubernetes version of the clusters; the upgrade goes to the next minor version
    #[arg(long, value_name = "VERSION", default_value = "v1.35.0", value_parser = version)]
    pub(crate) kubernetes_version: KubernetesVersion,
    /// File with a ClusterClass and its templates, instead of the built-in one; the workers use its first MachineDeployment class
    #[arg(long, value_name = "FILE")]
    pub(crate) class: Option<PathBuf>,
    /// Externally managed infrastructure: clusters wait until an external system, simulated by the demo, has written the endpoint
    /// and the status. With --class, the infrastructure template of the class gets the annotation
    #[arg(long)]
    pub(crate) externally_managed: bool,
    /// Data directory of the management cluster [default: a temporary directory, removed at the end]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Wait for this time after the creation and count the writes of the controllers meanwhile
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) idle: Option<Duration>,
    /// Timeout of each step, for example 90s or 5m
    #[arg(long, value_name = "DURATION", default_value = "120s", value_parser = duration)]
    pub(crate) timeout: Duration,
    /// Output format: text (a tree on a terminal, otherwise a line per change) or json (one document at the end)
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// Keep running after the creation until Ctrl-C, and print the kubectl command to use
    #[arg(long)]
    pub(crate) keep: bool,
    /// Run the controllers against this API server instead of the embedded one. Installs the CustomResourceDefinitions, which
    /// stay; no other Cluster API may run there
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// With --kubeconfig: answer admission reviews there, at an address that the API server can reach; port 0 is any that is free
    /// [default: no admission]
    #[arg(long, value_name = "ADDRESS:PORT", requires = "kubeconfig", value_parser = address)]
    pub(crate) webhook_address: Option<SocketAddr>,
    /// Show what the controllers wrote to the API server, and how much memory they took
    #[arg(long)]
    pub(crate) costs: bool,
}

/// Options of `lint`.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct LintArgs {
    /// Files with YAML or JSON, directories with such files, or - for standard input. CustomResourceDefinitions among them are used to
    /// check the templates of other providers
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Output format: text (a line per finding, and a line with what to do) or json (one document)
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// Exit with 1 for warnings, too
    #[arg(long)]
    pub(crate) strict: bool,
}

/// Options of `test`.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct TestArgs {
    /// Test files, directories with them, or - for standard input; documents of other kinds are ignored
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Output format: text (the cases that fail, with differences), json (one document) or junit (XML for CI systems)
    #[arg(long, value_name = "FORMAT", value_enum, hide_possible_values = true, default_value_t = TestOutput::Text)]
    pub(crate) output: TestOutput,
    /// Run only the cases whose name has this part
    #[arg(long, value_name = "NAME")]
    pub(crate) filter: Option<String>,
    /// Write golden files as they should be, instead of comparing with them
    #[arg(long)]
    pub(crate) update: bool,
    /// List all cases, and show all generated objects of those that fail
    #[arg(long)]
    pub(crate) verbose: bool,
}

/// An output format of `test`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TestOutput {
    /// Lines for people
    Text,
    /// One JSON document
    Json,
    /// JUnit XML
    Junit,
}

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Lines for people
    Text,
    /// One JSON document at the end
    Json,
}

/// Options of `up`.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct UpArgs {
    /// Data directory [default: ~/.windlass]
    #[arg(long, value_name = "DIR", env = "WINDLASS_DATA_DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Kubeconfig file to write [default: kubeconfig in the data directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Port of the API server on 127.0.0.1; 0 selects a free port
    #[arg(long, value_name = "N", default_value_t = 16443, value_parser = port)]
    pub(crate) port: u16,
    /// Static bearer tokens, as in kube-apiserver's --token-auth-file: lines of token,user,uid,"group1,group2". Rights come from RBAC
    #[arg(long, value_name = "FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,
    /// Run only these controllers, separated by commas; an unknown name lists all
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) controllers: Option<Vec<String>>,
    #[command(flatten)]
    pub(crate) serving: ServingArgs,
    #[command(flatten)]
    pub(crate) reconciling: ReconcilingArgs,
    #[command(flatten)]
    pub(crate) workloads: WorkloadArgs,
    #[command(flatten)]
    pub(crate) fetching: FetchingArgs,
    #[command(flatten)]
    pub(crate) helm: HelmArgs,
}

/// Helm options of `up` and `manager`.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Helm charts on clusters")]
pub(crate) struct HelmArgs {
    /// Helm program, version 3 or 4 [default: helm in PATH]
    #[arg(long = "helm", id = "helm", value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    /// Directory for fetched charts while the process runs [default: helm in the data directory; for manager, a temporary directory]
    #[arg(long = "helm-home", id = "helm_home", value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// Interval of looking for newer chart versions, for charts without a version or with a range [default: 10m]
    #[arg(long = "helm-chart-interval", id = "helm_chart_interval", value_name = "DURATION", value_parser = duration)]
    pub(crate) ask_every: Option<Duration>,
    /// Number of helm processes that run at once; with options.wait, four times as many [default: 10]
    #[arg(long = "helm-concurrency", id = "helm_concurrency", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) at_a_time: Option<u16>,
}

impl HelmArgs {
    /// The settings of the Helm controllers.
    pub(crate) fn helming(&self) -> Helming {
        Helming {
            program: self.program.clone(),
            home: self.home.clone(),
            ask_every: self.ask_every,
            at_a_time: self.at_a_time.map(usize::from),
        }
    }
}

/// Fetch options of `up` and `manager`.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Fetching providers (proxies: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY)")]
pub(crate) struct FetchingArgs {
    /// File with additional CA certificates (PEM) to trust; may be repeated
    #[arg(long = "provider-ca-file", id = "provider_ca_file", value_name = "FILE")]
    pub(crate) authorities: Vec<PathBuf>,
    /// Directory for a cache of fetched files; cached files are only revalidated
    #[arg(long = "provider-cache-dir", id = "provider_cache_dir", value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Environment variables that providers may use when their Secrets do not set them, separated by commas: for fetching, such as
    /// GITHUB_TOKEN, or for components. Every user who may create provider objects can read them
    #[arg(
        long = "provider-variables",
        id = "provider_variables",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    pub(crate) variables: Vec<String>,
}

impl FetchingArgs {
    /// Reads the named files and variables.
    pub(crate) fn fetcher(self) -> Result<Fetcher, ManagerError> {
        let fetching = Fetching {
            authorities: self.authorities,
            cache: self.cache,
            variables: self.variables,
        };
        fetching.fetcher(|name| std::env::var(name).ok())
    }
}

/// Options of `manager`.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct ManagerArgs {
    /// Kubeconfig file of the API server [default: in-cluster, else as kubectl finds it]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// First install or update the CustomResourceDefinitions
    #[arg(long)]
    pub(crate) install_crds: bool,
    /// Run only these controllers, separated by commas; an unknown name lists all
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) controllers: Option<Vec<String>>,
    /// Start also the controllers of providers that another program runs, such as the managers of Cluster API's own releases. Without it they
    /// do not start, as two programs would reconcile the same objects
    #[arg(long)]
    pub(crate) take_over: bool,
    #[command(flatten)]
    pub(crate) serving: ServingArgs,
    #[command(flatten)]
    pub(crate) reconciling: ReconcilingArgs,
    #[command(flatten)]
    pub(crate) workloads: WorkloadArgs,
    #[command(flatten)]
    pub(crate) fetching: FetchingArgs,
    #[command(flatten)]
    pub(crate) helm: HelmArgs,
    #[command(flatten)]
    pub(crate) webhooks: WebhookArgs,
    #[command(flatten)]
    pub(crate) election: ElectionArgs,
}

/// Leader election options of `manager`.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Leader election")]
pub(crate) struct ElectionArgs {
    /// Run controllers only while this process holds a Lease; webhooks and metrics are served by every process
    #[arg(
        long = "leader-elect",
        value_name = "BOOL",
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = clap::ArgAction::Set
    )]
    pub(crate) leader_elect: bool,
    /// Time after which a Lease that is not renewed may be taken
    #[arg(long = "leader-elect-lease-duration", value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub(crate) lease_duration: Duration,
    /// Time after which a holder that cannot renew its Lease ends
    #[arg(long = "leader-elect-renew-deadline", value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) renew_deadline: Duration,
    /// Time between two attempts to take or renew the Lease
    #[arg(long = "leader-elect-retry-period", value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub(crate) retry_period: Duration,
    /// Name of the Lease; processes with other controllers need another one
    #[arg(
        long = "leader-elect-resource-name",
        value_name = "NAME",
        default_value = "windlass-manager"
    )]
    pub(crate) resource_name: String,
    /// Namespace of the Lease [default: that of the pod or of the kubeconfig's context]
    #[arg(long = "leader-elect-resource-namespace", value_name = "NAMESPACE")]
    pub(crate) resource_namespace: Option<String>,
}

/// Webhook options of `manager`.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Admission webhooks")]
pub(crate) struct WebhookArgs {
    /// Address of the webhook server [default: no admission webhooks]
    #[arg(
        long = "webhook-address",
        id = "webhook_address",
        value_name = "ADDRESS:PORT",
        requires = "webhook_target",
        value_parser = address
    )]
    pub(crate) address: Option<SocketAddr>,
    /// Service through which the API server reaches the webhook server
    #[arg(long = "webhook-service", id = "webhook_service", value_name = "NAMESPACE/NAME[:PORT]", group = "webhook_target", requires = "webhook_address", value_parser = WebhookTarget::service)]
    pub(crate) service: Option<WebhookTarget>,
    /// URL at which the API server reaches the webhook server without a Service
    #[arg(long = "webhook-url", id = "webhook_url", value_name = "https://HOST[:PORT]", group = "webhook_target", requires = "webhook_address", value_parser = WebhookTarget::url)]
    pub(crate) url: Option<WebhookTarget>,
    /// Directory with tls.crt, tls.key and, for the API server to trust, ca.crt [default: a generated certificate in the Secret
    /// windlass-webhook-certificate, in the namespace of the Service or of the kubeconfig]
    #[arg(
        long = "webhook-certificate-dir",
        id = "webhook_certificate_dir",
        value_name = "DIR",
        requires = "webhook_address"
    )]
    pub(crate) certificate_dir: Option<PathBuf>,
}

/// Options of `apiserver`.
#[derive(Clone, Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ApiserverArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ApiserverCommand>,
    /// Data directory
    #[arg(long, value_name = "DIR", required = true)]
    pub(crate) data_dir: Option<PathBuf>,
    /// Kubeconfig file to write [default: kubeconfig in the data directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Port on 127.0.0.1; 0 selects a free port
    #[arg(long, value_name = "N", default_value_t = 16443, value_parser = port)]
    pub(crate) port: u16,
    /// Static bearer tokens, as in kube-apiserver's --token-auth-file: lines of token,user,uid,"group1,group2". Rights come from RBAC
    #[arg(long, value_name = "FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,
}

/// Subcommands of `apiserver`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ApiserverCommand {
    /// Save all objects to a file, or restore them
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
}

/// Subcommands of `snapshot`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Save a consistent snapshot of all objects, including Secrets, to a file that only its owner can read; a server may be running
    Save(SnapshotArgs),
    /// Restore a snapshot into an empty data directory, with names, uids and resourceVersions; watches of clients start over
    Restore(SnapshotArgs),
}

/// Options of `apiserver snapshot save` and `restore`.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct SnapshotArgs {
    /// Snapshot file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Data directory of `up` or `apiserver` [default: ~/.windlass]
    #[arg(long, value_name = "DIR", env = "WINDLASS_DATA_DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

fn odd(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(number) if number % 2 == 1 => Ok(number),
        _ => Err("expected an odd number".to_owned()),
    }
}

fn port(text: &str) -> Result<u16, String> {
    text.parse()
        .map_err(|_| "expected a port from 1 to 65535, or 0".to_owned())
}

fn version(text: &str) -> Result<KubernetesVersion, String> {
    KubernetesVersion::from_str(text).map_err(|error| error.to_string())
}

/// Parses a duration as Go writes them: `90s`, `5m`, `1h30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let parsed: GoDuration = text.parse().map_err(|error: ParseDurationError| error.to_string())?;
    if parsed.as_nanos() < 0 {
        return Err(format!("{text:?} is negative: expected a time to wait, such as 90s"));
    }
    Ok(parsed.to_std())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn durations_have_a_unit() {
        let check = |text: &str, expect: Option<u64>| {
            assert_eq!(duration(text).ok(), expect.map(Duration::from_millis), "{text}");
        };
        check("90s", Some(90_000));
        check("250ms", Some(250));
        check("2m", Some(120_000));
        check("1h", Some(3_600_000));
        check("90", None);
        check("s", None);
        check("1.5s", Some(1_500));
        check("10m0s", Some(600_000));
        check("-1s", None);
        check("99999999999999999999s", None);
        check("18446744073709551615h", None);
    }

    #[test]
    fn wrong_values_are_usage_errors() {
        let check = |line: &str| {
            let error = Args::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
        };
        check("windlass demo --control-plane-replicas 2");
        check("windlass demo --clusters 0");
        check("windlass demo --kubernetes-version latest");
        check("windlass demo --kubeconfig a --data-dir b");
        check("windlass demo --webhook-address 127.0.0.1:0");
        check("windlass up --port 70000");
        check("windlass apiserver");
        check("windlass apiserver snapshot save");
        check("windlass apiserver --port 0 snapshot save x");
        check("windlass nothing");
        check("windlass lint");
        check("windlass lint --output junit a.yaml");
        check("windlass test");
        check("windlass test --output xml a.yaml");
        check("windlass manager --webhook-address 0.0.0.0:9443");
        check("windlass manager --webhook-service a/b");
        check("windlass manager --leader-elect=perhaps");
        check("windlass manager --health-addr 8080");
        check("windlass manager --workload-denied-networks 10.0.0.1");
        check("windlass manager --diagnostics-address 8443");
        check("windlass up --metrics-address 127.0.0.1:8080");
        check("windlass manager --leader-elect-lease-duration 15");
        check("windlass manager --webhook-url https://a");
        check("windlass manager --webhook-certificate-dir certs");
        check("windlass manager --webhook-address 0.0.0.0:9443 --webhook-service a/b --webhook-url https://a");
        check("windlass manager --webhook-address 0.0.0.0:9443 --webhook-service a");
        check("windlass manager --webhook-address 0.0.0.0:9443 --webhook-url http://a");
        check("windlass manager --webhook-address 9443 --webhook-url https://a");
        check("windlass up --log-level loud");
        check("windlass up -v debug");
        check("windlass up -v 4 --log-level debug");
    }
}
