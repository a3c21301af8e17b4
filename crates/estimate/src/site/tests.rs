use super::*;

/// Data with time steps of 15 minutes. Two classes, whose ratio varies, need 10 ms and 80 ms per request. Background
/// work keeps 0.05 servers busy, and `job` returns additional busy servers for the step with this index.
fn steps(job: impl Fn(i64) -> f64) -> Vec<SiteStep> {
    let step = |index: i64| {
        let (a, b) = (900.0 * (5.0 + (index % 7) as f64), 900.0 * (1.0 + (index % 3) as f64));
        let noise = 0.001 * ((index * 7919 % 13) as f64 - 6.0);
        SiteStep {
            from_s: 1_700_000_000 / 3600 * 3600 + 900 * index,
            seconds: 900.0,
            requests: vec![a, b],
            bytes: vec![1000.0 * a, 20_000.0 * b],
            busy: 0.05 + (0.01 * a + 0.08 * b) / 900.0 + noise + job(index),
        }
    };
    (0..96).map(step).collect()
}

/// CPU demands of the paper's four request classes, in seconds (Menascé et al., CMG 1999, Table 2).
const PAPER_CPU: [f64; 4] = [0.000_4, 0.008_52, 0.064_76, 0.334_4];
/// Share of each class in the requests (Menascé et al., CMG 1999, Table 1).
const REQUEST_SHARES: [f64; 4] = [0.4576, 0.4347, 0.0878, 0.0199];
/// Share of each class in the bytes sent (Menascé et al., CMG 1999, Table 1).
const BYTE_SHARES: [f64; 4] = [0.0, 0.2309, 0.3541, 0.4149];

/// Data with time steps of a minute, in which the classes have the shares [`REQUEST_SHARES`]. The mean response size
/// varies between steps by ± `size_variation`, relative to its mean.
fn paper_steps(size_variation: f64) -> Vec<SiteStep> {
    let step = |index: i64| {
        let requests: Vec<f64> =
            REQUEST_SHARES.iter().map(|share| 60.0 * (8.0 + (index * 5 % 17) as f64) * share).collect();
        let all: f64 = requests.iter().sum();
        let size = 1.0 + size_variation * ((index * 31 % 11) as f64 - 5.0) / 5.0;
        let work: f64 = requests.iter().zip(PAPER_CPU).map(|(n, demand)| n * demand).sum();
        let by_size = work - requests[0] * PAPER_CPU[0];
        SiteStep {
            from_s: 60 * index,
            seconds: 60.0,
            bytes: BYTE_SHARES.iter().map(|share| share * all * 2_185.0 * size).collect(),
            busy: (requests[0] * PAPER_CPU[0] + by_size * size) / 60.0
                + 0.002 * ((index * 7919 % 13) as f64 - 6.0) / 6.0,
            requests,
        }
    };
    (0..60).map(step).collect()
}

fn known_first(demand: f64) -> SiteOptions {
    let known = vec![Some(Estimate { value: demand, ci95_half_width: Some(demand / 20.0) }), None, None, None];
    SiteOptions { known, empty_class: Some(0), ..SiteOptions::default() }
}

#[test]
fn demands_come_from_counts_and_utilizations() {
    let found = site_demands(2, &steps(|_| 0.0), &SiteOptions::default()).unwrap();
    let fit = found.regression.unwrap();
    assert!((fit.demands[0].value - 0.01).abs() < 5e-4 && (fit.demands[1].value - 0.08).abs() < 2e-3, "{fit:?}");
    assert!((found.background - 0.05).abs() < 0.01 && found.outliers.is_empty());
    assert_eq!((found.rule, &found.demands), (SiteRule::Regression, &fit.demands));
    assert!(matches!(found.reason, RuleReason::Distinguished(_)) && found.joint.is_empty());
    // Attribution by bytes and attribution by requests must both divide all of the busy time that requests cause.
    let handed = |demands: &[f64]| {
        steps(|_| 0.0).iter().map(|s| s.requests.iter().zip(demands).map(|(n, d)| n * d).sum::<f64>()).sum::<f64>()
    };
    let truth = handed(&[0.01, 0.08]);
    for demands in [&found.by_bytes, &found.by_requests] {
        assert!((handed(demands) / truth - 1.0).abs() < 0.03, "{demands:?}");
    }
    assert!(found.by_bytes[1] > found.by_bytes[0] && found.by_requests[0] == found.by_requests[1]);
}

#[test]
fn a_job_that_runs_every_hour_is_found_and_named() {
    let job = |index| if index % 4 == 2 { 0.37 } else { 0.0 };
    let found = site_demands(2, &steps(job), &SiteOptions::default()).unwrap();
    assert_eq!((found.outliers.len(), found.period_s), (24, Some(3600)));
    assert!(found.outliers.iter().all(|step| (step.unexplained_busy - 0.37).abs() < 0.05), "{:?}", found.outliers);
    let fit = found.regression.unwrap();
    assert!((fit.demands[0].value - 0.01).abs() < 1e-3 && (fit.background.value - 0.05).abs() < 0.01, "{fit:?}");
}

#[test]
fn what_cannot_be_regressed_is_still_attributed() {
    let one = &steps(|_| 0.0)[..1];
    let found = site_demands(2, one, &SiteOptions::default()).unwrap();
    assert!(found.regression.is_err() && found.by_bytes.iter().all(|demand| *demand > 0.0));
    assert_eq!(
        (found.rule, found.reason, found.joint),
        (SiteRule::Requests, RuleReason::NoRegression, vec![vec![0, 1]])
    );
    assert!(found.demands.iter().all(|demand| demand.ci95_half_width.is_none()), "{:?}", found.demands);
    assert_eq!(found.check, None);
    assert!(site_demands(2, &[], &SiteOptions::default()).is_err());
}

#[test]
fn a_measured_intercept_divides_a_steady_mix_as_in_equation_3() {
    let found = site_demands(4, &paper_steps(0.0), &known_first(PAPER_CPU[0])).unwrap();
    assert_eq!((found.rule, &found.reason), (SiteRule::Size, &RuleReason::InterceptMeasured));
    for (demand, truth) in found.demands.iter().zip(PAPER_CPU) {
        let half = demand.ci95_half_width.unwrap();
        assert!((demand.value - truth).abs() <= half, "{demand:?} and {truth}");
        assert!(half < 0.06 * truth, "{demand:?} and {truth}");
    }
    let check = found.check.unwrap();
    assert!((check.predicted / check.measured - 1.0).abs() < 0.01 && check.step_error < 0.005, "{check:?}");
    // Without a measured intercept, the classes share one demand, because the ratio of their requests is constant.
    let found =
        site_demands(4, &paper_steps(0.0), &SiteOptions { empty_class: Some(0), ..SiteOptions::default() }).unwrap();
    assert_eq!((found.rule, found.reason, found.joint.len()), (SiteRule::Regression, RuleReason::Indistinct, 1));
    let error = SiteOptions { rule: SiteRule::Size, empty_class: Some(0), ..SiteOptions::default() };
    assert_eq!(site_demands(4, &paper_steps(0.0), &error), Err(EstimateError::NoIntercept));
}

#[test]
fn the_intercept_is_fitted_if_bytes_vary_apart_from_requests() {
    let options = SiteOptions { empty_class: Some(0), ..SiteOptions::default() };
    let steps: Vec<SiteStep> = paper_steps(0.3)
        .into_iter()
        .map(|step| {
            let all: f64 = step.requests.iter().sum();
            let bytes: f64 = step.bytes.iter().sum();
            SiteStep { busy: 0.05 + (0.002 * all + 6e-6 * bytes) / 60.0, ..step }
        })
        .collect();
    let found = site_demands(4, &steps, &options).unwrap();
    assert_eq!(found.rule, SiteRule::Line, "{found:?}");
    assert!(matches!(found.reason, RuleReason::SizesDistinguished(_)));
    assert!((found.demands[0].value - 0.002).abs() < 1e-5, "{found:?}");
    let mean = 2_185.0 * BYTE_SHARES[3] / REQUEST_SHARES[3];
    assert!((found.demands[3].value / (0.002 + 6e-6 * mean) - 1.0).abs() < 0.01, "{found:?}");
    let by_size = site_demands(4, &steps, &SiteOptions { rule: SiteRule::Size, ..options }).unwrap();
    assert!((by_size.intercept.unwrap().value - 0.002).abs() < 1e-5, "{by_size:?}");
    assert_eq!(by_size.demands[0].value, by_size.intercept.unwrap().value);
}

#[test]
fn requests_share_equally_if_bytes_cost_nothing() {
    let steps: Vec<SiteStep> = paper_steps(0.3)
        .into_iter()
        .map(|step| {
            let noise = step.busy * 10_000.0 % 1.0 - 0.5;
            SiteStep { busy: step.requests.iter().sum::<f64>() * 0.000_74 / 60.0 + 2e-4 * noise, ..step }
        })
        .collect();
    let found = site_demands(4, &steps, &SiteOptions { empty_class: Some(0), ..SiteOptions::default() }).unwrap();
    assert_eq!((found.rule, &found.reason), (SiteRule::Requests, &RuleReason::BytesCostNothing), "{found:?}");
    assert!(found.joint.is_empty() && (found.demands[0].value / 0.000_74 - 1.0).abs() < 0.02, "{found:?}");
}

#[test]
fn the_rule_of_the_user_is_used() {
    let with = |rule| site_demands(2, &steps(|_| 0.0), &SiteOptions { rule, ..SiteOptions::default() }).unwrap();
    let values = |found: &SiteDemands| found.demands.iter().map(|demand| demand.value).collect::<Vec<_>>();
    let by_bytes = with(SiteRule::Bytes);
    assert_eq!((values(&by_bytes), &by_bytes.reason), (by_bytes.by_bytes.clone(), &RuleReason::ChosenByUser));
    assert!(by_bytes.demands.iter().all(|demand| demand.ci95_half_width.is_some_and(|half| half > 0.0)));
    let by_requests = with(SiteRule::Requests);
    assert_eq!(values(&by_requests), by_requests.by_requests);
    let only = values(&with(SiteRule::Class(1)));
    assert!(only[0] == 0.0 && only[1] > 0.08, "{only:?}");
    // Without a background, all busy time is attributed to requests, so demands are larger.
    let all = SiteOptions { rule: SiteRule::Requests, without_background: true, ..SiteOptions::default() };
    let all = site_demands(2, &steps(|_| 0.0), &all).unwrap();
    assert!(all.background == 0.0 && all.demands[0].value > by_requests.demands[0].value);
}

#[test]
fn known_demands_must_fit_into_the_busy_time() {
    let error = site_demands(4, &paper_steps(0.0), &known_first(0.4)).unwrap_err();
    assert!(matches!(error, EstimateError::KnownExceedBusy { .. }), "{error}");
}
