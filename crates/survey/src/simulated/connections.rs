//! Tests the choice of connections, for servers that dedicate a worker to each connection and for other servers. Also
//! tests how the survey ends if the server only redirects.

use super::*;

/// The largest number of clients of all closed loads that were offered.
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
    let mut bench = Simulated::single(cpu(1), 0.001);
    bench.workers_for_connections = Some(1);
    let survey = bench.survey(&[1.0], 20.0);
    assert_eq!((bench.pools.last().unwrap().size, most_clients(&bench)), (Some(1), 1));
    assert!(survey.stopped.is_none(), "{:?}", survey.verdict);
    assert!(survey.saturation_rate.error.unwrap().abs() < 0.05, "{:?}", survey.saturation_rate);
}

#[test]
fn a_server_of_many_connections_is_surveyed_through_a_pool() {
    let mut bench = Simulated::single(cpu(1), 0.001);
    let survey = bench.survey(&[1.0], 3.0);
    assert_eq!(bench.pools, [Pool { size: Some(32), opened_ahead: 0 }]);
    assert_eq!((survey.connections.most, survey.connections.served_at_once), (Some(32), None));
}

/// Calls that wait for another server need more connections than calls that only compute. Expects a pool that is
/// large enough for them.
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
    let mut bench = Simulated { status: 301, ..Simulated::single(cpu(1), 0.001) };
    let setup = bench.setup(&[1.0], 3.0);
    let error = conduct(&setup, &mut bench, &mut |_| ()).unwrap_err();
    assert!(error.to_string().starts_with("every answer is 301 to https://simulated/: survey that URL"), "{error}");
    assert_eq!(bench.offered.borrow().len(), 1, "only the first look loads the server");
}
