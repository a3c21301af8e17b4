//! Checks the messages for invalid what-ifs.

use super::{apply, scenario, terminals, with_class, with_client};
use crate::paper::server;
use brimful_core::model::{Model, ModelClass, Scheduling, Station};
use brimful_model::{Change, Client, Method, ModelError, NewClass, Scenario, WhatIfOptions, curve, headroom, what_if};
use proptest::prelude::*;

fn refused(model: &Model, changes: &[&str]) -> String {
    scenario(changes).apply(model).unwrap_err().to_string()
}

#[test]
fn text_that_cannot_be_parsed() {
    for (text, problem) in [
        ("", "no `=`"),
        ("cpu.speed", "no `=`"),
        ("cpu.sped=2x", "no property `sped`: there is `speed`, "),
        ("cpu.speed=2", "write 1.5x"),
        ("cpu.servers=2.5", "not a count"),
        ("cpu.servers=-2x", "not a number"),
        ("api.rate=fast", "not a rate"),
        ("api.rate=30%", "write +30%"),
        ("cpu.demand=12", "not a duration"),
        ("cpu.demand=NaNx", "not a number"),
        ("cpu.scheduling=lifo", "there is `fcfs`"),
        ("cpu.speed=1x..2", "no factor"),
        ("cpu.speed=1x..2x:1", "number of points"),
    ] {
        let error = text.parse::<Change>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{text}` ")) && error.contains(problem), "{text}: {error}");
    }
    for (text, problem) in [
        ("", "no `:`"),
        (":rate=1,cpu=1ms", "needs a name"),
        ("n:", "no KEY=VALUE"),
        ("n:cpu=1ms", "needs a rate (open) or a population"),
        ("n:rate=1,population=2", "open or closed"),
        ("n:rate=1,think=2s", "only closed"),
        ("n:rate=1,rate=2", "`rate` is given twice"),
        ("n:rate=1,cpu=1ms,cpu=2ms", "`cpu` is given twice"),
        ("n:rate=2x", "no previous value"),
        ("n:rate=1,cpu=1", "not a duration"),
    ] {
        let error = text.parse::<NewClass>().unwrap_err().to_string();
        assert!(error.contains(problem), "{text}: {error}");
    }
    for (text, problem) in [
        ("class4", "CLASS:speed="),
        ("class4:speed=1Mbps", "needs speed and size"),
        ("class4:speed=1Mbps,size=1KB,ttl=3", "no `ttl`: there is `rtt`"),
        ("class4:speed=1MBps,size=1KB", "128kbps"),
        ("class4:speed=1Mbps,size=1KB,size=2KB", "`size` twice"),
        ("class4:speed=1Mbps,size=1KB,link=own,link=own", "`link` twice"),
        ("class4:speed=1Mbps,size=1KB,link=wet", "`own`, `shared`"),
        ("class4:speed=2x,size=1KB", "no previous value"),
    ] {
        let error = text.parse::<Client>().unwrap_err().to_string();
        assert!(error.contains(problem), "{text}: {error}");
    }
}

#[test]
fn unknown_names() {
    for (text, problem) in [
        ("CPU.speed=2x", "no station `CPU`: there is `cpu`, "),
        ("user.rate=2x", "no class `user`: there is `users`, `batch`"),
        ("disk0.demand=2x", "no station, class or STATION.CLASS `disk0`: there are the stations `disk 0`"),
        ("cpu.user.demand=2x", "`cpu.user`"),
        ("lan.servers=2", "is about a delay"),
        ("lan.background=10%", "is about a delay"),
        ("users.rate=2x", "closed class, which has a population"),
        ("batch.think=2s", "open class, which has a rate and no think"),
        ("demand=2ms", "name one"),
        ("users.demand=2ms", "STATION.CLASS.demand"),
    ] {
        let error = refused(&terminals(), &[text]);
        assert!(error.contains(problem), "{text}: {error}");
    }
    assert!(refused(&server(1.0), &["population=2x"]).contains("changes nothing"));
    let mut two = terminals();
    two.classes.push(ModelClass { name: "guests".into(), ..two.classes[0].clone() });
    two.demands.iter_mut().for_each(|row| row.push(row[0]));
    assert!(refused(&two, &["population=100"]).contains("name one"));
    assert_eq!(apply(&two, &["population=2x"]).classes[2].population, Some(40));
    let mut same = terminals();
    same.classes[1].name = "cpu".into();
    assert!(refused(&same, &["cpu.demand=2x"]).contains("more than one thing"));
    assert_eq!(
        apply(&same, &["cpu.speed=2x"]).demands[0],
        [0.05, 0.1],
        "a class with the station's name is ignored, because it has no speed"
    );
}

#[test]
fn contradictions() {
    for (changes, what) in [
        (["cpu.servers=4", "cpu.servers=2x"], "the servers of station `cpu`"),
        (["cpu.servers=4", "servers=2x"], "the servers of station `cpu`"),
        (["cpu.speed=2x", "cpu.speed=3x"], "the demand of class `users` at station `cpu`"),
        (["cpu.speed=2x", "cpu.users.demand=1s"], "the demand of class `users` at station `cpu`"),
        (["cpu.demand=0.5x", "cpu.batch.demand=1s"], "the demand of class `batch` at station `cpu`"),
        (["rate=100", "batch.rate=2x"], "the rate of class `batch`"),
        (["batch.rate=+1", "batch.rate=+2"], "the rate of class `batch`"),
        (["cpu.scheduling=ps", "cpu.scheduling=fcfs"], "the scheduling of station `cpu`"),
    ] {
        let error = refused(&terminals(), &changes);
        assert!(changes.iter().all(|text| error.contains(text)) && error.contains(what), "{changes:?}: {error}");
        assert!(matches!(scenario(&changes).apply(&terminals()), Err(ModelError::Contradiction { .. })));
    }
    for changes in
        [["cpu.speed=2x", "cpu.demand=0.5x"], ["rate=+10%", "batch.rate=2x"], ["cpu.demand=2x", "users.demand=2x"]]
    {
        apply(&terminals(), &changes);
    }
}

#[test]
fn impossible_servers() {
    for text in [
        "batch.rate=-2",
        "batch.rate=-200%",
        "cpu.demand=-1s",
        "cpu.servers=0",
        "cpu.servers=1.5x",
        "cpu.servers=-1",
        "cpu.servers=5G",
        "users.population=0",
        "users.population=0.33x",
        "cpu.speed=0x",
        "cpu.speed=-100%",
        "cpu.background=100%",
        "users.think=-6s",
    ] {
        let error = refused(&terminals(), &[text]);
        let read: Change = text.parse().unwrap();
        assert!(error.starts_with(&format!("`{read}` makes ")) && error.contains("not possible"), "{text}: {error}");
    }
    let mut busy = terminals();
    busy.stations[0].background = 0.6;
    assert!(refused(&busy, &["cpu.speed=0.5x"]).contains("other work"));
    busy.stations[0].rate_multipliers = vec![1.0, 2.0];
    assert!(refused(&busy, &["cpu.servers=2"]).contains("give a factor"));
    assert!(refused(&busy, &["cpu.servers=1000000x"]).contains("not possible"));
    let mut idle = terminals();
    idle.classes[1].rate = Some(0.0);
    assert!(refused(&idle, &["rate=100"]).contains("cannot be shared out"));
    let class = |text: &str| with_class(text).apply(&terminals()).unwrap_err().to_string();
    assert!(class("users:rate=1,cpu=1ms").contains("choose another name"));
    assert!(class("n:rate=1,gpu=1ms").contains("no station `gpu`: there is `cpu`"));
    assert!(class("n:rate=1,like=user").contains("no class `user`: there is `users`"));
    assert!(class("n:rate=1,cpu=2x").contains("no previous value"));
    assert!(class("n:population=0,cpu=1ms").contains("not possible"));
    let client = |text: &str| with_client(text).apply(&terminals()).unwrap_err().to_string();
    assert!(client("user:speed=1Mbps,size=1KB").contains("no class `user`"));
    assert!(client("users:speed=0bps,size=1KB").contains("not possible"));
    assert!(client("users:speed=1Mbps,size=1KB,clients=0").contains("not possible"));
}

#[test]
fn invalid_ranges() {
    assert!(refused(&terminals(), &["cpu.speed=1x..2x"]).contains("makes a curve"));
    let three = scenario(&["cpu.speed=1x..2x", "disk 0.speed=1x..2x", "lan.speed=1x..2x"]);
    assert!(curve(&terminals(), &three, Method::Auto).unwrap_err().to_string().contains("are 3 ranges"));
    let many = scenario(&["cpu.speed=1x..2x:1000", "disk 0.speed=1x..2x:1000"]);
    assert!(curve(&terminals(), &many, Method::Auto).unwrap_err().to_string().contains("make 1000000 points"));
    let negative = scenario(&["batch.rate=-2..+2:5"]);
    assert!(curve(&terminals(), &negative, Method::Auto).unwrap_err().to_string().contains("not possible"));
    let none = curve(&terminals(), &Scenario::default(), Method::Auto).unwrap();
    assert_eq!((none.axes.len(), none.points.len()), (0, 1));
}

#[test]
fn objectives_with_unknown_names() {
    let error = |slo: &str| headroom(&terminals(), Method::Auto, &slo.parse().unwrap()).unwrap_err().to_string();
    assert!(error("user:p95<1s").contains("no class `user`: there is `users`"));
    assert!(error("cpus.utilization<70%").contains("no station `cpus`: there is `cpu`"));
    assert!(error("lan.utilization<70%").contains("delay"));
}

#[test]
fn an_unsuitable_method_is_an_error() {
    let mut ordered = terminals();
    ordered.stations[0].scheduling = Scheduling::Fcfs;
    let options = WhatIfOptions { method: Method::Exact, ..WhatIfOptions::default() };
    assert!(matches!(what_if(&ordered, &Scenario::default(), &options), Err(ModelError::NoProductForm { .. })));
}

#[test]
fn extreme_numbers_terminate() {
    for (demand, rate) in [(5e-324, 1.0), (1e-320, 0.0), (f64::MAX, 5e-324), (1e300, 1e-310), (1e-300, 1e290)] {
        let mut model = server(1.0);
        model.classes.truncate(1);
        model.stations.truncate(1);
        model.classes[0].rate = Some(rate);
        for scheduling in [Scheduling::Ps, Scheduling::Fcfs] {
            model.stations[0].scheduling = scheduling;
            model.demands = vec![vec![demand]];
            for slo in ["p95<1s", "mean<1s", "utilization<70%"] {
                let _ = headroom(&model, Method::Auto, &slo.parse().unwrap());
            }
        }
    }
}

#[test]
fn an_invalid_property_of_a_class_is_an_error() {
    type Change = fn(&mut ModelClass);
    let given: [(usize, Change, &str); 3] = [
        (0, |users| users.rate = Some(3.0), "class `users` is closed"),
        (1, |batch| batch.think = 2.0, "leave out its `think`"),
        (1, |batch| batch.population = Some(4), "leave out its `population`"),
    ];
    for (class, change, words) in given {
        let mut model = terminals();
        change(&mut model.classes[class]);
        for error in [
            brimful_model::solve(&model, Method::Auto).unwrap_err(),
            what_if(&model, &scenario(&["cpu.speed=2x"]), &WhatIfOptions::default()).unwrap_err(),
        ] {
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}

fn wild() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..2.0f64, Just(f64::NAN), Just(f64::INFINITY), Just(-1.0), Just(0.0), Just(f64::MAX), Just(5e-324)]
}

proptest! {
    #[test]
    fn any_model_gets_an_answer_or_an_error(
        rows in prop::collection::vec(prop::collection::vec(wild(), 0..4), 0..4),
        widths in prop::collection::vec(prop::collection::vec(wild(), 0..4), 0..4),
        figures in prop::collection::vec((wild(), 0..4u32, wild()), 4),
    ) {
        let station = |(i, (background, servers, scv)): (usize, &(f64, u32, f64))| Station {
            name: format!("s{i}"), servers: *servers, background: *background, scv: *scv, ..Station::default()
        };
        let class = |(i, (_, _, rate)): (usize, &(f64, u32, f64))| ModelClass {
            name: format!("c{i}"), rate: Some(*rate), ..ModelClass::default()
        };
        let model = Model {
            stations: figures.iter().enumerate().take(rows.len()).map(station).collect(),
            classes: figures.iter().enumerate().take(rows.first().map_or(1, Vec::len)).map(class).collect(),
            demands: rows,
            demand_ci95_half_width: widths,
            ..Model::default()
        };
        let asked = Scenario { clients: with_client("c0:speed=1kbps,size=1KB,rtt=1s").clients, ..scenario(&["s0.speed=2x", "rate=+10%"]) };
        let options = WhatIfOptions { draws: 3, slos: vec!["p95<1s".parse().unwrap(), "mean<1s".parse().unwrap()], ..WhatIfOptions::default() };
        for asked in [asked, scenario(&["s0.speed=1x..2x:3"])] {
            if let Err(error) = what_if(&model, &asked, &options) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
