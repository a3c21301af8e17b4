//! Tests the choice of connections, for servers that dedicate a worker to each connection and for other servers. Also
//! tests a server that only redirects.

use super::*;

/// The largest number of clients of all closed loads.
fn most_clients(bench: &Simulated) -> u64 {
    let clients = |load: &Load| if let Load::Closed { clients, .. } = load { *clients } else { 0 };
    bench.offered.borrow().iter().map(clients).max().unwrap()
}

#[test]
fn a_server_that_gives_each_connection_a_worker_is_surveyed_by_as_many_connections() {
    for workers in [2, 3, 4, 5, 12] {
        let mut bench = Simulated::new(vec![cpu(1), queue("children", workers)], vec![vec![0.000_2], vec![0.02]]);
        bench.workers_for_connections = Some(workers.into());
        let survey = bench.survey(&[1.0], 20.0);
        let workers = u64::from(workers);
        assert_eq!(bench.pools.last().unwrap().size, Some(workers));
        assert_eq!(most_clients(&bench), workers, "the largest load has one client per worker");
        assert_eq!(survey.connections.served_at_once, Some(workers));
        let summary = format!("This server serves {workers} connections at a time: the survey uses {workers}.");
        assert_eq!(survey.connections.to_string(), summary);
        assert_eq!(survey.bottleneck.as_deref(), Some("workers"), "{:?}", survey.bottleneck_evidence);
        assert_eq!(u64::from(survey.model.stations[0].servers), workers, "{:?}", survey.model.stations);
        assert!(survey.saturation_rate.error.unwrap().abs() < 0.05, "{workers}: {:?}", survey.saturation_rate);
    }
}

#[test]
fn a_server_of_one_connection_at_a_time_is_surveyed_by_one() {
    let mut bench = Simulated::single_class(cpu(1), 0.001);
    bench.workers_for_connections = Some(1);
    let survey = bench.survey(&[1.0], 20.0);
    assert_eq!((bench.pools.last().unwrap().size, most_clients(&bench)), (Some(1), 1));
    assert!(survey.stopped.is_none(), "{:?}", survey.verdict);
    assert!(survey.saturation_rate.error.unwrap().abs() < 0.05, "{:?}", survey.saturation_rate);
}

#[test]
fn a_server_of_many_connections_is_surveyed_through_a_pool() {
    let mut bench = Simulated::single_class(cpu(1), 0.001);
    let survey = bench.survey(&[1.0], 3.0);
    let pool = Pool { size: Some(32), opened_ahead: 0 };
    assert_eq!(bench.pools, [pool, Pool { size: None, ..pool }, pool], "all loads but one use the pool");
    assert_eq!((survey.connections.max_connections, survey.connections.served_at_once), (Some(32), None));
}

/// Expects a larger connection pool for calls that wait for another server than for calls that only use the CPU.
#[test]
fn the_pool_is_as_large_as_slow_answers_need_it() {
    let delay = Station { name: "elsewhere".to_owned(), kind: StationKind::Delay, ..Station::default() };
    let mut bench = Simulated::new(vec![cpu(1), delay], vec![vec![0.001], vec![0.05]]);
    let survey = bench.survey(&[1.0], 20.0);
    let most = bench.pools.last().unwrap().size.unwrap();
    assert!(
        most > 60,
        "{most} connections are fewer than the calls under way at the capacity: {:?} {:?}",
        survey.stopped,
        survey.levels
    );
}

#[test]
fn a_server_that_only_redirects_is_not_surveyed() {
    let mut bench = Simulated { status: 301, ..Simulated::single_class(cpu(1), 0.001) };
    let setup = bench.setup(&[1.0], 3.0);
    let error = run_survey(&setup, &mut bench, &mut |_| ()).unwrap_err();
    assert!(error.to_string().starts_with("every answer is 301 to https://simulated/: survey that URL"), "{error}");
    assert_eq!(bench.offered.borrow().len(), 1, "only the first look loads the server");
}

/// Expects that the survey measures the capacity that the server loses without a connection pool. On this server, a
/// call without a pool costs 1.6 times the CPU time.
#[test]
fn an_overloaded_server_is_measured_with_and_without_a_pool() {
    let mut bench = Simulated { cost_without_pool: 1.6, ..Simulated::single_class(cpu(1), 0.001) };
    let overload = bench.survey(&[1.0], 4.0).overload.unwrap();
    let lost = 1.0 - overload.unlimited / overload.pooled;
    assert!((lost - (1.0 - 1.0 / 1.6)).abs() < 0.05, "{overload:?}");
    assert!((overload.offered / overload.pooled - 1.3).abs() < 0.1, "{overload:?}");
    assert_eq!(bench.pools.last().unwrap().size, Some(32), "later loads use the pool again");
}

#[test]
fn connections_are_never_unlimited_if_the_user_or_the_server_limits_them() {
    let mut limited = Simulated::single_class(cpu(1), 0.001);
    let mut setup = limited.setup(&[1.0], 4.0);
    setup.connections.limit = ConnectionLimit::AtMost(20);
    assert_eq!(run_survey(&setup, &mut limited, &mut |_| ()).unwrap().overload, None);
    let mut few_workers = Simulated { workers_for_connections: Some(4), ..Simulated::single_class(cpu(1), 0.001) };
    assert_eq!(few_workers.survey(&[1.0], 4.0).overload, None);
    for bench in [limited, few_workers] {
        assert!(bench.pools.iter().all(|pool| pool.size.is_some()), "{:?}", bench.pools);
    }
}
