use super::*;

#[test]
fn rows_of_a_table_are_computed_at_each_scrape() {
    let metrics = Metrics::new();
    let table = |name, counts| Table {
        name,
        help: "What it tells",
        counts,
        labels: &["kind", "name"],
    };
    let row = |number| vec![(vec!["K".to_owned(), "a\"b".to_owned()], number)];
    metrics.table(table("windlass_thing_ready", false), move || row(1));
    metrics.table(table("windlass_thing_repairs", true), move || row(7));
    let text = metrics.encode();
    for line in [
        r#"windlass_thing_ready{kind="K",name="a\"b"} 1"#,
        r#"windlass_thing_repairs_total{kind="K",name="a\"b"} 7"#,
    ] {
        assert!(text.contains(line), "missing {line} in\n{text}");
    }
}

#[test]
fn loads_are_those_of_all_controllers() {
    let metrics = Metrics::new();
    let (a, queue) = (metrics.controller("a"), metrics.queue("a"));
    let _b = metrics.controller("b");
    let load = |controller, is_busy, reconciles| ControllerLoad {
        controller,
        is_busy,
        reconciles,
    };
    assert_eq!(metrics.loads(), [load("a", false, 0), load("b", false, 0)]);
    for result in RESULTS {
        a.result(result);
    }
    a.active.inc();
    assert_eq!(metrics.loads()[0], load("a", true, 4));
    a.active.dec();
    queue.depth.set(2);
    assert_eq!(metrics.loads()[0], load("a", true, 4));
}

#[test]
fn names_are_those_that_dashboards_know() {
    let metrics = Metrics::new();
    let controller = metrics.controller("machine");
    controller.result("success");
    controller.failure("Conflict");
    controller.time.observe(0.1);
    controller.concurrency.set(10);
    controller.active.set(1);
    let queue = metrics.queue("machine");
    queue.adds.inc();
    queue.retries.inc();
    queue.waited.observe(0.1);
    queue.worked.observe(0.1);
    let host = metrics.host("localhost");
    host.request("200", "GET");
    let text = metrics.encode();
    for line in [
        r#"controller_runtime_reconcile_total{controller="machine",result="success"} 1"#,
        r#"controller_runtime_reconcile_errors_total{controller="machine"} 1"#,
        r#"controller_runtime_reconcile_time_seconds_count{controller="machine"} 1"#,
        r#"controller_runtime_active_workers{controller="machine"} 1"#,
        r#"controller_runtime_max_concurrent_reconciles{controller="machine"} 10"#,
        r#"workqueue_depth{name="machine",controller="machine"} 0"#,
        r#"workqueue_adds_total{name="machine",controller="machine"} 1"#,
        r#"workqueue_queue_duration_seconds_count{name="machine",controller="machine"} 1"#,
        r#"workqueue_work_duration_seconds_count{name="machine",controller="machine"} 1"#,
        r#"workqueue_unfinished_work_seconds{name="machine",controller="machine"} 0.0"#,
        r#"workqueue_retries_total{name="machine",controller="machine"} 1"#,
        r#"rest_client_requests_total{code="200",method="GET",host="localhost"} 1"#,
    ] {
        assert!(text.contains(line), "missing {line} in\n{text}");
    }
}

#[test]
fn every_registered_metric_is_described() {
    let metrics = Metrics::new();
    let controller = metrics.controller("machine");
    controller.result("success");
    controller.failure("Conflict");
    controller.time.observe(0.1);
    metrics.queue("machine").waited.observe(0.1);
    let host = metrics.host("localhost");
    host.request("200", "GET");
    host.watch();
    metrics.write_skipped("machine");
    metrics.leading("windlass-manager", true);
    let text = metrics.encode();
    let kind = |kind| match kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
    };
    let mut described: Vec<String> = METRICS.iter().map(|m| format!("{} {}", m.name, kind(m.kind))).collect();
    let mut found: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .map(str::to_owned)
        .collect();
    described.sort();
    found.sort();
    assert_eq!(found, described);
    for metric in METRICS {
        assert!(
            text.contains(&format!("# HELP {} {}", metric.name, metric.help)),
            "{metric:?}"
        );
        let first = metric.labels[0];
        let rows = text.lines().filter(|line| line.starts_with(metric.name));
        assert!(
            rows.clone()
                .any(|row| metric.labels.iter().all(|l| row.contains(&format!("{l}=\"")))),
            "{} has no row with {first}",
            metric.name
        );
    }
}
