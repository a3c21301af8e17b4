//! Models of servers, estimated from what calibration measured.

use brimful_estimate::{Block, Piece, Place, ServerFacts, ServerFit};
use std::collections::BTreeMap;

fn piece(place: Place, rate: f64, response: f64) -> Piece {
    Piece {
        place,
        seconds: 2.0,
        throughput: vec![rate],
        busy: Some(0.013 + rate * 0.000_4),
        idle: Some(1.9),
        disks: BTreeMap::new(),
        programs: Vec::new(),
        inside: vec![None],
        workers: None,
        threads: None,
        response: Some(response),
        percentiles: None,
        response_scv: Some(0.2),
        warm_up: 0.0,
        rest: 0.0,
        course: Vec::new(),
        arrivals: Vec::new(),
    }
}

/// Python's `ThreadingHTTPServer` by HTTP/1.1: a response leaves in two segments, of which the second waits up to 40 ms for
/// the client's acknowledgement of the first, and the CPUs are nearly idle at the capacity.
#[test]
fn a_server_whose_answers_wait_for_acknowledgements_has_a_model() {
    let block: Block = vec![
        piece(Place::Level(10), 16.7, 0.018_2),
        piece(Place::Level(20), 29.4, 0.025_1),
        piece(Place::Level(40), 54.7, 0.026_8),
        piece(Place::Level(60), 94.4, 0.028_8),
        piece(Place::Clients(1), 25.3, 0.037_7),
        piece(Place::Clients(4), 97.0, 0.039_4),
        piece(Place::Clients(32), 150.0, 0.237_9),
    ];
    let facts = ServerFacts {
        classes: vec!["all".to_owned()],
        mix: vec![1.0],
        station: "cpu".to_owned(),
        servers: 2,
        idle_busy: 0.013,
        background: 0.007,
        filled: true,
        served_at_once: None,
    };
    let fit = ServerFit::new(facts, vec![block; 7], 1).unwrap();
    assert!((fit.saturation() / 150.0 - 1.0).abs() < 0.05, "{}", fit.saturation());
    assert!(fit.predict(50.0).unwrap().response.unwrap() < 0.06);
}
