//! Checks CPUs and clocks of this host: the number of cores, the clock source, the lateness of timers, steal, and the
//! speed of a core.

use super::probe::{BUFFER_MIB, SpeedProbe};
use super::{Finding, Fix, Status, judged, unknown};
use crate::bottleneck::thresholds::UNSUITABLE_HOST_STEAL;
use crate::kernel::stat::{CpuTicks, SystemStat};
use crate::sys;
use brimful_core::Nanos;
use brimful_core::quantity::{number, percent};
use brimful_core::server::HostProbe;
use brimful_os::cpus;
use std::path::Path;
use std::time::Duration;

const CLOCK_SOURCES: &str = "sys/devices/system/clocksource/clocksource0";
/// Names of the clock sources that a program can read without a system call.
const FAST_SOURCES: [&str; 5] =
    ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "riscv_clocksource"];
/// Maximum acceptable lateness of a sleep. The load generator sleeps until shortly before a call is due. If the sleep
/// ends later than this, the call is sent late.
const MAX_LATENESS: Nanos = Nanos::from_micros(500);

/// Returns the findings about CPUs and clocks.
pub(super) fn examine(root: &Path) -> Vec<Finding> {
    let before = cpu_ticks(root);
    let begun = sys::now();
    let clock = clock(root, cost_of_reading_the_clock());
    let timers = timers(median_lateness());
    std::thread::sleep(Duration::from_millis(300).saturating_sub((sys::now() - begun).into()));
    let steal = steal(before, cpu_ticks(root));
    vec![cores(cpus::online().len()), clock, timers, steal, speed(SpeedProbe::new().measure())]
}

fn cores(count: usize) -> Finding {
    let means = match count {
        1 => "generator and server on this host share the one core: what is measured is both".to_owned(),
        n => format!("{} for a server on this host if the generator takes one", n - 1),
    };
    judged(
        "cores",
        count > 1,
        count.to_string(),
        means,
        Fix::by_hand("ssh OTHER-HOST brimful load http://THIS-HOST/ …"),
    )
}

fn clock(root: &Path, cost: Nanos) -> Finding {
    let read = |file: &str| std::fs::read_to_string(root.join(CLOCK_SOURCES).join(file)).unwrap_or_default();
    let (current, available) = (read("current_clocksource"), read("available_clocksource"));
    let current = current.trim();
    if current.is_empty() {
        return unknown("clock", CLOCK_SOURCES, "decides what every time stamp costs");
    }
    let better = available.split_ascii_whitespace().find(|name| FAST_SOURCES.contains(name)).unwrap_or("tsc");
    judged(
        "clock",
        FAST_SOURCES.contains(&current),
        format!("{current}, {cost} per reading"),
        "several readings per call: a slow clock costs the generator CPU and resolution".to_owned(),
        format!("echo {better} | sudo tee /{CLOCK_SOURCES}/current_clocksource"),
    )
}

fn timers(lateness: Nanos) -> Finding {
    let slack = rustix::thread::current_timer_slack().map_or_else(|_| "unknown".to_owned(), |ns| Nanos(ns).to_string());
    judged(
        "timer_slack",
        lateness < MAX_LATENESS,
        format!("slack {slack}; a sleep of 1 ms ends {lateness} late (median of ten)"),
        "how long before each call is due the generator must be awake and spin".to_owned(),
        "sudo cpupower idle-set --disable-by-latency 50",
    )
}

fn steal(before: Option<CpuTicks>, after: Option<CpuTicks>) -> Finding {
    let Some((before, after)) = before.zip(after) else {
        return unknown("steal", "/proc/stat", "CPU time that the hypervisor gives to others distorts every figure");
    };
    let share = |from: CpuTicks| {
        let part = |of: fn(&CpuTicks) -> u64| of(&after).saturating_sub(of(&from)) as f64;
        let whole = part(|t| t.user) + part(|t| t.system) + part(|t| t.idle) + part(|t| t.steal);
        if whole > 0.0 { part(|t| t.steal) / whole } else { 0.0 }
    };
    let (now, since_boot) = (share(before), share(CpuTicks::default()));
    judged(
        "steal",
        now.max(since_boot) < UNSUITABLE_HOST_STEAL,
        format!("{} now, {} since boot", percent(now), percent(since_boot)),
        "CPU time that the hypervisor gave to others: it distorts every figure".to_owned(),
        Fix::by_hand("vmstat 1    # the column st: move to a host with dedicated CPUs, or measure when it is 0"),
    )
}

fn speed(probe: HostProbe) -> Finding {
    let [operations, reads] = [probe.arithmetic_mops, probe.memory_mreads].map(number);
    Finding {
        topic: "speed",
        status: Status::Ok,
        value: format!("{operations} million operations/s, {reads} million memory reads/s"),
        means: format!(
            "one CPU just now: integer operations and random reads in {BUFFER_MIB} MiB, each waiting for the one before; \
             they swing when neighbours share the cache, and with them what a server can take"
        ),
        fix: None,
        script: None,
    }
}

fn cpu_ticks(root: &Path) -> Option<CpuTicks> {
    SystemStat::parse(&std::fs::read(root.join("proc/stat")).ok()?).cpu
}

fn cost_of_reading_the_clock() -> Nanos {
    const READINGS: u64 = 10_000;
    let begun = sys::now();
    for _ in 1..READINGS {
        std::hint::black_box(sys::now());
    }
    Nanos((sys::now() - begun).0 / READINGS)
}

fn median_lateness() -> Nanos {
    let nap = Duration::from_millis(1);
    let mut lateness = [(); 10].map(|()| {
        let begun = sys::now();
        std::thread::sleep(nap);
        sys::now() - begun - nap.into()
    });
    lateness.sort();
    lateness[lateness.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_clock_is_replaced_by_the_fast_one_there_is() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join(CLOCK_SOURCES);
        assert_eq!(clock(root.path(), Nanos(40)).status, Status::Unknown);
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("available_clocksource"), "hpet kvm-clock acpi_pm\n").unwrap();
        std::fs::write(directory.join("current_clocksource"), "hpet\n").unwrap();
        let fix = clock(root.path(), Nanos(1200)).fix.unwrap();
        assert!(fix.starts_with("echo kvm-clock | sudo tee /sys/"), "{fix}");
        std::fs::write(directory.join("current_clocksource"), "tsc\n").unwrap();
        assert_eq!(clock(root.path(), Nanos(40)).status, Status::Ok);
    }

    #[test]
    fn steal_counts_now_and_since_boot() {
        let ticks = |idle, steal| Some(CpuTicks { idle, steal, ..CpuTicks::default() });
        assert_eq!(steal(ticks(900, 0), ticks(1000, 0)).status, Status::Ok);
        assert_eq!(steal(ticks(9000, 0), ticks(9090, 10)).value, "10.0 % now, 0.1 % since boot");
        assert_eq!(steal(ticks(9000, 0), ticks(9090, 10)).status, Status::Shortfall);
        assert_eq!(steal(ticks(800, 100), ticks(900, 100)).status, Status::Shortfall);
        assert_eq!(steal(None, ticks(1, 1)).status, Status::Unknown);
    }

    #[test]
    fn the_speed_is_told_and_no_judgement_on_it() {
        let found = speed(HostProbe { arithmetic_mops: 2310.4, memory_mreads: 25.31 });
        assert_eq!(found.value, "2,310 million operations/s, 25.3 million memory reads/s");
        assert!(found.status == Status::Ok && found.means.contains("16 MiB"), "{found:?}");
    }

    #[test]
    fn one_core_and_late_timers_are_shortfalls() {
        assert_eq!((cores(1).status, cores(2).status), (Status::Shortfall, Status::Ok));
        assert_eq!(timers(Nanos::from_millis(4)).status, Status::Shortfall);
        assert_eq!(timers(Nanos::from_micros(60)).status, Status::Ok);
    }
}
