//! Jobs that succeed, fail or hang.

use super::*;

fn job(name: &str) -> Job {
    Job::Namespace(name.to_owned())
}

fn name(job: &Job) -> String {
    match job {
        Job::Namespace(name) => name.clone(),
        other => panic!("{other:?}"),
    }
}

/// A job that succeeds, fails or hangs, depending on the beginning of its name.
fn run(job: Job) -> BoxFuture<'static, Done> {
    let kind = name(&job).chars().next();
    Box::pin(async move {
        match kind {
            Some('h') => std::future::pending().await,
            Some('f') => (job, Err(ApiError::internal("no"))),
            _ => (job, Ok(())),
        }
    })
}

/// Runs until no more jobs end. Returns those that have ended.
fn settle(jobs: &mut Jobs, now: Instant) -> Vec<String> {
    let mut out = Vec::new();
    jobs.start(run);
    while let Some(done) = jobs.ended() {
        out.push(name(&done.0));
        if let Some(again) = jobs.finish(done, now) {
            jobs.push(again);
        }
        jobs.start(run);
    }
    out.sort();
    out
}

#[tokio::test(start_paused = true)]
async fn a_job_that_hangs_delays_no_other_job() {
    let mut jobs = Jobs::default();
    for i in 0..CONCURRENT - 1 {
        jobs.push(job(&format!("h{i}")));
    }
    for i in 0..3 {
        jobs.push(job(&format!("x{i}")));
    }
    assert_eq!(settle(&mut jobs, Instant::now()), ["x0", "x1", "x2"]);
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_tried_again_less_and_less_often_and_apart() {
    let (mut jobs, mut now) = (Jobs::default(), Instant::now());
    jobs.push(job("f"));
    let mut waits = Vec::new();
    for _ in 0..8 {
        assert_eq!(settle(&mut jobs, now), ["f"]);
        let due = jobs.due_at().unwrap();
        assert!(jobs.due(due - Duration::from_millis(1)).is_empty());
        waits.push((due - now).as_millis());
        now = due;
        for job in jobs.due(now) {
            jobs.push(job);
        }
    }
    assert_eq!(waits, [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    assert_eq!((jobs.failed.len(), jobs.failures.len()), (1, 1));
    // When no work is left, no record is kept.
    assert_eq!(settle(&mut jobs, now), ["f"]);
    let due = jobs.due_at().unwrap();
    assert_eq!(jobs.due(due).len(), 1);
    assert!(settle(&mut jobs, due).is_empty());
    assert!(jobs.failures.is_empty());
}

#[tokio::test(start_paused = true)]
async fn those_that_have_failed_leave_room() {
    let (mut jobs, now) = (Jobs::default(), Instant::now());
    for i in 0..CONCURRENT {
        let job = job(&format!("h{i}"));
        jobs.failures.insert(job.subject(), 1);
        jobs.push(job);
    }
    jobs.start(run);
    assert_eq!((jobs.running.len(), jobs.retrying), (FAILED_BEFORE, FAILED_BEFORE));
    jobs.push(job("x"));
    assert_eq!(settle(&mut jobs, now), ["x"]);
}

#[tokio::test(start_paused = true)]
async fn a_subject_has_one_job_at_a_time() {
    let (mut jobs, now) = (Jobs::default(), Instant::now());
    jobs.push(job("a"));
    jobs.push(job("a"));
    jobs.start(run);
    assert_eq!(jobs.running.len(), 1);
    // Changes in the meantime are not lost.
    jobs.push(job("a"));
    let done = jobs.ended().unwrap();
    assert_eq!(jobs.finish(done, now), Some(job("a")));
    assert!(jobs.subjects.is_empty() && jobs.fresh.is_empty());
}
