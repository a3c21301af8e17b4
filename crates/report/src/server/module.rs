//! The metrics of the Server Module, which runs inside web servers, as text: one line for each server, or every metric
//! with its name.

use super::layout::{UNKNOWN_MARK, count, facts, number, rows, seconds, share, times};
use brimful_core::moments::weighted_mean;
use brimful_core::quantity::{self, bytes, rate};
use brimful_core::server::{CpuDemand, CpuParts, Elapsed, Module, ModuleClass, ModuleServer, Phases, Sampled};
use brimful_core::text::one_line;

/// Describes each server in one line, like `nginx/1.22.1 4,288/s, processing 657 µs (p99 1.20 ms), CPU 23.0 µs each,
/// 1.85 of 2 workers busy`.
pub fn describe(module: &Module) -> Vec<String> {
    let server_line = |(index, server): (usize, &ModuleServer)| {
        let classes: Vec<&ModuleClass> = module.classes.iter().filter(|class| class.server == index as u64).collect();
        let mut parts = vec![format!("{} {}", server.name, rate(server.requests_per_s))];
        parts.extend(busiest(&classes).map(|(name, process)| {
            let [mean, p99] = [process.mean, process.p99].map(|us| quantity::seconds(us / 1e6));
            format!("processing {mean} (p99 {p99}) of {name}")
        }));
        parts.extend(mean_demand(&classes).map(|us| format!("CPU {} a request", quantity::seconds(us / 1e6))));
        parts.extend(server.workers_busy.map(|busy| {
            let most = server.max_workers.unwrap_or(server.workers);
            format!("{} of {} workers busy", quantity::number(busy), quantity::count(most))
        }));
        if !server.recording {
            parts.push("recording is turned off".to_owned());
        }
        if server.cpu_contradiction().is_some() {
            parts.push("CPU times do not add up".to_owned());
        }
        parts.join(", ")
    };
    module.servers.iter().enumerate().map(server_line).collect()
}

/// The name of the class with the most requests, and the processing time of its requests.
fn busiest<'m>(classes: &[&'m ModuleClass]) -> Option<(&'m str, Elapsed)> {
    let known =
        classes.iter().filter_map(|class| Some((class.requests, class.name.as_str(), class.phases_us.process?)));
    known.max_by_key(|(requests, ..)| *requests).map(|(_, name, process)| (name, process))
}

/// Mean CPU time per request over all classes, in microseconds.
fn mean_demand(classes: &[&ModuleClass]) -> Option<f64> {
    let known = classes.iter().filter_map(|class| Some((class.requests as f64, class.demand_us?.mean)));
    weighted_mean(&known.collect::<Vec<_>>())
}

/// The table of request classes that `brimful watch` prints at its end.
pub fn table(module: &Module) -> Option<String> {
    let titles = ["classes", "req/s", "Mbit/s", "parse", "process", "p99", "log", "CPU", "upstream", "client"];
    let us = |us: Option<f64>| seconds(us.map(|us| us / 1e6));
    let row = |class: &ModuleClass| {
        let Phases { head, parse, process, upstream, send, log } = class.phases_us;
        let mean = |phase: Option<Elapsed>| us(phase.map(|phase| phase.mean));
        let client = [head, send].iter().flatten().map(|phase| per_request(phase, class)).reduce(|a, b| a + b);
        vec![
            label(module, class),
            number(Some(class.requests_per_s)),
            number(Some(class.bytes_per_s * 8e-6)),
            mean(parse),
            mean(process),
            us(process.map(|process| process.p99)),
            mean(log),
            us(class.demand_us.map(|demand| demand.mean).or(class.cpu_us.map(|cpu| cpu.mean))),
            mean(upstream),
            us(client),
        ]
    };
    let seen: Vec<Vec<String>> = used(module).map(row).collect();
    (!seen.is_empty()).then(|| rows(&titles, &seen))
}

/// Mean time of a phase of processing over all requests of a class. Requests without the phase count as zero.
pub fn per_request(phase: &Elapsed, class: &ModuleClass) -> f64 {
    phase.mean * phase.count as f64
        / class.phases_us.all().iter().flatten().map(|phase| phase.count).max().unwrap_or(1).max(1) as f64
}

/// Tables of all metrics of the Server Module with their names.
pub fn text(module: &Module) -> Vec<String> {
    let mut blocks = vec![servers(&module.servers), counts(module)];
    blocks.extend(used(module).map(|class| phases(module, class)));
    blocks.extend(cpu(module));
    blocks
}

/// The request classes that had requests.
fn used(module: &Module) -> impl Iterator<Item = &ModuleClass> {
    module.classes.iter().filter(|class| class.requests > 0)
}

/// The name of a request class, with the name of its server if there are several.
pub fn label(module: &Module, class: &ModuleClass) -> String {
    let server = usize::try_from(class.server).ok().and_then(|index| module.servers.get(index));
    let label = match server.filter(|_| module.servers.len() > 1) {
        Some(server) => format!("{} {}", server.name.split('/').next().unwrap_or_default(), class.name),
        None => class.name.clone(),
    };
    one_line(&label).into_owned()
}

fn servers(servers: &[ModuleServer]) -> String {
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    let row = |name, cell: fn(&ModuleServer) -> String| (name, servers.iter().map(cell).collect());
    let fields = vec![
        row("file", |s| one_line(s.file.rsplit('/').next().unwrap_or_default()).into_owned()),
        row("recording", |s| if s.recording { "yes" } else { "no" }.to_owned()),
        row("requests_per_s", |s| number(Some(s.requests_per_s))),
        row("connections_per_s", |s| number(s.connections_per_s)),
        row("requests_in_progress", |s| quantity::count(s.requests_in_progress)),
        row("workers", |s| quantity::count(s.workers)),
        row("workers_busy", |s| number(s.workers_busy)),
        row("workers_most", |s| count(s.max_workers)),
        row("workers_lost", |s| quantity::count(s.workers_lost)),
        row("cores", |s| number(s.cores)),
        row("cpu_one_in", |s| quantity::count(s.cpu_one_in)),
        row("cpu_user_us", |s| seconds(s.cpu_user_us.map(|us| us / 1e6))),
        row("cpu_system_us", |s| seconds(s.cpu_system_us.map(|us| us / 1e6))),
        row("unexplained_cpu_us", |s| seconds(s.unexplained_cpu_us.map(|us| us / 1e6))),
        row("unexplained_cpu_ci95_half_width_us", |s| seconds(s.unexplained_cpu_ci95_half_width_us.map(|us| us / 1e6))),
        row("reads_per_request", |s| number(s.reads_per_request)),
        row("blocks_read_per_request", |s| number(s.blocks_read_per_request)),
    ];
    let warnings = servers.iter().filter_map(ModuleServer::cpu_contradiction);
    warnings.fold(facts("module servers", &names, fields), |text, warning| {
        text + "  warning: " + &one_line(&warning) + "\n"
    })
}

fn counts(module: &Module) -> String {
    let titles = [
        ["classes", "server", "requests", "requests_per_s", "bytes_per_s"].as_slice(),
        &["failed", "aborted", "turns", "cpu_mixed"],
    ]
    .concat();
    let row = |class: &ModuleClass| {
        vec![
            one_line(&class.name).into_owned(),
            class.server.to_string(),
            quantity::count(class.requests),
            number(Some(class.requests_per_s)),
            bytes(class.bytes_per_s),
            quantity::count(class.failed),
            quantity::count(class.aborted),
            number(class.turns),
            share(class.cpu_mixed),
        ]
    };
    rows(&titles, &module.classes.iter().map(row).collect::<Vec<_>>())
}

fn phases(module: &Module, class: &ModuleClass) -> String {
    let title = format!("{} phases_us", label(module, class));
    times(&title, Phases::NAMES.into_iter().zip(class.phases_us.all()))
}

fn cpu(module: &Module) -> Option<String> {
    let classes: Vec<&ModuleClass> = used(module).collect();
    let names: Vec<String> = classes.iter().map(|class| label(module, class)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let us = |name, figure: fn(&ModuleClass) -> Option<f64>| {
        (name, classes.iter().map(|class| seconds(figure(class).map(|us| us / 1e6))).collect())
    };
    let blocks = |name, figure: fn(&ModuleClass) -> Option<f64>| {
        (name, classes.iter().map(|class| number(figure(class))).collect())
    };
    let sampled = |name, figure: fn(Sampled) -> String| {
        (name, classes.iter().map(|class| class.cpu_us.map_or(UNKNOWN_MARK.to_owned(), figure)).collect())
    };
    const PART: fn(&ModuleClass) -> Option<CpuParts> = |class| class.cpu_parts_us;
    const DEMAND: fn(&ModuleClass) -> Option<CpuDemand> = |class| class.demand_us;
    let fields = vec![
        sampled("cpu_us count", |cpu| quantity::count(cpu.count)),
        sampled("cpu_us mean", |cpu| seconds(Some(cpu.mean / 1e6))),
        sampled("cpu_us stddev", |cpu| seconds(Some(cpu.stddev / 1e6))),
        us("cpu_ci95_half_width_us", |class| class.cpu_ci95_half_width_us),
        us("cpu_parts_us parse", |class| Some(PART(class)?.parse)),
        us("cpu_parts_us process", |class| Some(PART(class)?.process)),
        us("cpu_parts_us log", |class| Some(PART(class)?.log)),
        us("demand_us mean", |class| Some(DEMAND(class)?.mean)),
        us("demand_us stddev", |class| Some(DEMAND(class)?.stddev)),
        us("ci95_half_width", |class| Some(DEMAND(class)?.ci95_half_width)),
        blocks("blocks_read_per_request", |class| class.blocks_read_per_request),
        blocks("blocks_written_per_request", |class| class.blocks_written_per_request),
    ];
    (!classes.is_empty()).then(|| facts("CPU time of a request", &names, fields))
}

/// Tests, and metrics for the tests of other modules.
#[cfg(test)]
pub mod tests {
    use super::*;

    /// Metrics of one server with two request classes, one of which has no requests.
    pub fn module() -> Module {
        let elapsed = |mean: f64| {
            Some(Elapsed { count: 1_000, mean, stddev: mean, p50: 0.7 * mean, p90: 2.3 * mean, p99: 4.6 * mean })
        };
        let phases = Phases {
            head: None,
            parse: elapsed(5.2),
            process: elapsed(95.0),
            upstream: None,
            send: Some(Elapsed { count: 250, mean: 40.0, ..Elapsed::default() }),
            log: elapsed(3.1),
        };
        let small = ModuleClass {
            name: "under-5k".to_owned(),
            requests: 1_000,
            requests_per_s: 500.0,
            bytes_per_s: 2e6,
            failed: 3,
            turns: Some(1.5),
            phases_us: phases,
            cpu_us: Some(Sampled { count: 62, mean: 20.0, stddev: 4.0 }),
            cpu_ci95_half_width_us: Some(1.0),
            cpu_parts_us: Some(CpuParts { parse: 2.0, process: 16.5, log: 1.5 }),
            cpu_mixed: Some(0.02),
            blocks_read_per_request: Some(2.5),
            demand_us: Some(CpuDemand { mean: 23.5, ci95_half_width: 1.2, stddev: 4.0 }),
            ..ModuleClass::default()
        };
        let server = ModuleServer {
            name: "nginx/1.22.1".to_owned(),
            file: "/dev/shm/brimful-nginx".to_owned(),
            recording: true,
            requests_per_s: 500.0,
            connections_per_s: Some(5.0),
            requests_in_progress: 3,
            workers: 2,
            workers_busy: Some(1.85),
            cores: Some(0.9),
            cpu_one_in: 16,
            cpu_user_us: Some(6.0),
            cpu_system_us: Some(17.0),
            unexplained_cpu_us: Some(3.5),
            reads_per_request: Some(1.25),
            ..ModuleServer::default()
        };
        let none = ModuleClass { name: "other\x1b".to_owned(), ..ModuleClass::default() };
        Module { servers: vec![server], classes: vec![small, none] }
    }

    #[test]
    fn a_server_takes_a_line() {
        let expected = "nginx/1.22.1 500/s, processing 95.0 µs (p99 437 µs) of under-5k, CPU 23.5 µs a request, \
                        1.85 of 2 workers busy";
        assert_eq!(describe(&module()), [expected]);
        let mut off = module();
        (off.servers[0].recording, off.servers[0].workers_busy) = (false, None);
        off.classes.clear();
        assert_eq!(describe(&off), ["nginx/1.22.1 500/s, recording is turned off"]);
        off.servers[0].unexplained_cpu_us = Some(-11.5);
        off.servers[0].unexplained_cpu_ci95_half_width_us = Some(4.0);
        assert!(describe(&off)[0].ends_with("CPU times do not add up"), "{:?}", describe(&off));
        assert!(
            text(&off).join("\n").contains("warning: the sampled requests of nginx/1.22.1 used 11.5 µs"),
            "{off:?}"
        );
    }

    #[test]
    fn classes_with_requests_take_a_line_each() {
        let text = table(&module()).unwrap();
        let cells: Vec<Vec<&str>> =
            text.lines().map(|line| line.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect()).collect();
        assert_eq!(cells[0].len(), 10);
        let expected =
            ["under-5k", "500", "16.0", "5.20 µs", "95.0 µs", "437 µs", "3.10 µs", "23.5 µs", "–", "10.0 µs"];
        assert_eq!(cells[1..], [expected]);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert_eq!(table(&Module::default()), None);
    }

    #[test]
    fn two_servers_are_told_apart() {
        let mut module = module();
        module.servers.push(ModuleServer { name: "Apache/2.4".to_owned(), ..ModuleServer::default() });
        let other = ModuleClass { server: 1, ..module.classes[0].clone() };
        module.classes.push(other);
        let text = text(&module).join("\n");
        assert!(text.contains("nginx under-5k") && text.contains("Apache under-5k phases_us"), "{text}");
        assert!(!text.contains('\x1b') && text.contains(r"other\u001b"), "{text}");
    }
}
