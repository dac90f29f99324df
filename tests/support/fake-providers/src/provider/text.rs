//! The YAML of fake providers.

use super::{Flaw, LookAlike};

/// Fills `@NAME@` in a template. (`format!` would need every brace of a variable doubled.)
fn fill(template: &str, values: &[(&str, &str)]) -> String {
    values
        .iter()
        .fold(template.trim_start().to_owned(), |text, (name, value)| {
            text.replace(&format!("@{name}@"), value)
        })
}

pub(super) fn metadata(series: &[(u64, u64, String)]) -> String {
    let series = series
        .iter()
        .map(|(major, minor, contract)| format!("- major: {major}\n  minor: {minor}\n  contract: {contract}\n"));
    let head = "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n";
    head.to_owned() + &series.collect::<String>()
}

const NAMESPACE: &str = r"
apiVersion: v1
kind: Namespace
metadata:
  labels:
    cluster.x-k8s.io/provider: @LABEL@
    control-plane: controller-manager
  name: @NAMESPACE@
";

const DEFINITION: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
@ANNOTATIONS@  labels:
    cluster.x-k8s.io/provider: @LABEL@
    cluster.x-k8s.io/v1beta1: v1beta1
    cluster.x-k8s.io/v1beta2: v1beta2
  name: @CRDNAME@
spec:
@CONVERSION@  group: @GROUP@
  names:
    categories:
    - cluster-api
    kind: @KIND@
    listKind: @KIND@List
    plural: @PLURAL@
    singular: @SINGULAR@
  scope: Namespaced
  versions:
@VERSIONS@";

const CONVERSION: &str = r"
  conversion:
    strategy: Webhook
    webhook:
      clientConfig:
        service:
          name: @LABEL@-webhook-service
          namespace: @NAMESPACE@
          path: /convert
      conversionReviewVersions:
      - v1
";

const VERSION: &str = r"
  - name: @APIVERSION@
    schema:
      openAPIV3Schema:
        description: A @KIND@ holds what the tests put into it.
        properties:
          apiVersion:
            type: string
          kind:
            type: string
          metadata:
            type: object
          spec:
            description: What is wanted.
            properties:
              size:
                format: int32
                type: integer
@PADDING@            type: object
            x-kubernetes-preserve-unknown-fields: true
          status:
            type: object
            x-kubernetes-preserve-unknown-fields: true
        type: object
    served: true
    storage: @STORAGE@
    subresources:
      status: {}
";

const ROLES: &str = r"
apiVersion: v1
kind: ServiceAccount
metadata:
  labels:
    cluster.x-k8s.io/provider: @LABEL@
  name: @LABEL@-manager
  namespace: @NAMESPACE@
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  labels:
    cluster.x-k8s.io/provider: @LABEL@
  name: @LABEL@-leader-election-role
  namespace: @NAMESPACE@
rules:
- apiGroups:
  - coordination.k8s.io
  resources:
  - leases
  verbs:
  - get
  - create
  - update
---
aggregationRule:
  clusterRoleSelectors:
  - matchLabels:
      @LABEL@.cluster.x-k8s.io/aggregate-to-manager: 'true'
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  labels:
    cluster.x-k8s.io/provider: @LABEL@
  name: @LABEL@-aggregated-manager-role
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  labels:
    cluster.x-k8s.io/provider: @LABEL@
    @LABEL@.cluster.x-k8s.io/aggregate-to-manager: 'true'
  name: @LABEL@-manager-role
rules:
- apiGroups:
  - @GROUP@
  resources:
  - '*'
  verbs:
  - get
  - list
  - watch
  - patch
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  labels:
    cluster.x-k8s.io/provider: @LABEL@
  name: @LABEL@-leader-election-rolebinding
  namespace: @NAMESPACE@
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: @LABEL@-leader-election-role
subjects:
- kind: ServiceAccount
  name: @LABEL@-manager
  namespace: @NAMESPACE@
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  labels:
    cluster.x-k8s.io/provider: @LABEL@
  name: @LABEL@-manager-rolebinding
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: @LABEL@-aggregated-manager-role
subjects:
- kind: ServiceAccount
  name: @LABEL@-manager
  namespace: @NAMESPACE@
";

const SECRET: &str = r"
apiVersion: v1
kind: Secret
metadata:
  labels:
    cluster.x-k8s.io/provider: @LABEL@
  name: @LABEL@-manager-bootstrap-credentials
  namespace: @NAMESPACE@
stringData:
@ENTRIES@type: Opaque
";

const EXTRA: &str = r"
apiVersion: v1
data:
  # Not a variable: two dollars stand for one.
  pattern: $${NOT_A_VARIABLE}
  note: ${RIG_NOTE:-${RIG_FALLBACK:-nothing to note}}
kind: ConfigMap
metadata:
  labels:
    cluster.x-k8s.io/provider: @LABEL@
  name: @LABEL@-@EXTRA@
  namespace: @NAMESPACE@
";

const METRICS_SERVICE: &str = r"
apiVersion: v1
kind: Service
metadata:
  labels:
    cluster.x-k8s.io/provider: @LABEL@
  name: @LABEL@-metrics-service
  namespace: @NAMESPACE@
spec:
  ports:
  - port: 8443
    protocol: TCP
    targetPort: metrics
  selector:
    cluster.x-k8s.io/provider: @LABEL@
";

const WEBHOOK_SERVICE: &str = r"
apiVersion: v1
kind: Service
metadata:
  labels:
    cluster.x-k8s.io/provider: @LABEL@
  name: @LABEL@-webhook-service
  namespace: @NAMESPACE@
spec:
  ports:
  - port: 443
    targetPort: webhook-server
  selector:
    cluster.x-k8s.io/provider: @LABEL@
";

const CERTIFICATES: &str = r"
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  labels:
    cluster.x-k8s.io/provider: @LABEL@
  name: @LABEL@-serving-cert
  namespace: @NAMESPACE@
spec:
  dnsNames:
  - @LABEL@-webhook-service.@NAMESPACE@.svc
  - @LABEL@-webhook-service.@NAMESPACE@.svc.cluster.local
  issuerRef:
    kind: Issuer
    name: @LABEL@-selfsigned-issuer
  secretName: @LABEL@-webhook-service-cert
  subject:
    organizations:
    - k8s-sig-cluster-lifecycle
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  labels:
    cluster.x-k8s.io/provider: @LABEL@
  name: @LABEL@-selfsigned-issuer
  namespace: @NAMESPACE@
spec:
  selfSigned: {}
";

const WEBHOOKS: &str = r"
apiVersion: admissionregistration.k8s.io/v1
kind: @SORT@WebhookConfiguration
metadata:
  annotations:
    cert-manager.io/inject-ca-from: @NAMESPACE@/@LABEL@-serving-cert
  labels:
    cluster.x-k8s.io/provider: @LABEL@
  name: @LABEL@-@LOWSORT@-webhook-configuration
webhooks:
- admissionReviewVersions:
  - v1
  clientConfig:
    service:
      name: @LABEL@-webhook-service
      namespace: @NAMESPACE@
      path: /@LOWSORT@-@SINGULAR@
  failurePolicy: Fail
  matchPolicy: Equivalent
  name: @LOWSORT@.@SINGULAR@.@GROUP@
  rules:
  - apiGroups:
    - @GROUP@
    apiVersions:
    - v1beta2
    operations:
    - CREATE
    - UPDATE
    resources:
    - @PLURAL@
  sideEffects: None
";

const DEPLOYMENT: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    cluster.x-k8s.io/provider: @LABEL@
    control-plane: controller-manager
  name: @DEPLOYMENT@
  namespace: @NAMESPACE@
spec:
  replicas: 1
  selector:
    matchLabels:
      cluster.x-k8s.io/provider: @LABEL@
      control-plane: @DEPLOYMENT@
  strategy:
    type: RollingUpdate
  template:
    metadata:
      labels:
        cluster.x-k8s.io/provider: @LABEL@
        control-plane: @DEPLOYMENT@
    spec:
      containers:
      - args:
        - --leader-elect
        - --diagnostics-address=${CAPI_DIAGNOSTICS_ADDRESS:=:8443}
        - --feature-gates=MachinePool=${EXP_MACHINE_POOL:=true},RigTopology=${EXP_RIG_TOPOLOGY:=false}
        - --v=${RIG_LOG_LEVEL:=0}
        command:
        - /manager
        env:
        - name: POD_NAMESPACE
          valueFrom:
            fieldRef:
              fieldPath: metadata.namespace
        image: registry.example.com/rigs/@LABEL@-controller:@VERSION@
        imagePullPolicy: IfNotPresent
        livenessProbe:
          httpGet:
            path: /healthz
            port: healthz
        name: manager
        ports:
        - containerPort: 9443
          name: webhook-server
          protocol: TCP
        - containerPort: 9440
          name: healthz
          protocol: TCP
        - containerPort: 8443
          name: metrics
          protocol: TCP
        readinessProbe:
          httpGet:
            path: /readyz
            port: healthz
        resources:
          requests:
            cpu: 10m
@MOUNTS@@SIDECAR@      serviceAccountName: @LABEL@-manager
      terminationGracePeriodSeconds: 10
      tolerations:
      - effect: NoSchedule
        key: node-role.kubernetes.io/control-plane
@VOLUMES@";

const MOUNTS: &str = r"
        volumeMounts:
        - mountPath: /tmp/k8s-webhook-server/serving-certs
          name: cert
          readOnly: true
";

const SIDECAR: &str = r"
      - args:
        - --logtostderr=true
        image: registry.example.com/rigs/proxy:v0.15.0
        name: proxy
";

const VOLUMES: &str = r"
      volumes:
      - name: cert
        secret:
          defaultMode: 420
          secretName: @LABEL@-webhook-service-cert
";

pub(super) fn components(of: &LookAlike) -> String {
    if of.flaw == Some(Flaw::Html) {
        return "<!DOCTYPE html>\n<html lang=\"en\">\n<head><title>Sign in</title></head>\n<body>Sign in</body>\n</html>\n"
            .to_owned();
    }
    let mut documents = vec![NAMESPACE.to_owned()];
    if of.flaw == Some(Flaw::TwoNamespaces) {
        documents.push(NAMESPACE.replace("@NAMESPACE@", "@NAMESPACE@-too"));
    }
    documents.extend(definitions(of));
    documents.push(ROLES.to_owned());
    if !of.required.is_empty() {
        let entries = of
            .required
            .iter()
            .map(|name| format!("  {}: '${{{name}}}'\n", name.to_lowercase()));
        documents.push(SECRET.replace("@ENTRIES@", &entries.collect::<String>()));
    }
    documents.extend(of.extras.iter().map(|extra| EXTRA.replace("@EXTRA@", extra)));
    documents.push(METRICS_SERVICE.to_owned());
    if of.webhooks {
        documents.push(WEBHOOK_SERVICE.to_owned());
    }
    if of.flaw != Some(Flaw::NoDeployment) {
        documents.extend(deployments(of));
    }
    if of.certificates {
        documents.push(CERTIFICATES.to_owned());
    }
    if let (true, Some(kind)) = (of.webhooks, of.kinds().first()) {
        let singular = kind.to_lowercase();
        documents.extend(["Mutating", "Validating"].map(|sort| {
            let low = sort.to_lowercase();
            let values = [
                ("SORT", sort),
                ("LOWSORT", &low),
                ("PLURAL", &format!("{singular}s")),
                ("SINGULAR", &singular),
            ];
            fill(WEBHOOKS, &values)
        }));
    }
    let (label, version) = (of.label(), of.version.as_str());
    let values = [
        ("LABEL", label.as_str()),
        ("NAMESPACE", &of.namespace),
        ("GROUP", of.group()),
        ("VERSION", version),
    ];
    let documents: Vec<String> = documents.iter().map(|document| fill(document, &values)).collect();
    spoil(documents.join("---\n"), of.flaw)
}

fn definitions(of: &LookAlike) -> Vec<String> {
    let kinds = of.kinds();
    // Real files are long because each version of each definition has descriptions.
    let share = of.padding / (kinds.len() * 2).max(1);
    let of_kind = |(index, kind): (usize, &String)| {
        let singular = kind.to_lowercase();
        let plural = format!("{singular}s");
        let converted = of.webhooks && index == 0;
        let versions = ["v1beta1", "v1beta2"].map(|version| {
            let storage = if version == of.storage { "true" } else { "false" };
            VERSION[1..]
                .replace("@APIVERSION@", version)
                .replace("@STORAGE@", storage)
        });
        let name = match (of.flaw, index) {
            (Some(Flaw::WrongDefinitionName), 0) => format!("{singular}.{}", of.group()),
            _ => format!("{plural}.{}", of.group()),
        };
        let inject = "  annotations:\n    cert-manager.io/inject-ca-from: @NAMESPACE@/@LABEL@-serving-cert\n";
        let values = [
            ("ANNOTATIONS", if of.certificates && converted { inject } else { "" }),
            ("CONVERSION", if converted { &CONVERSION[1..] } else { "" }),
            ("VERSIONS", &versions.concat()),
            ("CRDNAME", &name),
            ("KIND", kind),
            ("PLURAL", &plural),
            ("SINGULAR", &singular),
            ("PADDING", &padding(share)),
        ];
        fill(DEFINITION, &values)
    };
    kinds.iter().enumerate().map(of_kind).collect()
}

fn padding(bytes: usize) -> String {
    let part = |index: usize| {
        let words = "It says how the rig's part of that number is set up, in so many words that the file grows long.";
        format!("              part{index:05}:\n                description: {words}\n                type: string\n")
    };
    (0..bytes.div_ceil(part(0).len())).map(part).collect()
}

fn deployments(of: &LookAlike) -> Vec<String> {
    let mut names = of.deployment_names();
    if of.flaw == Some(Flaw::TwinDeployments) {
        names.extend(names.first().cloned());
    }
    let of_name = |(index, name): (usize, &String)| {
        // The second container must not receive the settings of the first.
        let main = index == 0;
        let webhooks = main && of.webhooks;
        let values = [
            ("DEPLOYMENT", name.as_str()),
            ("MOUNTS", if webhooks { &MOUNTS[1..] } else { "" }),
            (
                "SIDECAR",
                if main && of.family == "infrastructure" {
                    &SIDECAR[1..]
                } else {
                    ""
                },
            ),
            ("VOLUMES", if webhooks { &VOLUMES[1..] } else { "" }),
        ];
        fill(DEPLOYMENT, &values)
    };
    names.iter().enumerate().map(of_name).collect()
}

fn spoil(text: String, flaw: Option<Flaw>) -> String {
    match flaw {
        Some(Flaw::Tab) => text.replacen("\n  labels:", "\n\tlabels:", 1),
        Some(Flaw::Truncated) => {
            let end = text.rfind("'true'").map_or(text.len(), |at| at + 3);
            text[..end].to_owned()
        }
        Some(Flaw::OpenVariable) => text.replacen("${RIG_LOG_LEVEL:=0}", "${RIG_LOG_LEVEL:=0", 1),
        Some(Flaw::NoKind) => text.replacen("kind: ServiceAccount\n", "", 1),
        _ => text,
    }
}
