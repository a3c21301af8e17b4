//! The panel of requests by class, as recorded by a Server Module.

use super::{Columns, Panel, PanelSize, cells, first_width, indented, name, plain};
use crate::watch::screen::state::ScreenState;
use crate::watch::screen::style::or_unknown;
use brimful_core::quantity::{self, compact, count};
use brimful_core::server::{Elapsed, Module, ModuleClass, ModuleServer, Phases};
use brimful_monitor::GroupName;
use ratatui::text::Span;

const COLUMNS: Columns<10> = [
    ("req/s", 8, 9),
    ("Mbit/s", 8, 4),
    ("parse", 9, 3),
    ("process", 9, 8),
    ("p99", 9, 7),
    ("log", 9, 2),
    ("CPU", 9, 6),
    ("upstream", 9, 0),
    ("client", 9, 1),
    ("5xx/s", 7, 5),
];

/// Makes the panel of requests by class.
pub fn requests(state: &ScreenState, PanelSize { width, .. }: PanelSize) -> Option<Panel> {
    let stretch = state.rates.module.as_ref().filter(|_| state.shows(GroupName::Module))?;
    let Module { servers, classes } = &stretch.metrics;
    let seconds = stretch.length().as_secs_f64();
    let style = state.style;
    let mut panel = Panel::new("requests", &COLUMNS, width, style);
    for (index, server) in servers.iter().enumerate() {
        let facts: Vec<Span<'static>> = facts(server).into_iter().map(|fact| Span::styled(fact, style.dim())).collect();
        panel.rows.extend(indented(&facts, width, 1));
        let own = classes.iter().filter(|class| class.server == index as u64 && class.requests > 0);
        for class in own {
            let failed = class.failed as f64 / seconds;
            let (rates, times) = texts(class);
            let [req, mbit] = rates.map(plain);
            let [parse, process, p99, log, cpu, upstream, client] = times.map(plain);
            let failed = (compact(failed), style.loss(failed));
            let texts = [req, mbit, parse, process, p99, log, cpu, upstream, client, failed];
            panel.push(name(&class.name, first_width(&COLUMNS, width)), cells(&COLUMNS, width, texts));
        }
    }
    (!servers.is_empty()).then_some(panel)
}

/// The table cells of a class: its rates, and its mean times.
fn texts(class: &ModuleClass) -> ([String; 2], [String; 7]) {
    let Phases { head, parse, process, upstream, send, log } = class.phases_us;
    let time = |us: Option<f64>| or_unknown(us, |us| quantity::seconds(us / 1e6));
    let mean = |phase: Option<Elapsed>| time(phase.map(|phase| phase.mean));
    let client = [head, send].into_iter().flatten().map(|phase| phase.mean).reduce(|a, b| a + b);
    let cpu = class.demand_us.map(|demand| demand.mean).or(class.cpu_us.map(|cpu| cpu.mean));
    let rates = [compact(class.requests_per_s), compact(class.bytes_per_s * 8e-6)];
    let p99 = time(process.map(|process| process.p99));
    (rates, [mean(parse), mean(process), p99, mean(log), time(cpu), mean(upstream), time(client)])
}

/// Items of the line about one server: its name, its workers, and totals over all classes.
fn facts(server: &ModuleServer) -> Vec<String> {
    let mut facts = vec![server.name.clone()];
    if !server.recording {
        facts.push("recording is turned off".to_owned());
    }
    let most = server.max_workers.unwrap_or(server.workers);
    facts.extend(server.workers_busy.map(|busy| format!("{} of {} workers busy", compact(busy), count(most))));
    facts.push(format!("{} in progress", count(server.requests_in_progress)));
    if server.cpu_contradiction().is_some() {
        facts.push("CPU times do not add up".to_owned());
    }
    facts.extend(server.unexplained_cpu_us.map(|us| format!("CPU beside {}", quantity::seconds(us / 1e6))));
    facts.extend(server.reads_per_request.map(|reads| format!("{} reads each", compact(reads))));
    facts
}
