#!/bin/sh
# Plays the external system that manages the infrastructure of a Cluster, with kubectl and nothing else. In earnest, the values come
# from where the infrastructure was made: `terraform output`, a Crossplane claim, the last step of a pipeline.
set -eu

usage() {
  cat <<'TEXT'
usage: external-system.sh [--port PORT] [--as USER] [-n NAMESPACE] CLUSTER
       external-system.sh --release [--as USER] [-n NAMESPACE] CLUSTER

Waits until the Cluster names its infrastructure object, puts a finalizer on it, and writes what the infrastructure is: the
control plane endpoint 127.0.0.1:PORT (default 18443), two failure domains, and that it is provisioned.

--release, after the Cluster was deleted, removes the finalizer: here a real system tears its infrastructure down first.
--as USER acts as that user, such as the one that role.yaml knows: terraform.
KUBECTL is the kubectl to use (default: kubectl).
TEXT
}

system=terraform
finalizer=terraform.example.com/infrastructure
kubectl=${KUBECTL:-kubectl}
namespace=default
port=18443
release=
user=
cluster=
while [ $# -gt 0 ]; do
  case $1 in
    --port) port=$2; shift ;;
    --as) user=$2; shift ;;
    -n) namespace=$2; shift ;;
    --release) release=yes ;;
    -h | --help) usage; exit ;;
    -*) usage >&2; exit 2 ;;
    *) cluster=$1 ;;
  esac
  shift
done
[ -n "$cluster" ] || { usage >&2; exit 2; }

k() { "$kubectl" -n "$namespace" ${user:+--as "$user"} "$@"; }

# Patches, under a field manager of its own, so that the owner of each field is visible. Never `kubectl apply`: it may
# drop fields of an object that another manager applied.
patch() { k patch devcluster "$object" --field-manager="$system" "$@"; }

# The place of the finalizer in the list, from 0; nothing when it is not there.
place() {
  place=0
  for one in $(k get devcluster "$object" -o jsonpath='{.metadata.finalizers[*]}'); do
    [ "$one" != "$finalizer" ] || { echo "$place"; return; }
    place=$((place + 1))
  done
}

add_finalizer() {
  [ -z "$(place)" ] || return 0
  if [ -z "$(k get devcluster "$object" -o jsonpath='{.metadata.finalizers}')" ]; then
    patch --type=merge -p "{\"metadata\": {\"finalizers\": [\"$finalizer\"]}}"
  else
    patch --type=json -p "[{\"op\": \"add\", \"path\": \"/metadata/finalizers/-\", \"value\": \"$finalizer\"}]"
  fi
}

# The test makes sure that it is still the own one.
remove_finalizer() {
  at=/metadata/finalizers/$(place)
  patch --type=json -p "[
    {\"op\": \"test\", \"path\": \"$at\", \"value\": \"$finalizer\"},
    {\"op\": \"remove\", \"path\": \"$at\"}
  ]"
}

# Looks until something is there: look WHAT JSONPATH OBJECT
look() {
  tries=0
  while found=$(k get "$3" -o jsonpath="$2" 2>/dev/null || true) && [ -z "$found" ]; do
    tries=$((tries + 1))
    [ "$tries" -le 60 ] || { k get "$3" >&2 || true; echo "$1: not there after a minute" >&2; exit 1; }
    sleep 1
  done
  echo "$found"
}

echo "which infrastructure object does Cluster $cluster name?"
object=$(look "spec.infrastructureRef of Cluster $cluster" '{.spec.infrastructureRef.name}' "cluster/$cluster")
manager=$(look "the annotation of DevCluster $object" '{.metadata.annotations.cluster\.x-k8s\.io/managed-by}' "devcluster/$object")
if [ "$manager" != "$system" ]; then
  echo "DevCluster $object is managed by $manager, not by $system: it is left alone" >&2
  exit 1
fi

if [ -n "$release" ]; then
  look "the deletion of DevCluster $object" '{.metadata.deletionTimestamp}' "devcluster/$object" >/dev/null
  echo "the infrastructure is torn down, so DevCluster $object may go"
  remove_finalizer
  exit
fi

echo "the finalizer first: the object stays until the infrastructure is torn down"
add_finalizer
echo "then the endpoint: the API server of the cluster is found there"
patch --type=merge -p "{\"spec\": {\"controlPlaneEndpoint\": {\"host\": \"127.0.0.1\", \"port\": $port}}}"
echo "then the status: the infrastructure can be used"
patch --subresource=status --type=merge -p '{
  "status": {
    "failureDomains": [{"name": "zone-a", "controlPlane": true}, {"name": "zone-b", "controlPlane": true}],
    "initialization": {"provisioned": true}
  }
}'
