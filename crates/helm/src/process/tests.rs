//! Tests with a shell instead of helm.

use super::*;

fn plan(script: &str) -> Plan {
    Plan {
        program: "/bin/sh".into(),
        args: vec!["-c".to_owned(), script.to_owned()],
        environment: vec![("ONLY".to_owned(), "this".into())],
        folder: "/".into(),
        input: Vec::new(),
        limit: Duration::from_mins(1),
        grace: Duration::from_mins(1),
    }
}

async fn ran(plan: Plan) -> Output {
    run(plan, CancellationToken::new()).await.unwrap()
}

fn text(output: &Output) -> &str {
    std::str::from_utf8(output.stdout.as_deref().unwrap()).unwrap()
}

fn code(output: &Output) -> Option<i32> {
    match output.end {
        End::Exit(status) => status.code(),
        _ => None,
    }
}

#[tokio::test]
async fn input_goes_in_and_output_comes_out() {
    let mut plan = plan("cat; echo \"$ONLY ${HOME-no home}\" >&2; exit 3");
    plan.input = vec![b'x'; 1 << 20];
    let output = ran(plan).await;
    assert_eq!((text(&output).len(), code(&output)), (1 << 20, Some(3)));
    assert_eq!(output.stderr, "this no home\n");
}

#[tokio::test]
async fn who_does_not_read_its_input_ends_all_the_same() {
    let mut plan = plan("exit 0");
    plan.input = vec![b'x'; 1 << 20];
    assert_eq!(code(&ran(plan).await), Some(0));
}

#[tokio::test]
async fn what_takes_too_long_is_asked_to_end() {
    let mut plan = plan("trap 'echo sorry; exit 1' TERM; echo begun; while :; do read -r x </dev/zero & wait $!; done");
    plan.limit = Duration::from_millis(300);
    let output = ran(plan).await;
    assert_eq!((text(&output), output.end), ("begun\nsorry\n", End::TimedOut));
}

/// Whether a process is running, as opposed to being a zombie.
fn is_alive(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

#[tokio::test]
async fn who_does_not_end_is_killed_with_all_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = plan("trap '' TERM; sleep 1000 & echo $! > child; wait; wait");
    plan.folder = folder.path().to_owned();
    plan.grace = Duration::from_millis(100);
    let stop = CancellationToken::new();
    let running = tokio::spawn(run(plan, stop.clone()));
    let child = loop {
        match std::fs::read_to_string(folder.path().join("child")) {
            Ok(id) if id.ends_with('\n') => break id.trim().to_owned(),
            _ => tokio::task::yield_now().await,
        }
    };
    assert!(is_alive(&child));
    stop.cancel();
    assert_eq!(running.await.unwrap().unwrap().end, End::Cancelled);
    while is_alive(&child) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn pipes_that_a_process_leaves_open_block_no_call() {
    let begun = std::time::Instant::now();
    let output = ran(plan("sleep 1000 & echo $!")).await;
    assert!(begun.elapsed() < Duration::from_mins(1));
    let left: i32 = text(&output).trim().parse().unwrap();
    rustix::process::kill_process(Pid::from_raw(left).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn output_is_bounded() {
    let output = ran(plan(
        "head -c 70000000 /dev/zero; head -c 1000000 /dev/zero >&2; echo end >&2",
    ))
    .await;
    assert!(output.stdout.is_none() && output.stderr.len() <= 2 * MOST_ERRORS && output.stderr.ends_with("end\n"));
}

#[test]
fn programs_are_found_by_name_and_by_path() {
    let sh = Path::new("sh");
    assert_eq!(find(sh, Some("/none:/bin".as_ref())), Some("/bin/sh".into()));
    assert_eq!(find(sh, Some("/none".as_ref())), None);
    assert_eq!(find(sh, None), None);
    assert_eq!(find(Path::new("/bin/sh"), None), Some("/bin/sh".into()));
    assert_eq!(find(Path::new("/etc/passwd"), None), None);
    assert_eq!(find(Path::new("/bin"), None), None);
}
