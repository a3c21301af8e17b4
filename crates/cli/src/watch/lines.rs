//! Prints one line per interval in fixed columns, like vmstat, for pipes and plain terminals.

use super::events::Flow;
use super::options::WatchOptions;
use super::session::Session;
use crate::output;
use brimful_core::quantity::three_digits;
use brimful_core::server::{Connections, Elapsed, Kernel, Module, Network, Program, SocketPort, State};
use brimful_monitor::{GroupName, Rates};
use std::io::ErrorKind;
use std::time::SystemTime;

/// Number of lines after which the header is repeated.
const LINES_PER_HEADER: u64 = 20;

/// Text that is shown instead of an unknown value.
pub const UNKNOWN_MARK: &str = "–";

/// Prints metrics as lines with one column per metric, and repeats the header when necessary.
pub struct Lines {
    columns: Vec<&'static Column>,
    /// Number of lines printed since the latest header.
    shown: u64,
    /// Whether the columns of the Server Module are shown. They are left out if no server has the module.
    has_module: bool,
}

/// A column: the title, unit and width of one metric, and the function that returns its value.
struct Column {
    group: GroupName,
    title: &'static str,
    unit: &'static str,
    width: usize,
    figure: fn(&Rates) -> Option<f64>,
}

const COLUMNS: [Column; 27] = [
    column(GroupName::Kernel, "user", "%", 5, |r| Some(100.0 * kernel(r)?.cpu?.user)),
    column(GroupName::Kernel, "system", "%", 6, |r| Some(100.0 * kernel(r)?.cpu?.system)),
    column(GroupName::Kernel, "intr", "%", 5, |r| Some(100.0 * kernel(r)?.cpu?.interrupt?)),
    column(GroupName::Kernel, "steal", "%", 5, |r| Some(100.0 * kernel(r)?.cpu?.steal)),
    column(GroupName::Kernel, "idle", "%", 5, |r| Some(100.0 * kernel(r)?.cpu?.idle)),
    column(GroupName::Kernel, "ready", "thr", 5, |r| kernel(r)?.runnable.map(|n| n as f64)),
    column(GroupName::Kernel, "switch", "/s", 6, |r| kernel(r)?.context_switches_per_s),
    column(GroupName::Kernel, "pg-in", "/s", 5, |r| kernel(r)?.paging?.page_ins_per_s),
    column(GroupName::Kernel, "disk", "%", 5, |r| Some(100.0 * kernel(r)?.disk?.utilization)),
    column(GroupName::Process, "cores", "cpus", 5, |r| programs(r, |p, _| Some(p.cores))),
    column(GroupName::Process, "wait", "s/s", 5, |r| programs(r, |p, seconds| Some(p.run_queue_wait_s? / seconds))),
    column(GroupName::Process, "rss", "MB", 5, |r| programs(r, |p, _| Some(p.rss_bytes as f64 / 1e6))),
    column(GroupName::Process, "mj-flt", "/s", 6, |r| programs(r, |p, seconds| Some(p.major_faults? as f64 / seconds))),
    column(GroupName::Network, "in", "MB/s", 5, |r| Some(network(r)?.all?.rx_bytes_per_s / 1e6)),
    column(GroupName::Network, "out", "MB/s", 5, |r| Some(network(r)?.all?.tx_bytes_per_s / 1e6)),
    column(GroupName::Network, "again", "/s", 5, |r| network(r)?.tcp?.retransmitted_per_s),
    column(GroupName::Connections, "SYN", "/s", 6, |r| connections(r)?.listener?.syn_per_s),
    column(GroupName::Connections, "accept", "/s", 6, |r| connections(r)?.listener?.accepted_per_s),
    column(GroupName::Connections, "drop", "/s", 5, |r| Some(connections(r)?.listener?.dropped_per_s)),
    column(GroupName::Connections, "queue", "", 5, |r| Some(connections(r)?.listener?.fullest.length as f64)),
    column(GroupName::Connections, "limit", "", 5, |r| Some(connections(r)?.listener?.fullest.limit as f64)),
    column(GroupName::Connections, "estab", "", 6, |r| in_state(r, State::Established)),
    column(GroupName::Connections, "t-wait", "", 6, |r| in_state(r, State::TimeWait)),
    column(GroupName::Module, "served", "/s", 6, |r| Some(module(r)?.servers.iter().map(|s| s.requests_per_s).sum())),
    column(GroupName::Requests, "req", "/s", 6, |r| ports(r, |port| port.requests_per_s)),
    column(GroupName::Requests, "wait", "µs", 6, |r| mean(r, |port| port.wait_us)),
    column(GroupName::Requests, "serve", "µs", 6, |r| mean(r, |port| port.service_us)),
];

impl Lines {
    /// Selects the columns of the groups that are sampled.
    pub fn new(options: &WatchOptions) -> Lines {
        let enabled = options.config.intervals.enabled();
        let shown = |column: &&Column| match column.group {
            GroupName::Process => enabled.has(GroupName::Process) && !options.config.processes.is_empty(),
            GroupName::Connections => enabled.has(GroupName::Connections) && !options.config.ports.is_empty(),
            group => enabled.has(group),
        };
        Lines { columns: COLUMNS.iter().filter(shown).collect(), shown: 0, has_module: false }
    }

    /// Prints the line of an interval. Ends the loop if stdout is closed.
    pub fn show(&mut self, session: &Session) -> anyhow::Result<Flow> {
        let has_module = module(session.latest_rates()).is_some();
        if std::mem::replace(&mut self.has_module, has_module) != has_module {
            self.shown = 0;
        }
        let mut text = if self.shown.is_multiple_of(LINES_PER_HEADER) { self.header() } else { String::new() };
        self.shown += 1;
        let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        text += &self.line(time.get(11..19).unwrap_or_default(), session.latest_rates());
        match output::write(&text) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Flow::Quit),
            written => Ok(written.map(|()| Flow::Continue)?),
        }
    }

    fn columns(&self) -> impl Iterator<Item = &'static Column> {
        let has_module = self.has_module;
        self.columns.iter().copied().filter(move |column| has_module || column.group != GroupName::Module)
    }

    /// The header: a line with the title and a line with the unit of each column. Programs and ports have no columns of
    /// their own, because the lines contain totals or means over all of them.
    fn header(&self) -> String {
        let row = |first: &str, word: fn(&Column) -> &'static str| {
            let cells = self.columns().map(|column| format!(" {:>1$}", word(column), column.width));
            format!("{first:<8}{}\n", cells.collect::<String>())
        };
        row("time", |column| column.title) + &row("UTC", |column| column.unit)
    }

    fn line(&self, time: &str, rates: &Rates) -> String {
        let cells = self.columns().map(|column| {
            let cell = (column.figure)(rates).map_or(UNKNOWN_MARK.to_owned(), |x| short(x, column.width));
            format!(" {cell:>0$}", column.width)
        });
        format!("{time:<8}{}\n", cells.collect::<String>())
    }
}

/// Formats a number with three digits, or with fewer if the column is too narrow.
fn short(x: f64, width: usize) -> String {
    let digits = match x {
        0.0 => "0".to_owned(),
        x => three_digits(x),
    };
    match digits.len() <= width {
        true => digits,
        false if x.abs() < 999_500.0 => format!("{:.0}k", x / 1e3),
        false => format!("{:.1}M", x / 1e6),
    }
}

const fn column(
    group: GroupName,
    title: &'static str,
    unit: &'static str,
    width: usize,
    figure: fn(&Rates) -> Option<f64>,
) -> Column {
    Column { group, title, unit, width, figure }
}

fn kernel(rates: &Rates) -> Option<&Kernel> {
    Some(&rates.kernel.as_ref()?.metrics)
}

/// The sum of a metric over all programs. The second argument of `figure`, which returns the metric, is the length of
/// the interval in seconds.
fn programs(rates: &Rates, figure: fn(&Program, f64) -> Option<f64>) -> Option<f64> {
    let process = rates.process.as_ref().filter(|process| !process.metrics.process.is_empty())?;
    let seconds = process.length().as_secs_f64();
    process.metrics.process.iter().map(|program| figure(program, seconds)).sum()
}

fn network(rates: &Rates) -> Option<&Network> {
    Some(&rates.network.as_ref()?.metrics)
}

fn connections(rates: &Rates) -> Option<&Connections> {
    Some(&rates.connections.as_ref()?.metrics)
}

fn module(rates: &Rates) -> Option<&Module> {
    Some(&rates.module.as_ref()?.metrics).filter(|module| !module.servers.is_empty())
}

/// The sum of a metric over all ports whose requests are measured.
fn ports(rates: &Rates, figure: fn(&SocketPort) -> Option<f64>) -> Option<f64> {
    rates.requests.as_ref()?.metrics.ports.iter().map(figure).sum()
}

/// The mean of a time over the requests at all ports.
fn mean(rates: &Rates, times: fn(&SocketPort) -> Option<Elapsed>) -> Option<f64> {
    let all = rates.requests.as_ref()?.metrics.ports.iter().filter_map(times);
    let (count, sum) = all.fold((0.0, 0.0), |(n, sum), t| (n + t.count as f64, sum + t.mean * t.count as f64));
    (count > 0.0).then(|| sum / count)
}

fn in_state(rates: &Rates, state: State) -> Option<f64> {
    connections(rates)?.connections.as_ref()?.get(&state).map(|&n| n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::fixture;

    #[test]
    fn header_and_lines_have_the_same_columns() {
        let lines = Lines { columns: COLUMNS.iter().collect(), shown: 0, has_module: true };
        let busy = lines.line("12:00:00", &fixture::busy_rates_with_module());
        let unknown = lines.line("12:00:01", &Rates::default());
        let text = lines.header() + &busy + &unknown;
        let widths: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|&width| width == widths[0] && width <= 181), "{text}");
        assert_eq!(unknown.matches(UNKNOWN_MARK).count(), COLUMNS.len());
        let figures: Vec<&str> = busy.split_ascii_whitespace().collect();
        assert_eq!(figures[..6], ["12:00:00", "31.0", "52.5", "5.00", "1.50", "15.0"]);
        assert_eq!(figures[figures.len() - 4..], ["4000", "4066", "20.0", "110"]);
        assert!(busy.contains(" 1,210 ") || busy.contains(" 1210 "), "{busy}");
    }

    #[test]
    fn numbers_fit_their_columns() {
        for (x, shown) in
            [(0.0, "0"), (0.004, "0.00"), (99.96, "100"), (12_345.6, "12346"), (123_456.0, "123k"), (1.2e7, "12.0M")]
        {
            assert_eq!(short(x, 5), shown);
        }
    }
}
