//! Tests models of servers that are fitted to calibration measurements.

use brimful_estimate::{
    Block, KernelMetrics, Measurement, ModuleMetrics, OfferedLoad, ResponseMetrics, ServerFacts, ServerFit, Timeline,
};

fn measurement(load: OfferedLoad, rate: f64, response: f64) -> Measurement {
    Measurement {
        load,
        seconds: 2.0,
        throughput: vec![rate],
        kernel: KernelMetrics { busy: Some(0.013 + rate * 0.000_4), idle: Some(1.9), ..KernelMetrics::default() },
        module: ModuleMetrics { demands: vec![None], ..ModuleMetrics::default() },
        responses: ResponseMetrics { mean: Some(response), percentiles: None, scv: Some(0.2) },
        timeline: Timeline::default(),
    }
}

/// The model predicts response times although the CPUs are nearly idle at capacity. The values were measured with
/// Python's `ThreadingHTTPServer` with HTTP/1.1: it sends a response in two segments, and the second waits up to 40 ms
/// for the client's acknowledgement of the first.
#[test]
fn a_server_whose_answers_wait_for_acknowledgements_has_a_model() {
    let block: Block = vec![
        measurement(OfferedLoad::Level(10), 16.7, 0.018_2),
        measurement(OfferedLoad::Level(20), 29.4, 0.025_1),
        measurement(OfferedLoad::Level(40), 54.7, 0.026_8),
        measurement(OfferedLoad::Level(60), 94.4, 0.028_8),
        measurement(OfferedLoad::Clients(1), 25.3, 0.037_7),
        measurement(OfferedLoad::Clients(4), 97.0, 0.039_4),
        measurement(OfferedLoad::Clients(32), 150.0, 0.237_9),
    ];
    let facts = ServerFacts {
        classes: vec!["all".to_owned()],
        mix: vec![1.0],
        station: "cpu".to_owned(),
        servers: 2,
        idle_busy: 0.013,
        background: 0.007,
        is_saturated: true,
        served_at_once: None,
    };
    let fit = ServerFit::new(facts, vec![block; 7], 1).unwrap();
    assert!((fit.saturation() / 150.0 - 1.0).abs() < 0.05, "{}", fit.saturation());
    assert!(fit.predict(50.0).unwrap().response.unwrap() < 0.06);
}
