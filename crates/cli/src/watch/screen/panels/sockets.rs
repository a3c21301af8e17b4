//! The panel of requests at the ports' sockets, by response size.

use super::{Columns, Panel, PanelSize, cells, first_width, indented, name, plain};
use crate::watch::screen::state::ScreenState;
use crate::watch::screen::style::or_unknown;
use brimful_core::quantity::{self, compact, percent};
use brimful_core::server::{Elapsed, SocketPort, SocketRequests};
use brimful_monitor::GroupName;
use ratatui::text::Span;

const COLUMNS: Columns<7> =
    [("req/s", 8, 9), ("Mbit/s", 8, 3), ("wait", 9, 8), ("p99", 9, 6), ("service", 9, 7), ("p50", 9, 4), ("p99", 9, 5)];

/// Makes the panel of requests at sockets.
pub fn sockets(state: &ScreenState, PanelSize { width, .. }: PanelSize) -> Option<Panel> {
    let stretch = state.rates.requests.as_ref().filter(|_| state.shows(GroupName::Requests))?;
    let SocketRequests { duty, ports, classes, .. } = &stretch.metrics;
    let style = state.style;
    let mut panel = Panel::new("sockets", &COLUMNS, width, style);
    for port in ports {
        let facts = facts(port, *duty).into_iter().map(|fact| Span::styled(fact, style.dim()));
        panel.rows.extend(indented(&facts.collect::<Vec<_>>(), width, 1));
        for class in classes.iter().filter(|class| class.port == port.port) {
            let time = |times: Option<Elapsed>, figure: fn(Elapsed) -> f64| {
                or_unknown(times.map(figure), |us| quantity::seconds(us / 1e6))
            };
            let wait = class.wait_us;
            let service = class.service_us;
            let texts = [
                or_unknown(class.requests_per_s, compact),
                or_unknown(class.sent_bytes_per_s, |bytes| compact(bytes * 8e-6)),
                time(wait, |wait| wait.mean),
                time(wait, |wait| wait.p99),
                time(service, |service| service.mean),
                time(service, |service| service.p50),
                time(service, |service| service.p99),
            ];
            panel.push(name(&class.name, first_width(&COLUMNS, width)), cells(&COLUMNS, width, texts.map(plain)));
        }
    }
    (!ports.is_empty()).then_some(panel)
}

/// Items of the line about one port: its number, and totals over all sizes of responses.
fn facts(port: &SocketPort, duty: f64) -> Vec<String> {
    let mut facts = vec![format!("port {}", port.port)];
    facts.push(or_unknown(port.requests_per_s, |per_s| format!("{}/s", compact(per_s))));
    facts.extend(port.under_way.map(|under_way| format!("{} in progress", compact(under_way))));
    facts.extend(port.open_share.filter(|&open| open >= 0.01).map(|open| format!("{} open", percent(open))));
    facts.push(format!("{} sampled", percent(duty)));
    facts
}
