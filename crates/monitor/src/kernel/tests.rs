//! Tests the group `kernel` with invented files of /proc and /sys, in the formats of several kernels (tests/data). The
//! tests also change these files: counters wrap around, CPUs and disks come and go, the machine is suspended, and
//! samples are late.

use super::*;
use crate::{PerGroup, Rates, Sample};
use brimful_core::server::{Disk, Pressure, Stall};
use std::fs;
use std::path::PathBuf;

/// A copy of one kernel's files that a test can change, and a `KernelWatch` that reads this copy.
struct Machine {
    root: tempfile::TempDir,
    watch: KernelWatch,
}

impl Machine {
    fn of(kernel: &str) -> Machine {
        Machine::watching(kernel, &[])
    }

    fn watching(kernel: &str, cpus: &[usize]) -> Machine {
        let root = tempfile::tempdir().unwrap();
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(kernel);
        copy(&data, root.path());
        let watch = KernelWatch::open(root.path(), cpus).unwrap();
        Machine { root, watch }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.root.path().join(file)
    }

    /// Replaces lines of /proc/FILE, selected by their beginnings; an empty replacement removes the line.
    fn change(&self, file: &str, lines: &[(&str, &str)]) {
        let path = self.path("proc").join(file);
        let mut text = fs::read_to_string(&path).unwrap();
        for (beginning, new) in lines {
            let old = text.lines().find(|line| line.trim_start().starts_with(beginning)).unwrap();
            text = text.replacen(&format!("{old}\n"), new, 1);
        }
        fs::write(path, text).unwrap();
    }

    fn read(&mut self) -> KernelSample {
        self.watch.read(&mut Vec::new())
    }

    fn source(&self, kind: &str) -> String {
        let mut sources = BTreeMap::new();
        self.watch.sources(&mut sources);
        sources.remove(kind).unwrap()
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copied = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &copied),
            false => fs::write(copied, fs::read(&path).unwrap()).unwrap(),
        }
    }
}

fn ticks(user: u64, system: u64, idle: u64, steal: u64, interrupt: u64, io_wait: u64) -> CpuTicks {
    CpuTicks { user, system, idle, steal, interrupt, io_wait }
}

fn seconds(s: f64) -> Nanos {
    Nanos::from_secs_f64(s)
}

#[test]
fn every_kernel_tells_what_it_has() {
    // The expected values: number of CPUs, ticks of the first CPU, KiB paged in, KiB of available memory, names of
    // whole disks, and memory pressure in microseconds.
    type Expected = (usize, CpuTicks, u64, Option<u64>, &'static [&'static str], Option<u64>);
    let kernels: [(&str, Expected); 6] = [
        ("3.10", (2, ticks(81_354, 32_323, 932_468, 0, 2112, 20_123), 1_203_344, None, &["sda", "sr0"], None)),
        (
            "4.19",
            (
                4,
                ticks(505_143, 128_365, 4_062_556, 0, 8021, 50_211),
                40_211_234,
                Some(12_044_212),
                &["sda", "sdb"],
                None,
            ),
        ),
        (
            "5.10",
            (
                2,
                ticks(1_291_333, 442_324, 9_042_466, 2011, 40_211, 30_122),
                90_211_334,
                Some(5_502_344),
                &["nvme0n1"],
                Some(402_113),
            ),
        ),
        (
            "6.1-96-cpus",
            (
                92,
                ticks(1_832_170, 142_844, 28_141_816, 0, 603, 4286),
                802_113_344,
                Some(380_211_334),
                &["nvme0n1", "nvme1n1"],
                Some(0),
            ),
        ),
        (
            "6.18",
            (
                2,
                ticks(894_698, 357_323, 1_078_622, 4664, 82_676, 26_394),
                151_191_197,
                Some(23_687_844),
                &["vda"],
                Some(5),
            ),
        ),
        ("lxcfs", (2, ticks(40_211, 20_113, 902_113, 0, 0, 0), 40_211_234, Some(1_803_344), &[], Some(0))),
    ];
    for (kernel, (cpus, first, paged_in, available, disks, pressure)) in kernels {
        let sample = Machine::of(kernel).read();
        assert_eq!((sample.cpus.len(), sample.cpus[&0]), (cpus, first), "{kernel}");
        assert_eq!(sample.paging.and_then(|paging| paging.in_kib), Some(paged_in), "{kernel}");
        assert_eq!(sample.memory.unwrap().available_bytes, available.map(|kib| kib << 10), "{kernel}");
        let found: Vec<&String> = sample.disks.iter().flat_map(BTreeMap::keys).collect();
        assert_eq!(found, disks, "{kernel}");
        assert_eq!(sample.pressure.memory.map(|stall| stall.some.0 / 1000), pressure, "{kernel}");
        assert_eq!(sample.pressure.cpu.and_then(|stall| stall.full), None, "{kernel}");
        let counters = [sample.interrupts, sample.context_switches, sample.forks, sample.runnable, sample.blocked];
        assert!(counters.iter().all(Option::is_some) && sample.softirqs.is_some(), "{kernel}: {sample:?}");
    }
}

#[test]
fn sources_say_what_is_absent_and_what_would_bring_it() {
    let mut old = Machine::of("3.10");
    old.read();
    assert!(old.source("pressure").starts_with("none: ") && old.source("pressure").contains("psi=1"));
    assert_eq!(old.source("memory"), "/proc/meminfo; available: none: it takes Linux 3.14 or later");
    assert_eq!(old.source("disk"), "/proc/diskstats: sda, sr0");
    let mut container = Machine::of("lxcfs");
    let sample = container.read();
    assert_eq!(container.source("disk"), "none: /proc/diskstats has no whole disk that counts its traffic");
    let later = KernelSample { cpus: [(0, ticks(40_311, 20_113, 902_113, 0, 0, 0))].into(), ..sample.clone() };
    let cpu = later.since(&sample, seconds(1.0)).cpu.unwrap();
    assert_eq!(
        (cpu.user, cpu.interrupt, cpu.io_wait),
        (1.0, None, None),
        "lxcfs writes 0 for counters that it does not know"
    );

    let mut bare = Machine::of("6.18");
    for file in ["vmstat", "meminfo", "diskstats"] {
        fs::remove_file(bare.path("proc").join(file)).unwrap();
    }
    bare.change("stat", &[("softirq", ""), ("cpu0", ""), ("cpu1", "")]);
    let sample = bare.read();
    let figures = sample.since(&sample, seconds(1.0));
    assert_eq!((figures.cpu, figures.paging, figures.memory, figures.disk), (None, None, None, None));
    assert_eq!(figures.interrupts, Some(Interrupts { all_per_s: Some(0.0), ..Interrupts::default() }));
    for kind in ["cpu", "paging", "memory", "disk"] {
        assert!(bare.source(kind).starts_with("none: "), "{}", bare.source(kind));
    }
    assert!(bare.source("interrupts").contains("network and disk: none"));
    fs::remove_file(bare.path("proc/stat")).unwrap();
    let error = KernelWatch::open(bare.root.path(), &[]).unwrap_err().to_string();
    assert!(error.contains("proc/stat") && error.contains("mount /proc"), "{error}");
}

#[test]
fn a_file_that_cannot_be_read_is_tried_again() {
    let mut machine = Machine::of("6.18");
    let cpu = machine.path("proc/pressure/cpu");
    let text = fs::read(&cpu).unwrap();
    fs::remove_file(&cpu).unwrap();
    fs::create_dir(&cpu).unwrap(); // this can be opened but not read, like a file whose serving program has ended
    assert_eq!(machine.read().pressure.cpu, None);
    fs::remove_dir(&cpu).unwrap();
    fs::write(&cpu, text).unwrap();
    assert!(machine.read().pressure.cpu.is_some());
}

#[test]
fn a_late_tick_gives_rates_and_not_sums() {
    let mut machine = Machine::of("6.18");
    let before = machine.read();
    // Both CPUs run for 3.7 s, which is 740 ticks of 10 ms in total.
    machine.change(
        "stat",
        &[
            ("cpu0", "cpu0 852519 42284 274747 1052293 26444 0 82726 4664 0 0\n"), // grew by 105, 150 and 115 ticks
            ("cpu1", "cpu1 632474 42999 315928 1055311 157947 0 91844 8004 0 0\n"), // grew by 296 and 74 ticks
            ("intr", "intr 64254673 0 0\n"),
            ("ctxt", "ctxt 115371330\n"),
            ("processes", "processes 560102\n"),
            ("procs_running", "procs_running 4\n"),
            ("softirq", "softirq 0 0 0 1782 358048787 1021985 0 0 0 0 0\n"),
        ],
    );
    machine.change("vmstat", &[("pgpgin", "pgpgin 151205997\n"), ("pgmajfault", "pgmajfault 172215\n")]);
    let vda = "254 0 vda 2877682 217865 302382786 5799735 191087 394876 154791584 692979 3 360130 6537829\n";
    machine.change("diskstats", &[("254", vda)]);
    machine.change("pressure/io", &[("some", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1807639335\n")]);
    let figures = machine.read().since(&before, seconds(3.7));

    let near = |found: Option<f64>, expected: f64| found.is_some_and(|found| (found - expected).abs() < 1e-6);
    let [first, second] = figures.cores.as_slice() else { panic!("{figures:?}") };
    assert!(near(Some(first.shares.user), 105.0 / 370.0) && near(Some(first.shares.system), 150.0 / 370.0));
    assert!(near(first.shares.interrupt, 50.0 / 370.0) && near(first.shares.io_wait, 50.0 / 370.0));
    assert!(near(Some(second.shares.steal), 0.2) && near(Some(second.shares.idle), 0.8));
    assert!(near(figures.cpu.map(|cpu| cpu.steal), 0.1) && figures.cpus == [0, 1]);
    assert_eq!((figures.runnable, figures.blocked), (Some(3), Some(1)), "the thread of this monitor is not counted");
    assert!(near(figures.context_switches_per_s, 2000.0) && near(figures.forks_per_s, 10.0));
    let interrupts = figures.interrupts.unwrap();
    assert!(near(interrupts.all_per_s, 1000.0) && near(interrupts.network_per_s, 100.0));
    assert!(near(interrupts.disk_per_s, 20.0), "{interrupts:?}");
    let paging = figures.paging.unwrap();
    let page_kib = rustix::param::page_size() as f64 / 1024.0;
    assert!(near(paging.page_ins_per_s, 4000.0 / page_kib) && near(paging.major_faults_per_s, 20.0), "{paging:?}");
    let disk = figures.disk.unwrap();
    assert!(near(Some(disk.reads_per_s), 10.0) && near(Some(disk.blocks_read_per_s), 160.0), "{disk:?}");
    assert!(near(Some(disk.utilization), 0.5) && near(Some(disk.queue_length), 2.0), "{disk:?}");
    let pressure = figures.pressure.unwrap();
    assert!(near(pressure.io.map(|io| io.some), 0.25) && pressure.cpu == Some(Stall { some: 0.0, full: None }));
}

#[test]
fn counters_of_32_bits_wrap() {
    let mut machine = Machine::of("3.10");
    let sda = |io: &str| format!("8 0 sda {io}\n");
    machine.change("stat", &[("softirq", "softirq 1 3 812345 120 4294967200 4294967290 0 4021 301222 0 402111\n")]);
    machine.change("diskstats", &[("8       0", &sda("7 0 4294967000 9 8 0 50 9 0 4294967200 4294966296"))]);
    let before = machine.read();
    machine
        .change("stat", &[("intr", "intr 704 132\n"), ("softirq", "softirq 1 3 812345 121 103 4 0 4021 301222 0 4\n")]);
    machine.change("diskstats", &[("8 0", &sda("17 0 704 9 8 0 50 9 0 404 1000"))]);
    let figures = machine.read().since(&before, seconds(1.0));
    let interrupts = figures.interrupts.unwrap();
    assert_eq!((interrupts.all_per_s, interrupts.network_per_s), (Some(1000.0), Some(200.0)));
    assert_eq!(interrupts.disk_per_s, Some(10.0));
    let expected =
        Disk { reads_per_s: 10.0, blocks_read_per_s: 1000.0, utilization: 0.5, queue_length: 2.0, ..Disk::default() };
    assert_eq!(figures.disks["sda"], expected);
}

#[test]
fn cpus_come_and_go() {
    let mut machine = Machine::of("6.1-96-cpus");
    let before = machine.read();
    // CPU 3 goes offline. CPU 12 comes online with large counters. CPU 0 was busy for a second. CPU 5 was offline for a
    // moment between the samples.
    machine.change(
        "stat",
        &[
            ("cpu0 ", "cpu0 1831927 293 142291 28137530 4286 0 603 0 0 0\n"),
            ("cpu3 ", "cpu12 9000000 0 9000000 90000000 0 0 0 0 0 0\n"),
            ("cpu5 ", "cpu5 1379731 409 314929 12 0 0 1536 0 96 0\n"),
        ],
    );
    let after = machine.read();
    let figures = after.since(&before, seconds(1.0));
    let expected: Vec<usize> = (0..96).filter(|cpu| ![3, 5].contains(cpu) && !(12..16).contains(cpu)).collect();
    assert_eq!(figures.cpus, expected);
    let cpu = figures.cpu.unwrap();
    assert_eq!((cpu.user, cpu.system, cpu.idle), (0.5, 0.5, 0.0));
    assert_eq!(after.since(&after, seconds(0.001)).cpu, None, "no tick fell into the period");

    let mut one = Machine::watching("6.1-96-cpus", &[3, 12]);
    assert_eq!(one.read().cpus.into_keys().collect::<Vec<_>>(), [3]);
    assert_eq!(one.source("cpu"), "/proc/stat, CPUs 3,12");
    one.change("stat", &[("cpu3 ", "")]);
    assert!(one.read().cpus.is_empty());
    assert_eq!(one.source("cpu"), "none: CPUs 3,12 are offline: echo 1 | sudo tee /sys/devices/system/cpu/cpu3/online");
}

#[test]
fn time_asleep_is_no_time() {
    let mut machine = Machine::of("5.10");
    let mut sample = |at, suspended| {
        let groups = PerGroup { kernel: Some(machine.read()), ..PerGroup::default() };
        let sample = Sample { at: seconds(at), suspended: seconds(suspended), groups, ..Sample::default() };
        // CPU 0 ran for a second. CPU 1 was taken offline for a suspension and has been online again for half a second.
        // The idle time of CPU 1 starts again.
        machine.change(
            "stat",
            &[
                ("cpu0", "cpu0 1201147 90211 402113 9012419 30122 0 40211 2011 0 0\n"),
                ("cpu1", "cpu1 1198212 88012 398877 50 0 0 9012 1987 0 0\n"),
                ("ctxt", "ctxt 802114344\n"),
            ],
        );
        machine.change("pressure/memory", &[("some", "some avg10=0.00 avg60=0.00 avg300=0.00 total=502113\n")]);
        sample
    };
    let (evening, morning) = (sample(5000.0, 10.0), sample(5001.0, 28_810.0));
    let kernel = Rates::between(&evening, &morning).kernel.unwrap();
    assert_eq!((kernel.length(), kernel.suspended), (seconds(1.0), seconds(28_800.0)));
    let figures = kernel.metrics;
    assert_eq!((figures.cpus, figures.cpu.unwrap().user), (vec![0], 0.25));
    assert_eq!(figures.context_switches_per_s, Some(1000.0));
    let Pressure { memory, .. } = figures.pressure.unwrap();
    assert_eq!(memory, Some(Stall { some: 0.1, full: Some(0.0) }));
}

#[test]
fn a_disk_is_unplugged_and_another_takes_its_place() {
    let mut machine = Machine::of("4.19");
    let before = machine.read();
    machine.change("diskstats", &[("8      16", ""), ("8      17", "")]);
    fs::remove_dir_all(machine.path("sys/block/sdb")).unwrap();
    let without = machine.read();
    machine.change("diskstats", &[("9       0", "8 16 sdb 10 0 80 1 2 0 16 1 0 4 4 0 0 0 0\n")]);
    fs::create_dir_all(machine.path("sys/block/sdb/queue")).unwrap();
    let with = machine.read();
    machine.change("diskstats", &[("8 16", "8 16 sdb 14 0 112 1 2 0 16 1 0 4 4 0 0 0 0\n")]);
    let later = machine.read();
    let disks = |from: &KernelSample, to: &KernelSample| to.since(from, seconds(2.0)).disks;
    assert_eq!(disks(&before, &without).into_keys().collect::<Vec<_>>(), ["sda"]);
    assert_eq!(
        disks(&without, &with).into_keys().collect::<Vec<_>>(),
        ["sda"],
        "the rates of a new disk begin with the next sample"
    );
    assert_eq!(disks(&with, &later)["sdb"].blocks_read_per_s, 16.0);
    assert_eq!(
        disks(&before, &later).into_keys().collect::<Vec<_>>(),
        ["sda"],
        "a disk whose counters were reset is another disk"
    );
}
