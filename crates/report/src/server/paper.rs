//! The monitor's metrics of a server, in tables like those of the WebMonitor paper (Almeida, Almeida & Yates 1997,
//! Tables 4 to 8).
//!
//! Rows per connection in the paper are per request here, because the paper's server had no persistent connections. In
//! the paper, processing lasts until the client has received the response. Here, it is the sum of the phases process,
//! upstream and send.

use super::layout::{UNKNOWN_MARK, rows};
use super::module::label;
use brimful_core::moments::weighted_mean;
use brimful_core::server::{Elapsed, Module, ModuleClass, Program, Server};

/// Formats all tables, one below the other.
pub fn tables(server: &Server) -> String {
    let mut parts = Vec::new();
    match server.module.as_ref().filter(|module| module.classes.iter().any(|class| class.requests > 0)) {
        Some(module) => parts.push(server_module(module)),
        None => parts.push(format!(
            "Server Module (Tables 4 and 5 of the paper): no requests seen\n  {}\n",
            server.sources.get("module").map_or("none: it was not watched", String::as_str)
        )),
    }
    parts.push(kernel_module(server));
    parts.push(network(server));
    parts.join("\n")
}

/// Computes the value of a table row from the requests of one class or of all classes.
type Figure = fn(&Requests<'_>) -> Option<f64>;

/// The request classes that a column of a table covers.
struct Requests<'m> {
    module: &'m Module,
    classes: Vec<&'m ModuleClass>,
    /// Whether these are all classes.
    all: bool,
}

const ROWS: [(&str, Figure); 14] = [
    ("conn/s", |r| Some(r.classes.iter().map(|class| class.requests_per_s).sum())),
    ("Mbit/s", |r| Some(r.classes.iter().map(|class| class.bytes_per_s * 8e-6).sum())),
    ("reads/conn", |r| r.server_mean(|s| s.reads_per_request)),
    ("rblk/conn", |r| {
        r.server_mean(|s| s.blocks_read_per_request).or_else(|| r.class_mean(|class| class.blocks_read_per_request))
    }),
    ("wblk/conn", |r| r.class_mean(|class| class.blocks_written_per_request)),
    ("CPU parsetime(ms)/conn", |r| r.cpu_ms(|class| Some(class.cpu_parts_us?.parse))),
    ("CPU processingtime(ms)/conn", |r| r.cpu_ms(|class| Some(class.cpu_parts_us?.process))),
    ("CPU logtime(ms)/conn", |r| r.cpu_ms(|class| Some(class.cpu_parts_us?.log))),
    ("elapsed parsetime(ms)/conn", |r| r.elapsed_ms(|class| [class.phases_us.parse, None, None])),
    ("elapsed processingtime(ms)/conn", |r| {
        r.elapsed_ms(|class| [class.phases_us.process, class.phases_us.upstream, class.phases_us.send])
    }),
    ("elapsed logtime(ms)/conn", |r| r.elapsed_ms(|class| [class.phases_us.log, None, None])),
    ("CPU user(ms)/conn", |r| r.server_mean(|s| s.cpu_user_us).map(|us| us / 1e3)),
    ("CPU system(ms)/conn", |r| r.server_mean(|s| s.cpu_system_us).map(|us| us / 1e3)),
    ("CPU demand(ms)/conn", |r| r.cpu_ms(|class| Some(class.demand_us?.mean))),
];

impl Requests<'_> {
    /// The mean of a metric over all servers, weighted by their request rates. `None` for a single class, because
    /// servers measure these metrics only for all classes together.
    fn server_mean(&self, figure: fn(&brimful_core::server::ModuleServer) -> Option<f64>) -> Option<f64> {
        let servers = &self.module.servers;
        let weighted = servers.iter().map(|server| Some((server.requests_per_s, figure(server)?)));
        weighted.collect::<Option<Vec<_>>>().filter(|_| self.all).and_then(|known| weighted_mean(&known))
    }

    /// The mean of a metric over these classes, weighted by their numbers of requests.
    fn class_mean(&self, figure: fn(&ModuleClass) -> Option<f64>) -> Option<f64> {
        let known: Vec<_> =
            self.classes.iter().filter_map(|class| Some((class.requests as f64, figure(class)?))).collect();
        weighted_mean(&known)
    }

    /// Like [`Requests::class_mean`], for a metric in microseconds. Returns milliseconds.
    fn cpu_ms(&self, figure: fn(&ModuleClass) -> Option<f64>) -> Option<f64> {
        self.class_mean(figure).map(|us| us / 1e3)
    }

    /// The mean time per request in all of `phases` together, in milliseconds. Requests without a phase count as zero.
    fn elapsed_ms(&self, phases: fn(&ModuleClass) -> [Option<Elapsed>; 3]) -> Option<f64> {
        let weighted_time = |class: &&ModuleClass| {
            let phases: Vec<Elapsed> = phases(class).into_iter().flatten().collect();
            let us: f64 = phases.iter().map(|phase| super::module::per_request(phase, class)).sum();
            (!phases.is_empty()).then_some((class.requests as f64, us / 1e3))
        };
        weighted_mean(&self.classes.iter().filter_map(weighted_time).collect::<Vec<_>>())
    }
}

fn server_module(module: &Module) -> String {
    let classes: Vec<&ModuleClass> = module.classes.iter().filter(|class| class.requests > 0).collect();
    let each = classes.iter().map(|&class| Requests { module, classes: vec![class], all: classes.len() == 1 });
    let mut columns: Vec<Requests<'_>> = each.collect();
    let mut titles = vec!["per class".to_owned()];
    titles.extend(classes.iter().map(|class| label(module, class)));
    if classes.len() > 1 {
        titles.push("all".to_owned());
        columns.push(Requests { module, classes, all: true });
    }
    let cells = |figure: Figure| columns.iter().map(move |requests| precise(figure(requests)));
    let table = ROWS.iter().map(|(name, figure)| [(*name).to_owned()].into_iter().chain(cells(*figure)).collect());
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    "Server Module (Tables 4 and 5 of the paper)\n".to_owned()
        + &rows(&titles, &table.collect::<Vec<_>>())
        + "  A connection is a request, as in the paper, which kept none alive. Elapsed processing includes waiting for the\n  \
           client and for servers behind this one. Reads, user and system are known of all requests together only. Blocks of\n  \
           a class, wblk and the last three rows are not in the paper's tables: blocks are means of the sampled requests, \
           demand\n  is CPU time with what no phase explains.\n"
}

/// Mean number of processes during the run. Documents of earlier versions contain only the number at the end of the
/// run.
fn processes(program: &Program) -> f64 {
    program.mean.map_or(program.processes as f64, |mean| mean.processes)
}

/// Mean number of threads that run or wait for a CPU. Documents of earlier versions contain only the number at the end
/// of the run.
fn running(program: &Program) -> Option<f64> {
    program.mean.map(|mean| mean.running).or(program.running.map(|threads| threads as f64))
}

fn kernel_module(server: &Server) -> String {
    let kernel = &server.kernel;
    let share = |figure: Option<f64>| precise(figure.map(|share| 100.0 * share));
    let (paging, interrupts) = (kernel.paging.unwrap_or_default(), kernel.interrupts.unwrap_or_default());
    let cpus = kernel.cpus.len().max(1) as f64;
    let sum = |figure: fn(&Program) -> Option<f64>| {
        let known = server.process.iter().map(figure).sum::<Option<f64>>();
        known.filter(|_| !server.process.is_empty())
    };
    let system = [
        ("cpu_idle(%)", share(kernel.cpu.map(|cpu| cpu.idle))),
        ("cpu_user(%)", share(kernel.cpu.map(|cpu| cpu.user))),
        ("cpu_system(%)", share(kernel.cpu.map(|cpu| cpu.system))),
        ("interrupts/s", precise(interrupts.all_per_s)),
        ("net_interrupts/s", precise(interrupts.network_per_s)),
        ("disk_interrupts/s", precise(interrupts.disk_per_s)),
        ("page-in/s", precise(paging.page_ins_per_s)),
        ("page-out/s", precise(paging.page_outs_per_s)),
        ("reads/s", precise(kernel.disk.map(|disk| disk.reads_per_s))),
        ("writes/s", precise(kernel.disk.map(|disk| disk.writes_per_s))),
        ("ctxt/s", precise(kernel.context_switches_per_s)),
    ];
    let processes = [
        ("cpu(%)", share(sum(|program| Some(program.cores)).map(|cores| cores / cpus))),
        ("mem(%)", share(sum(|program| program.mean.map_or(program.memory_share, |mean| mean.memory_share)))),
        ("started processes", precise(sum(|program| Some(processes(program))))),
        ("running processes", precise(sum(running))),
    ];
    let table = |title: &str, figures: &[(&str, String)]| {
        let figures: Vec<Vec<String>> =
            figures.iter().map(|(name, cell)| vec![(*name).to_owned(), cell.clone()]).collect();
        trimmed(&rows(&[title, ""], &figures))
    };
    "Kernel Module (Tables 6 and 7 of the paper)\n".to_owned()
        + &table("the system as a whole", &system)
        + &table("the watched programs", &processes)
        + &kernel_threads(server).unwrap_or_default()
}

/// A table of the kernel threads, like the programs in Table 7 of the paper. CPU time per connection is known only if
/// the Server Module counted the requests.
fn kernel_threads(server: &Server) -> Option<String> {
    let kernel = &server.kernel;
    let cpus = kernel.cpus.len().max(1) as f64;
    let requests_per_s: f64 = server.module.iter().flat_map(|module| &module.classes).map(|c| c.requests_per_s).sum();
    let per_request = |cores: f64| precise((requests_per_s > 0.0).then(|| 1e3 * cores / requests_per_s));
    let figures: Vec<Vec<String>> = kernel
        .kernel_threads
        .iter()
        .flatten()
        .map(|(name, group)| {
            let name = brimful_core::text::one_line(name).into_owned();
            vec![name, precise(Some(100.0 * group.cores / cpus)), per_request(group.cores)]
        })
        .collect();
    (!figures.is_empty()).then(|| trimmed(&rows(&["threads of the kernel", "cpu(%)", "CPU(ms)/conn"], &figures)))
}

fn network(server: &Server) -> String {
    let all = server.network.as_ref().and_then(|network| network.all);
    let figures = [
        ("Packets transmitted per second", precise(all.map(|all| all.tx_packets_per_s))),
        ("Packets received per second", precise(all.map(|all| all.rx_packets_per_s))),
    ];
    let figures = figures.map(|(name, cell)| vec![name.to_owned(), cell]);
    "Kernel Module, network (Table 8 of the paper)\n".to_owned() + &trimmed(&rows(&["all interfaces", ""], &figures))
}

/// Removes the spaces at the ends of lines, which come from empty cells in the last column.
fn trimmed(table: &str) -> String {
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Formats a number with three significant digits even if it is far below 1, as CPU times in milliseconds often are.
fn precise(x: Option<f64>) -> String {
    match x {
        None => UNKNOWN_MARK.to_owned(),
        Some(x) if x.abs() >= 0.995 || x == 0.0 => brimful_core::quantity::number(x),
        Some(x) => {
            let decimals = (2.0 - x.abs().log10().floor()).clamp(0.0, 9.0) as usize;
            format!("{x:.decimals$}").replacen('-', "\u{2212}", 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::module::tests::module;
    use super::*;
    use brimful_core::server::{CpuShares, Disk, Kernel, KernelThreads, Network, NetworkTraffic};

    fn server() -> Server {
        let mut module = module();
        let mut large = module.classes[0].clone();
        (large.name, large.requests, large.requests_per_s) = ("over-500k".to_owned(), 3_000, 1_500.0);
        large.cpu_parts_us.iter_mut().for_each(|parts| parts.process = 116.5);
        module.classes.push(large);
        let cpu = Some(CpuShares { user: 0.09, system: 0.903, idle: 0.007, ..CpuShares::default() });
        let disk = Some(Disk { reads_per_s: 7.29, ..Disk::default() });
        let program = |cores, processes| Program { cores, processes, running: Some(1), ..Program::default() };
        Server {
            kernel: Kernel {
                cpu,
                cpus: vec![0, 1],
                disk,
                context_switches_per_s: Some(51.94),
                kernel_threads: Some([("ksoftirqd".to_owned(), KernelThreads { threads: 2, cores: 0.04 })].into()),
                ..Kernel::default()
            },
            process: vec![program(1.5, 3), program(0.25, 2)],
            network: Some(Network {
                all: Some(NetworkTraffic {
                    tx_packets_per_s: 442.82,
                    rx_packets_per_s: 317.75,
                    ..NetworkTraffic::default()
                }),
                ..Network::default()
            }),
            module: Some(module),
            ..Server::default()
        }
    }

    /// The cells of the row with this name in a text of tables.
    fn row<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(name))
            .unwrap_or_else(|| panic!("{name} in\n{text}"));
        line.trim_start()[name.len()..].split_ascii_whitespace().collect()
    }

    #[test]
    fn the_rows_of_the_papers_tables_are_there() {
        let text = tables(&server());
        for (name, cells) in [
            ("per class", &["under-5k", "over-500k", "all"][..]),
            ("conn/s", &["500", "1,500", "2,000"]),
            ("Mbit/s", &["16.0", "16.0", "32.0"]),
            ("reads/conn", &["–", "–", "1.25"]),
            ("rblk/conn", &["2.50", "2.50", "2.50"]),
            ("wblk/conn", &["–", "–", "–"]),
            ("CPU parsetime(ms)/conn", &["0.00200", "0.00200", "0.00200"]),
            ("CPU processingtime(ms)/conn", &["0.0165", "0.117", "0.0915"]),
            ("elapsed processingtime(ms)/conn", &["0.105", "0.105", "0.105"]),
            ("elapsed logtime(ms)/conn", &["0.00310", "0.00310", "0.00310"]),
            ("CPU user(ms)/conn", &["–", "–", "0.00600"]),
            ("CPU system(ms)/conn", &["–", "–", "0.0170"]),
            ("cpu_idle(%)", &["0.700"]),
            ("reads/s", &["7.29"]),
            ("ctxt/s", &["51.9"]),
            ("interrupts/s", &["–"]),
            ("cpu(%)", &["87.5"]),
            ("mem(%)", &["–"]),
            ("started processes", &["5.00"]),
            ("ksoftirqd", &["2.00", "0.0200"]),
            ("Packets transmitted per second", &["443"]),
        ] {
            assert_eq!(row(&text, name), cells, "{name} in\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    }

    #[test]
    fn without_the_module_it_is_said_what_would_bring_it() {
        let mut server = server();
        server.module = None;
        server.sources.insert("module".to_owned(), "none: no module".to_owned());
        let text = tables(&server);
        assert!(text.contains("no requests seen\n  none: no module\n") && text.contains("ctxt/s"), "{text}");
    }

    #[test]
    fn small_figures_keep_three_digits() {
        let shown = [0.0, 1234.5, 1.234, 0.5, 0.012_34, 0.000_002_346].map(|x| precise(Some(x)));
        assert_eq!(shown, ["0.00", "1,234", "1.23", "0.500", "0.0123", "0.00000235"]);
    }
}
