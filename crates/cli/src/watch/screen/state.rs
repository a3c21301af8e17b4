//! The state that the screen shows.

use super::style::Style;
use crate::watch::options::WatchOptions;
use crate::watch::session::Session;
use brimful_core::Nanos;
use brimful_core::server::Kernel;
use brimful_monitor::{Finding, GroupName, Groups, Rates};
use std::collections::BTreeMap;

/// Time for which a notice is shown.
const NOTICE_TIME: Nanos = Nanos::from_secs(30);

/// The content of a frame of the screen.
pub struct ScreenState {
    /// The name of this host.
    pub host: String,
    /// Description of the watched programs and ports.
    pub targets: String,
    /// Description of the sampling intervals.
    pub intervals: String,
    /// Time since the start of the watch.
    pub elapsed: Nanos,
    /// CPU time of the monitor itself, as a share of one CPU.
    pub monitor_cpu_share: f64,
    /// Findings about the bottleneck.
    pub findings: Vec<Finding>,
    /// The latest metrics of each group.
    pub rates: Rates,
    /// Advice on how to obtain the most useful one of the metrics that are unknown.
    pub hint: Option<String>,
    /// The last notice, and the elapsed time of the watch when the notice was set.
    notice: Option<(String, Nanos)>,
    /// The groups of metrics that are sampled.
    pub enabled: Groups,
    hidden: Vec<GroupName>,
    /// Whether the metrics on the screen are frozen.
    pub paused: bool,
    /// Whether the explanation of the keys is shown.
    pub help: bool,
    /// The colours of the screen.
    pub style: Style,
}

impl ScreenState {
    /// The state before the first sample.
    pub fn new(options: &WatchOptions) -> ScreenState {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let configured = &options.config.intervals;
        let mut intervals: Vec<(Nanos, Vec<&str>)> = Vec::new();
        for group in GroupName::ALL {
            let Some(interval) = configured.get(group) else { continue };
            match intervals.iter_mut().find(|(other, _)| *other == interval) {
                Some((_, groups)) => groups.push(group.name()),
                None => intervals.push((interval, vec![group.name()])),
            }
        }
        let intervals = match intervals.as_slice() {
            [(interval, _)] => format!("every {interval}"),
            several => {
                let each = several.iter().map(|(interval, groups)| format!("{} every {interval}", groups.join(" ")));
                each.collect::<Vec<_>>().join(", ")
            }
        };
        ScreenState {
            host,
            targets: options.targets.clone(),
            intervals,
            elapsed: Nanos::ZERO,
            monitor_cpu_share: 0.0,
            findings: Vec::new(),
            rates: Rates::default(),
            hint: None,
            notice: None,
            enabled: configured.enabled(),
            hidden: Vec::new(),
            paused: false,
            help: false,
            style: Style::from_environment(),
        }
    }

    /// Updates the metrics, unless the display is paused.
    pub fn update(&mut self, session: &Session) {
        if self.paused {
            return;
        }
        self.elapsed = session.elapsed();
        self.monitor_cpu_share = session.monitor_cpu_share();
        self.findings = session.findings();
        self.rates = session.latest_rates().clone();
        self.hint = hint(&session.sources());
    }

    /// Replaces the current notice.
    pub fn set_notice(&mut self, notice: String) {
        self.notice = Some((notice, self.elapsed));
    }

    /// The last notice, unless it is too old.
    pub fn notice(&self) -> Option<&str> {
        let (notice, at) = self.notice.as_ref()?;
        (self.elapsed - *at < NOTICE_TIME).then_some(notice)
    }

    /// Whether a group of metrics is sampled, and not hidden by the user.
    pub fn shows(&self, group: GroupName) -> bool {
        self.enabled.has(group) && !self.hidden.contains(&group)
    }

    /// The host-wide metrics that the kernel reports, if they are known and not hidden.
    pub fn kernel(&self) -> Option<&Kernel> {
        self.rates.kernel.as_ref().filter(|_| self.shows(GroupName::Kernel)).map(|stretch| &stretch.metrics)
    }

    /// Handles a key that pauses the screen, shows the help, or hides a group of metrics.
    pub fn handle_key(&mut self, key: char) {
        match key {
            ' ' => self.paused = !self.paused,
            '?' | 'h' => self.help = !self.help,
            // The key is the initial letter of a group of metrics, which is hidden or shown again.
            _ => GroupName::ALL
                .into_iter()
                .filter(|group| group.name().starts_with(key))
                .for_each(|group| self.toggle(group)),
        }
    }

    fn toggle(&mut self, group: GroupName) {
        match self.hidden.iter().position(|&hidden| hidden == group) {
            Some(index) => drop(self.hidden.remove(index)),
            None => self.hidden.push(group),
        }
    }
}

/// Advice on how to obtain the most useful one of the metrics that are unknown although the user requested them. If all
/// requested metrics are known, names the programs that are not running.
fn hint(sources: &BTreeMap<String, String>) -> Option<String> {
    const MOST_USEFUL_FIRST: [&str; 12] = [
        "listener",
        "connections",
        "process",
        "requests",
        "cpu",
        "tcp",
        "network",
        "disk",
        "memory",
        "pressure",
        "paging",
        "interrupts",
    ];
    let missing = MOST_USEFUL_FIRST.into_iter().find_map(|figures| {
        let why = sources.get(figures)?.strip_prefix("none: ")?;
        let is_not_asked_for = why.ends_with("not watched")
            || why.ends_with("--requests")
            || why.starts_with("no process was")
            || why.starts_with("no port was");
        (!is_not_asked_for).then(|| format!("no {figures}: {why}"))
    });
    missing.or_else(|| sources.get("process").filter(|source| source.starts_with("waiting")).cloned())
}

#[cfg(test)]
impl ScreenState {
    /// The state of the screen for a fictitious host.
    pub fn for_test(rates: Rates) -> ScreenState {
        ScreenState {
            host: "web1".to_owned(),
            targets: "port 80".to_owned(),
            intervals: "every 1s".to_owned(),
            elapsed: Nanos::from_secs(130),
            monitor_cpu_share: 0.0012,
            findings: brimful_monitor::bottleneck(&rates),
            rates,
            hint: None,
            notice: None,
            enabled: Groups::ALL,
            hidden: Vec::new(),
            paused: false,
            help: false,
            style: Style::plain(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_names_the_most_useful_unknown_figure() {
        let sources = |list: &[(&str, &str)]| -> BTreeMap<String, String> {
            list.iter().map(|(name, source)| ((*name).to_owned(), (*source).to_owned())).collect()
        };
        let missing = [
            ("connections", "none: the kernel refused: run as root"),
            ("cpu", "/proc/stat"),
            ("listener", "none: no port was named"),
            ("pressure", "none: boot with psi=1"),
        ];
        assert_eq!(hint(&sources(&missing)), Some("no connections: the kernel refused: run as root".to_owned()));
        assert_eq!(hint(&sources(&missing[3..])), Some("no pressure: boot with psi=1".to_owned()));
        assert_eq!(hint(&sources(&missing[1..3])), None);
    }
}
