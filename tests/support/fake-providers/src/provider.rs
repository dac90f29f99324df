//! Component files with the structure of real providers, but small.
//!
//! A fake provider has the parts in which installations differ: a Namespace, definitions in several versions with conversion,
//! webhook configurations, an Issuer and a Certificate, both types of roles, Services, one or several Deployments, variables with
//! and without defaults. Its kinds have `Rig` in their names, so that they never conflict with kinds of a management cluster.

mod text;

/// A mistake in a component file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// No Deployment among the objects.
    NoDeployment,
    /// Two Deployments have the same name.
    TwinDeployments,
    /// A line is indented with a tab.
    Tab,
    /// The file is a web page.
    Html,
    /// The file ends in the middle of a quoted text.
    Truncated,
    /// The name of a definition does not match its plural and group.
    WrongDefinitionName,
    /// Two Namespaces.
    TwoNamespaces,
    /// A variable reference is not closed.
    OpenVariable,
    /// An object has no kind.
    NoKind,
}

/// The description of a provider: build it, then read its files.
///
/// ```
/// let aws = windlass_fake_providers::LookAlike::infrastructure("aws").version("v2.1.0").contract("v1beta2");
/// assert_eq!(aws.components_file(), "infrastructure-components.yaml");
/// assert!(aws.components().contains("name: awsrigclusters.infrastructure.cluster.x-k8s.io"));
/// ```
#[derive(Debug, Clone)]
pub struct LookAlike {
    family: String,
    name: String,
    version: String,
    series: Vec<(u64, u64, String)>,
    namespace: String,
    storage: String,
    required: Vec<String>,
    deployments: usize,
    webhooks: bool,
    certificates: bool,
    extras: Vec<String>,
    padding: usize,
    flaw: Option<Flaw>,
}

impl LookAlike {
    /// A provider of a family: `core`, `bootstrap`, `control-plane`, `infrastructure`, `ipam`, `runtime-extension` or `addon`. It
    /// has version `v1.0.0`, contract `v1beta2`, one Deployment, and no required variable.
    pub fn new(family: &str, name: &str) -> Self {
        let mut made = Self {
            family: family.to_owned(),
            name: name.to_owned(),
            version: "v1.0.0".to_owned(),
            series: Vec::new(),
            namespace: String::new(),
            storage: "v1beta2".to_owned(),
            required: Vec::new(),
            deployments: 1,
            webhooks: true,
            certificates: true,
            extras: Vec::new(),
            padding: 0,
            flaw: None,
        };
        made.namespace = format!("{}-system", made.label());
        made
    }

    /// The core provider, `cluster-api`.
    pub fn core() -> Self {
        Self::new("core", "cluster-api")
    }

    /// A bootstrap provider.
    pub fn bootstrap(name: &str) -> Self {
        Self::new("bootstrap", name)
    }

    /// A control plane provider.
    pub fn control_plane(name: &str) -> Self {
        Self::new("control-plane", name)
    }

    /// An infrastructure provider. It requires the variables `<NAME>_B64ENCODED_CREDENTIALS` and `<NAME>_REGION`.
    pub fn infrastructure(name: &str) -> Self {
        let upper = name.to_uppercase().replace('-', "_");
        let made = Self::new("infrastructure", name);
        made.requires(&format!("{upper}_B64ENCODED_CREDENTIALS"))
            .requires(&format!("{upper}_REGION"))
    }

    /// An add-on provider.
    pub fn addon(name: &str) -> Self {
        Self::new("addon", name)
    }

    /// Sets the version.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.version);
        self
    }

    /// Sets the contract of the release series of its version. Call it after [`version`](Self::version).
    #[must_use]
    pub fn contract(self, contract: &str) -> Self {
        let (major, minor) = self.major_minor();
        self.series(major, minor, contract)
    }

    /// Adds a release series with this contract. Without any, the metadata has the version's own series with `v1beta2`.
    #[must_use]
    pub fn series(mut self, major: u64, minor: u64, contract: &str) -> Self {
        self.series.retain(|known| (known.0, known.1) != (major, minor));
        self.series.push((major, minor, contract.to_owned()));
        self.series.sort();
        self
    }

    /// Sets the namespace of the components. Defaults to `<label>-system`.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        self
    }

    /// Sets the storage version of its definitions, which have `v1beta1` and `v1beta2`.
    #[must_use]
    pub fn storage_version(mut self, version: &str) -> Self {
        version.clone_into(&mut self.storage);
        self
    }

    /// Adds a required variable.
    #[must_use]
    pub fn requires(mut self, variable: &str) -> Self {
        self.required.push(variable.to_owned());
        self
    }

    /// Removes all required variables.
    #[must_use]
    pub fn without_required_variables(mut self) -> Self {
        self.required.clear();
        self
    }

    /// Sets the number of Deployments: `<label>-controller-manager`, then `<label>-helper-1-controller-manager` and so on.
    #[must_use]
    pub fn deployments(mut self, count: usize) -> Self {
        self.deployments = count;
        self
    }

    /// Removes webhook configurations, conversion webhooks, their Service and certificates.
    #[must_use]
    pub fn without_webhooks(mut self) -> Self {
        self.webhooks = false;
        self.certificates = false;
        self
    }

    /// Adds a ConfigMap `<label>-<name>`, which another version may lack.
    #[must_use]
    pub fn extra(mut self, name: &str) -> Self {
        self.extras.push(name.to_owned());
        self
    }

    /// Pads the definitions, so that the file has at least this many bytes.
    #[must_use]
    pub fn padded_to(mut self, bytes: usize) -> Self {
        self.padding = bytes;
        self
    }

    /// Adds a mistake to the component file.
    #[must_use]
    pub fn with_flaw(mut self, flaw: Flaw) -> Self {
        self.flaw = Some(flaw);
        self
    }

    /// The value of the label `cluster.x-k8s.io/provider`: `cluster-api`, `infrastructure-aws`.
    pub fn label(&self) -> String {
        match self.family.as_str() {
            "core" => self.name.clone(),
            family => format!("{family}-{}", self.name),
        }
    }

    /// The family.
    pub fn family(&self) -> &str {
        &self.family
    }

    /// The provider's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version.
    pub fn release(&self) -> &str {
        &self.version
    }

    /// The namespace in the component file.
    pub fn own_namespace(&self) -> &str {
        &self.namespace
    }

    /// The name of the component file in releases: `infrastructure-components.yaml`.
    pub fn components_file(&self) -> String {
        format!("{}-components.yaml", self.family)
    }

    /// The required variables.
    pub fn required_variables(&self) -> &[String] {
        &self.required
    }

    /// The group of its kinds.
    pub fn group(&self) -> &'static str {
        match self.family.as_str() {
            "bootstrap" => "bootstrap.cluster.x-k8s.io",
            "control-plane" => "controlplane.cluster.x-k8s.io",
            "infrastructure" => "infrastructure.cluster.x-k8s.io",
            "ipam" => "ipam.cluster.x-k8s.io",
            "runtime-extension" => "runtime.cluster.x-k8s.io",
            "addon" => "addons.cluster.x-k8s.io",
            _ => "cluster.x-k8s.io",
        }
    }

    /// Its kinds. Only the first one has webhooks and conversion: objects of the others can be created while nothing serves
    /// webhooks.
    pub fn kinds(&self) -> Vec<String> {
        let suffixes: &[&str] = match self.family.as_str() {
            "bootstrap" => &["Config", "ConfigTemplate"],
            "control-plane" => &["ControlPlane", "ControlPlaneTemplate"],
            "infrastructure" => &["Cluster", "Machine", "MachineTemplate"],
            "ipam" => &["Pool"],
            "runtime-extension" => &[],
            "addon" => &["Chart", "Release"],
            _ => &["", "Template"],
        };
        let camel = match self.family.as_str() {
            "core" => String::new(),
            _ => self.name.split('-').map(capitalised).collect(),
        };
        suffixes.iter().map(|suffix| format!("{camel}Rig{suffix}")).collect()
    }

    /// The names of its Deployments.
    pub fn deployment_names(&self) -> Vec<String> {
        let label = self.label();
        (0..self.deployments)
            .map(|index| match index {
                0 => format!("{label}-controller-manager"),
                _ => format!("{label}-helper-{index}-controller-manager"),
            })
            .collect()
    }

    /// `metadata.yaml`.
    pub fn metadata(&self) -> String {
        let (major, minor) = self.major_minor();
        let own = vec![(major, minor, "v1beta2".to_owned())];
        text::metadata(if self.series.is_empty() { &own } else { &self.series })
    }

    /// The component file.
    pub fn components(&self) -> String {
        text::components(self)
    }

    /// Both files by name, as in a release.
    pub fn files(&self) -> Vec<(String, String)> {
        vec![
            (self.components_file(), self.components()),
            ("metadata.yaml".to_owned(), self.metadata()),
        ]
    }

    fn major_minor(&self) -> (u64, u64) {
        let mut parts = self
            .version
            .trim_start_matches('v')
            .split('.')
            .map(|part| part.parse().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
    }
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests;
