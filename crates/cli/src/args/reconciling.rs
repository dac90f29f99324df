//! Which objects the controllers work on, and what goes from Machines to Nodes.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use tracing::level_filters::LevelFilter;
use windlass_manager::{
    ClientIdentity, Concurrency, EtcdTimeouts, FeatureGates, GracePeriods, KeyPattern, NodeSync, Phase, Phases,
    PreflightChecks, Scope, TokenTtl, columns, label_problems,
};

use super::concurrency::ConcurrencyArgs;

/// The patterns of one value: separated by commas, in quotes where a pattern has a comma itself, as in the options of Cluster API.
#[derive(Clone, Debug)]
struct Patterns(Vec<KeyPattern>);

fn patterns(text: &str) -> Result<Patterns, String> {
    let all = columns(text).ok_or("a quote has no end")?;
    let all = all.iter().filter(|pattern| !pattern.is_empty());
    all.map(|pattern| pattern.parse())
        .collect::<Result<_, _>>()
        .map(Patterns)
}

fn token_ttl(text: &str) -> Result<TokenTtl, String> {
    super::duration(text).and_then(TokenTtl::new)
}

/// A time that something takes. None at all would let nothing succeed.
fn some_time(text: &str) -> Result<Duration, String> {
    let time = super::duration(text)?;
    Some(time)
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "more than no time is expected".to_owned())
}

/// A level by a name that the option has in Cluster API. The names above error are of events that end the program, which calls to etcd never
/// do.
fn etcd_level(text: &str) -> Result<LevelFilter, String> {
    match text.to_ascii_lowercase().as_str() {
        "debug" => Ok(LevelFilter::DEBUG),
        "info" => Ok(LevelFilter::INFO),
        "warn" => Ok(LevelFilter::WARN),
        "error" | "dpanic" | "panic" | "fatal" => Ok(LevelFilter::ERROR),
        _ => Err("debug, info, warn, error, dpanic, panic or fatal is expected".to_owned()),
    }
}

/// A namespace, or nothing.
fn namespace(text: &str) -> Result<String, String> {
    let problems = label_problems(text);
    if text.is_empty() || problems.is_empty() {
        return Ok(text.to_owned());
    }
    Err(format!("one namespace is expected: {}", problems.join("; ")))
}

/// The shortest time after which conditions that come from a workload cluster may become unknown, as in Cluster API.
const SHORTEST: Duration = Duration::from_mins(2);

/// Options of `up` and `manager`.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Objects to reconcile")]
pub(crate) struct ReconcilingArgs {
    /// Read and reconcile only objects of this namespace, beside those without one; the provider operator does not run then [default: all
    /// namespaces]
    #[arg(long = "namespace", id = "only_namespace", value_name = "NAMESPACE", value_parser = namespace)]
    namespace: Option<String>,
    /// Reconcile only objects whose label cluster.x-k8s.io/watch-filter has this value [default: all objects]
    #[arg(long = "watch-filter", id = "watch_filter", value_name = "VALUE")]
    watch_filter: Option<String>,
    /// Reconcile every object again after this time, though nothing has changed; 0 turns this off
    #[arg(long = "sync-period", value_name = "DURATION", default_value = "10m", value_parser = super::duration)]
    sync_period: Duration,
    /// How long a workload cluster may be out of reach until the condition RemoteConnectionProbe of its Cluster is false
    #[arg(
        long = "remote-connection-grace-period",
        value_name = "DURATION",
        default_value = "50s",
        value_parser = super::duration
    )]
    connection_grace: Duration,
    /// How long a workload cluster may be out of reach until conditions that come from it are unknown, such as NodeHealthy; 2m at least, and
    /// longer than --remote-connection-grace-period
    #[arg(
        long = "remote-conditions-grace-period",
        value_name = "DURATION",
        default_value = "5m",
        value_parser = super::duration
    )]
    conditions_grace: Duration,
    /// How long a bootstrap token lives; it is extended until its machine has joined
    #[arg(
        long = "bootstrap-token-ttl",
        value_name = "DURATION",
        env = "KUBEADM_BOOTSTRAP_TOKEN_TTL",
        default_value = "15m",
        value_parser = token_ttl
    )]
    tokens: TokenTtl,
    /// How long it may take to reach an etcd member of a workload cluster
    #[arg(
        long = "etcd-dial-timeout-duration",
        value_name = "DURATION",
        default_value = "10s",
        value_parser = some_time
    )]
    etcd_dial: Duration,
    /// How long an etcd member of a workload cluster may take to answer a call
    #[arg(
        long = "etcd-call-timeout-duration",
        value_name = "DURATION",
        default_value = "15s",
        value_parser = some_time
    )]
    etcd_call: Duration,
    /// Log level of the calls to etcd members, whatever --log-level is: debug shows each call, info and warn show those that fail, and error,
    /// dpanic, panic and fatal show none [default: as --log-level]
    #[arg(long = "etcd-client-log-level", value_name = "LEVEL", value_parser = etcd_level)]
    etcd_level: Option<LevelFilter>,
    /// Regular expressions of Go, separated by commas, for labels of Machines that go to their Nodes, beside those that always do; may be
    /// repeated
    #[arg(long = "additional-sync-machine-labels", id = "sync_labels", value_name = "PATTERNS", value_parser = patterns)]
    labels: Vec<Patterns>,
    /// Regular expressions of Go, separated by commas, for annotations of Machines that go to their Nodes, beside those that always do;
    /// may be repeated
    #[arg(
        long = "additional-sync-machine-annotations",
        id = "sync_annotations",
        value_name = "PATTERNS",
        value_parser = patterns
    )]
    annotations: Vec<Patterns>,
    /// Checks before MachineSets make or replace Machines, separated by commas: All, or some of KubeadmVersionSkew, KubernetesVersionSkew,
    /// ControlPlaneIsStable and ControlPlaneVersionSkew; none with an empty value; may be repeated [default: All]
    #[arg(long = "machineset-preflight-checks", value_name = "CHECKS")]
    preflight: Vec<PreflightChecks>,
    /// Phases of the migration of stored objects that do not run, separated by commas: StorageVersionMigration, CleanupManagedFields;
    /// may be repeated
    #[arg(long = "skip-crd-migration-phases", value_name = "PHASES", value_delimiter = ',')]
    skipped_phases: Vec<Phase>,
    /// Feature gates of Cluster API v1.14, as NAME=true or NAME=false, separated by commas; may be repeated. ClusterTopology,
    /// InPlaceUpdates, KubeadmBootstrapFormatIgnition, MachinePool, MachineSetPreflightChecks, MachineTaintPropagation and RuntimeSDK are on and can be turned off;
    /// AllAlpha=false leaves those on that are on in Cluster API
    #[arg(long = "feature-gates", value_name = "GATES")]
    feature_gates: Vec<String>,
    #[command(flatten)]
    concurrency: ConcurrencyArgs,
    /// File with the PEM-encoded certificate with which the controllers identify themselves to runtime extensions; needs
    /// --runtime-extension-client-key-file
    #[arg(
        long = "runtime-extension-client-cert-file",
        value_name = "FILE",
        requires = "extension_key"
    )]
    extension_certificate: Option<PathBuf>,
    /// File with the PEM-encoded private key of that certificate
    #[arg(
        long = "runtime-extension-client-key-file",
        id = "extension_key",
        value_name = "FILE",
        requires = "extension_certificate"
    )]
    extension_key: Option<PathBuf>,
}

impl ReconcilingArgs {
    /// Which objects are read and reconciled. An empty value is as good as none, as in the options of Cluster API.
    pub(crate) fn scope(&self) -> Scope {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        Scope {
            namespace: given(&self.namespace),
            watch_filter: given(&self.watch_filter),
        }
    }

    /// After which time every object is reconciled again.
    pub(crate) fn sync_period(&self) -> Option<Duration> {
        Some(self.sync_period).filter(|period| !period.is_zero())
    }

    /// When outages of workload clusters are reported. The error names the option that is wrong.
    pub(crate) fn grace(&self) -> Result<GracePeriods, String> {
        let (connection, conditions) = (self.connection_grace, self.conditions_grace);
        if conditions < SHORTEST {
            return Err(format!(
                "--remote-conditions-grace-period is {conditions:?}: 2m at least are expected"
            ));
        }
        if conditions <= connection {
            return Err(format!(
                "--remote-conditions-grace-period is {conditions:?}: more than --remote-connection-grace-period ({connection:?}) is expected"
            ));
        }
        let signed = |period: Duration| {
            period
                .try_into()
                .map_err(|error| format!("a grace period of {period:?} is too long: {error}"))
        };
        Ok(GracePeriods {
            connection: signed(connection)?,
            conditions: signed(conditions)?,
        })
    }

    /// With what the controllers identify themselves to runtime extensions, if with anything. The files are read again when they change. The error
    /// names the options.
    pub(crate) fn identity(&self) -> Result<Option<ClientIdentity>, String> {
        let files = (self.extension_certificate.clone(), self.extension_key.clone());
        let (Some(certificate), Some(key)) = files else {
            return Ok(None);
        };
        let identity = ClientIdentity { certificate, key };
        let unusable = |why| {
            let files = (identity.certificate.display(), identity.key.display());
            let options = "--runtime-extension-client-cert-file and --runtime-extension-client-key-file";
            format!("{options}: {} and {} cannot be used: {why}", files.0, files.1)
        };
        identity.check().map_err(unusable)?;
        Ok(Some(identity))
    }

    /// The feature gates. The error names the option.
    pub(crate) fn gates(&self) -> Result<FeatureGates, String> {
        FeatureGates::of(&self.feature_gates).map_err(|why| format!("--feature-gates: {why}"))
    }

    /// How many objects are reconciled at a time.
    pub(crate) fn concurrency(&self) -> Concurrency {
        self.concurrency.0.clone()
    }

    /// The checks before MachineSets make or replace Machines.
    pub(crate) fn preflight(&self) -> PreflightChecks {
        match self.preflight.as_slice() {
            [] => PreflightChecks::default(),
            some => PreflightChecks::together(some),
        }
    }

    /// How long bootstrap tokens live.
    pub(crate) fn tokens(&self) -> TokenTtl {
        self.tokens
    }

    /// How long etcd members may take.
    pub(crate) fn etcd(&self) -> EtcdTimeouts {
        EtcdTimeouts {
            dial: self.etcd_dial,
            call: self.etcd_call,
        }
    }

    /// The log level of calls to etcd members, if they have their own.
    pub(crate) fn etcd_level(&self) -> Option<LevelFilter> {
        self.etcd_level
    }

    /// What is migrated of stored objects.
    pub(crate) fn migration(&self) -> Phases {
        Phases::without(self.skipped_phases.clone())
    }

    /// What goes from Machines to their Nodes beside what always does.
    pub(crate) fn nodes(&self) -> NodeSync {
        NodeSync {
            labels: self.labels.iter().flat_map(|all| all.0.clone()).collect(),
            annotations: self.annotations.iter().flat_map(|all| all.0.clone()).collect(),
            ..NodeSync::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use clap::Parser;
    use windlass_manager::CONCURRENCY_OPTIONS;

    use super::*;

    #[derive(Parser)]
    struct All {
        #[command(flatten)]
        args: ReconcilingArgs,
    }

    fn parse(line: &str) -> Result<ReconcilingArgs, String> {
        let parsed = All::try_parse_from(["windlass"].into_iter().chain(line.split_whitespace()));
        parsed.map(|all| all.args).map_err(|error| error.to_string())
    }

    #[test]
    fn empty_values_limit_nothing() {
        let nothing =
            "--namespace= --watch-filter= --additional-sync-machine-labels= --additional-sync-machine-annotations=";
        let args = parse(nothing).unwrap();
        assert_eq!(args.scope(), Scope::default());
        assert_eq!(args.nodes(), NodeSync::default());
        let args = parse("--namespace a --watch-filter b").unwrap();
        let scope = Scope {
            namespace: Some("a".to_owned()),
            watch_filter: Some("b".to_owned()),
        };
        assert_eq!(args.scope(), scope);
    }

    #[test]
    fn the_sync_period_is_that_of_cluster_api_and_can_be_turned_off() {
        let period = |line: &str| parse(line).map(|args| args.sync_period());
        assert_eq!(period(""), Ok(Some(Duration::from_mins(10))));
        assert_eq!(period("--sync-period 1h30m"), Ok(Some(Duration::from_mins(90))));
        assert_eq!(period("--sync-period 0"), Ok(None));
        assert!(period("--sync-period soon").is_err());
        assert!(period("--sync-period=-1m").is_err());
    }

    #[test]
    fn grace_periods_have_the_bounds_of_cluster_api() {
        let grace = |line: &str| parse(line).unwrap().grace();
        assert_eq!(grace(""), Ok(GracePeriods::default()));
        let longer = grace("--remote-connection-grace-period 100s --remote-conditions-grace-period 2m").unwrap();
        assert_eq!((longer.connection.as_secs(), longer.conditions.as_secs()), (100, 120));
        let error = grace("--remote-conditions-grace-period 119s").unwrap_err();
        assert!(error.contains("2m at least"), "{error}");
        let error = grace("--remote-connection-grace-period 5m").unwrap_err();
        assert!(error.contains("more than --remote-connection-grace-period"), "{error}");
    }

    #[test]
    fn bootstrap_tokens_live_as_long_as_chosen() {
        let tokens = |line: &str| parse(line).map(|args| args.tokens());
        assert_eq!(tokens(""), Ok(TokenTtl::default()));
        assert_eq!(tokens("--bootstrap-token-ttl 15m"), Ok(TokenTtl::default()));
        let hour = TokenTtl::new(Duration::from_hours(1));
        assert_eq!(tokens("--bootstrap-token-ttl 1h"), hour);
        for wrong in ["59s", "soon", "900000h"] {
            assert!(tokens(&format!("--bootstrap-token-ttl {wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn etcd_members_have_as_much_time_as_chosen() {
        let etcd = |line: &str| parse(line).map(|args| args.etcd());
        assert_eq!(etcd(""), Ok(EtcdTimeouts::default()));
        let chosen = EtcdTimeouts {
            dial: Duration::from_secs(90),
            call: Duration::from_millis(1500),
        };
        assert_eq!(
            etcd("--etcd-dial-timeout-duration 1m30s --etcd-call-timeout-duration=1.5s"),
            Ok(chosen)
        );
        for wrong in ["0", "0s", "-1s", "soon"] {
            for option in ["dial", "call"] {
                assert!(
                    etcd(&format!("--etcd-{option}-timeout-duration={wrong}")).is_err(),
                    "{wrong}"
                );
            }
        }
    }

    #[test]
    fn calls_to_etcd_are_logged_by_the_levels_of_cluster_api() {
        let level = |line: &str| parse(line).map(|args| args.etcd_level());
        assert_eq!(level(""), Ok(None));
        for (name, expect) in [
            ("debug", LevelFilter::DEBUG),
            ("INFO", LevelFilter::INFO),
            ("warn", LevelFilter::WARN),
            ("error", LevelFilter::ERROR),
            ("fatal", LevelFilter::ERROR),
        ] {
            assert_eq!(
                level(&format!("--etcd-client-log-level {name}")),
                Ok(Some(expect)),
                "{name}"
            );
        }
        for wrong in ["", "loud", "trace", "-1"] {
            assert!(level(&format!("--etcd-client-log-level={wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn phases_of_migrations_are_skipped_by_name() {
        let skips = |line: &str| parse(line).map(|args| Phase::ALL.map(|phase| !args.migration().has(phase)));
        assert_eq!(skips(""), Ok([false, false]));
        assert_eq!(
            skips("--skip-crd-migration-phases CleanupManagedFields"),
            Ok([false, true])
        );
        let both = "--skip-crd-migration-phases StorageVersionMigration,CleanupManagedFields";
        assert_eq!(skips(both), Ok([true, true]));
        assert!(
            skips("--skip-crd-migration-phases All")
                .unwrap_err()
                .contains("CleanupManagedFields")
        );
    }

    #[test]
    fn preflight_checks_are_named_or_none() {
        let checks = |line: &str| parse(line).map(|args| args.preflight());
        assert_eq!(checks(""), Ok(PreflightChecks::default()));
        assert_eq!(checks("--machineset-preflight-checks="), Ok("".parse().unwrap()));
        let two = "--machineset-preflight-checks ControlPlaneIsStable --machineset-preflight-checks KubeadmVersionSkew";
        assert_eq!(
            checks(two),
            Ok("ControlPlaneIsStable,KubeadmVersionSkew".parse().unwrap())
        );
        let error = checks("--machineset-preflight-checks Stable").unwrap_err();
        assert!(error.contains("there is no check \"Stable\""), "{error}");
    }

    #[test]
    fn gates_and_numbers_are_those_of_cluster_api() {
        let gates = |line: &str| parse(line).unwrap().gates();
        assert_eq!(gates(""), Ok(FeatureGates::default()));
        let two = gates("--feature-gates MachinePool=false --feature-gates=RuntimeSDK=true,ClusterTopology=false");
        assert_eq!(two, FeatureGates::of(&["MachinePool=false,ClusterTopology=false"]));
        let error = gates("--feature-gates PriorityQueue=true").unwrap_err();
        assert!(
            error.starts_with("--feature-gates: PriorityQueue can only be false"),
            "{error}"
        );

        let mut expect = Concurrency::default();
        assert_eq!(parse("").unwrap().concurrency(), expect);
        let option = CONCURRENCY_OPTIONS
            .iter()
            .find(|option| option.name == "machine-concurrency");
        expect.set(option.unwrap(), NonZeroU16::new(7).unwrap());
        assert_eq!(parse("--machine-concurrency=7").unwrap().concurrency(), expect);
        for option in CONCURRENCY_OPTIONS {
            assert!(parse(&format!("--{} 1", option.name)).is_ok(), "{}", option.name);
        }
        assert!(parse("--machine-concurrency=0").is_err());
        assert!(parse("--machine-concurrency=many").is_err());
    }

    #[test]
    fn a_namespace_is_one_name() {
        for wrong in ["a,b", "Team", "a/b", "a?x", "-a", "a-"] {
            assert!(parse(&format!("--namespace={wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn patterns_are_repeated_and_checked() {
        let args = parse("--additional-sync-machine-labels ^a$ --additional-sync-machine-labels b").unwrap();
        assert_eq!(args.nodes().labels.len(), 2);
        assert_eq!(args.nodes().annotations.len(), 0);
        let args = parse(r#"--additional-sync-machine-labels ^a/,"^b{1,2}/""#).unwrap();
        assert_eq!(args.nodes().labels, ["^a/", "^b{1,2}/"].map(|one| one.parse().unwrap()));
        assert!(parse("--additional-sync-machine-labels \"a").is_err());
        let error = parse("--additional-sync-machine-annotations a(").unwrap_err();
        assert!(
            error.contains("error parsing regexp: missing closing ): `a(`"),
            "{error}"
        );
    }
}
