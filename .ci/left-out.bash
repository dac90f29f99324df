# What a script does when something that it needs is missing. Sourced, never run.

# Says that something is left out and collects it for the end of the run; with WINDLASS_STRICT=1 it fails: left_out WHAT WHY
left_out() {
  if [ "${WINDLASS_STRICT:-}" = 1 ]; then
    printf 'FAILED: %s may not be left out (WINDLASS_STRICT=1): %s\n' "$1" "$2" >&2
    exit 1
  fi
  printf 'left out: %s: %s\n' "$1" "$2" | tee -a "${WINDLASS_LEFT_OUT:-/dev/null}"
}
