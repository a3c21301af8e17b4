//! Tests the group `process` with real processes, for each of its sources. Root is needed for eBPF, for cgroups and for
//! choosing a pid.

use crate::{BURN, OWN_NS, Shell, TEST_TIMEOUT, copy_of_sleep, listener, near, open_socket, wait_for};
use brimful_core::server::Program;
use brimful_monitor::{
    GroupName, Intervals, Monitor, MonitorConfig, ProcessSelector, ProgramSample, Rates, Sample, Sampler,
};
use brimful_monitor::{NetNamespace, listener_owners, online_cpus};
use rustix::net::{bind, listen, sockopt};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddrV4;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Whether to use eBPF: each test runs once with eBPF (if it is built in), and once with /proc only.
const SOURCES: &[bool] = if cfg!(feature = "ebpf") { &[true, false] } else { &[false] };

/// A process in a process group of its own. On drop, the group is killed.
struct Killed(Child);

impl Killed {
    fn start(command: &mut Command) -> Killed {
        Killed(command.stdout(Stdio::null()).process_group(0).spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// A sampler that watches only processes.
fn watch(selectors: &[ProcessSelector], ebpf: bool) -> Sampler {
    let mut intervals = Intervals::uniform(brimful_core::Nanos::from_millis(100));
    for group in [GroupName::Kernel, GroupName::Network, GroupName::Connections] {
        intervals.set(group, None);
    }
    let config = MonitorConfig { processes: selectors.to_vec(), intervals, ebpf, ..MonitorConfig::default() };
    let sampler = Sampler::open(&config).unwrap();
    assert!(!ebpf || !source(&sampler).contains("/proc"), "run these tests as root: {}", source(&sampler));
    sampler
}

fn source(sampler: &Sampler) -> String {
    sampler.sources().remove("process").unwrap()
}

fn programs(sampler: &mut Sampler) -> Vec<ProgramSample> {
    sampler.sample().groups.process.unwrap()
}

fn program(sampler: &mut Sampler) -> ProgramSample {
    programs(sampler).remove(0)
}

/// The metrics of the only program between two samples.
fn between(from: &Sample, to: &Sample) -> Program {
    Rates::between(from, to).process.unwrap().metrics.process.remove(0)
}

/// Takes samples until the program has the expected state. It may take seconds, because searches through /proc pause.
fn until(sampler: &mut Sampler, expected: impl Fn(&ProgramSample) -> bool) -> ProgramSample {
    let begun = Instant::now();
    loop {
        let program = program(sampler);
        if expected(&program) {
            return program;
        }
        assert!(
            begun.elapsed() < TEST_TIMEOUT,
            "timed out waiting for the expected state: {program:?}, {}",
            source(sampler)
        );
        sleep(Duration::from_millis(5));
    }
}

/// A cgroup for one test. In version 1 of cgroups, the hierarchy for CPU time is used; version 2 has only one
/// hierarchy.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new(name: &str) -> Cgroup {
        let hierarchies = ["/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"];
        let hierarchy = hierarchies.iter().map(Path::new).find(|path| path.join("cgroup.procs").exists()).unwrap();
        let path = hierarchy.join(format!("brimful-test-{}-{name}", std::process::id()));
        fs::create_dir(&path).expect("this test must run as root, where cgroups can be made");
        Cgroup(path)
    }

    fn name(&self) -> PathBuf {
        self.0.file_name().unwrap().into()
    }

    fn add(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    /// CPU time of all processes that have ever been in the cgroup, in nanoseconds.
    fn cpu_ns(&self) -> u64 {
        if let Ok(usage) = fs::read_to_string(self.0.join("cpuacct.usage")) {
            return usage.trim().parse().unwrap();
        }
        let stat = fs::read_to_string(self.0.join("cpu.stat")).unwrap();
        let us = stat.lines().find_map(|line| line.strip_prefix("usage_usec ")).unwrap();
        us.parse::<u64>().unwrap() * 1000
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The cgroup cannot be removed until its last process has left it, which may take a moment.
        for _ in 0..1000 {
            if fs::remove_dir(&self.0).is_ok() {
                break;
            }
            sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn cpu_time_of_a_child_is_that_of_the_scheduler() {
    let mut shell = Shell::start();
    let mut tree = shell.tree();
    // At the start and at the end, the shell's CPU time is read first and the monitor's second, so both measure equally
    // long.
    let (own_before, before) = (shell.run(OWN_NS), tree.cpu_reading());
    shell.run(&format!("{BURN}; echo 0"));
    let burnt = shell.run(OWN_NS) - own_before;
    let used = tree.cpu_reading().cpu.minus(before.cpu);
    assert!(burnt > 20_000_000, "only {burnt} ns burnt: too little to compare");
    assert!(near(used.total.0, burnt, 0.03), "{} ns measured, {burnt} ns burnt", used.total.0);
    assert!(used.user.0 > used.total.0 / 2, "a loop runs in user mode: {used:?}");
}

#[test]
fn cpu_time_of_a_grandchild_that_came_and_went_is_counted() {
    let mut shell = Shell::start();
    let mut tree = shell.tree();
    let before = tree.cpu_ns();
    let burnt = shell.run(&format!("(x=$(:); {BURN}; {OWN_NS})"));
    shell.run("echo 0"); // by now the shell has waited for its child
    let used = tree.cpu_ns() - before;
    // The error is at most one clock tick (usually 10 ms) for user mode and one for the kernel.
    assert!(used.abs_diff(burnt) <= 25_000_000, "{used} ns measured, {burnt} ns burnt");
}

#[test]
fn a_live_descendant_is_found_and_kept_when_it_ends() {
    let mut shell = Shell::start();
    let mut tree = shell.tree();
    let child = shell.run("sleep 600 & echo $!") as u32;
    tree.cpu_ns();
    let with_child = tree.pids();
    shell.run(&format!("kill {child}; wait {child}; echo 0"));
    tree.cpu_ns();
    assert_eq!(with_child, [shell.pid().min(child), shell.pid().max(child)]);
    assert_eq!(tree.pids(), [shell.pid()]);
}

#[test]
fn workers_that_come_and_go_count_once() {
    for &ebpf in SOURCES {
        let cgroup = Cgroup::new("workers");
        let mut shell = Shell::start();
        cgroup.add(shell.pid());
        shell.run("echo 0");
        let mut sampler = watch(&[ProcessSelector::Pid(shell.pid())], ebpf);
        let (before, first) = (cgroup.cpu_ns(), program(&mut sampler));
        let burn = "(i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done) &";
        let round = format!("{burn} {burn} {burn} {burn} wait; ");
        let mut last = first.clone();
        std::thread::scope(|scope| {
            let workers = scope.spawn(|| shell.run(&format!("{}echo 1", round.repeat(8))));
            // While processes start and end, samples are taken as fast as possible, and no counter may decrease.
            while !workers.is_finished() {
                let now = program(&mut sampler);
                assert!(now.cpu.total >= last.cpu.total && now.cpu.user >= last.cpu.user, "{last:?} {now:?}");
                assert!(now.context_switches >= last.context_switches && now.run_queue_wait >= last.run_queue_wait);
                let here = now.started - first.started - (now.ended - first.ended);
                assert_eq!(now.pids.len() as u64, 1 + here);
                last = now;
            }
        });
        // With /proc the error is at most a clock tick, because the kernel counts the CPU time of children in ticks.
        let used = program(&mut sampler).cpu.total.0 - first.cpu.total.0;
        let truth = cgroup.cpu_ns() - before;
        let tolerance = if ebpf { 2_000_000 } else { 20_000_000 };
        assert!(truth > 100_000_000, "too little to compare: {truth} ns");
        assert!(used.abs_diff(truth) < tolerance + truth / 50, "eBPF {ebpf}: {used} ns measured, {truth} ns used");
    }
}

#[test]
fn a_program_is_waited_for_followed_to_its_end_and_found_again() {
    for &ebpf in SOURCES {
        let directory = tempfile::tempdir().unwrap();
        let name = format!("late-{}-{ebpf}", std::process::id());
        copy_of_sleep(directory.path(), &name);
        let selector: ProcessSelector = name.parse().unwrap();
        let mut sampler = watch(std::slice::from_ref(&selector), ebpf);
        let waits = format!("waiting: no process named `{name}` is running yet (looked for at ");
        assert!(source(&sampler).starts_with(&waits), "{}", source(&sampler));
        let strict = MonitorConfig { processes: vec![selector], ebpf, ..MonitorConfig::default() };
        assert!(Monitor::start(strict).unwrap_err().to_string().contains(&name));
        assert!(program(&mut sampler).pids.is_empty());

        for run in 1..3 {
            // The process is a shell until it executes a program with another name.
            let script = format!("read -r go; exec {}/{name} 60", directory.path().display());
            let mut child = Killed::start(Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()));
            for _ in 0..3 {
                assert!(program(&mut sampler).pids.is_empty(), "the process does not have this name yet");
            }
            writeln!(child.0.stdin.as_mut().unwrap(), "go").unwrap();
            let found = until(&mut sampler, |program| !program.pids.is_empty());
            assert_eq!((&*found.name, &*found.pids), (name.as_str(), &[child.pid()][..]));
            assert_eq!((found.started, found.ended, found.threads), (run, run - 1, 1));
            assert!(!source(&sampler).contains("waiting"), "{}", source(&sampler));
            let cpu = found.cpu;
            drop(child);
            let ended = program(&mut sampler);
            assert_eq!((ended.pids.len(), ended.started, ended.ended), (0, run, run));
            assert!(ended.cpu.total >= cpu.total, "the usage of the ended process stays");
            let says = format!("waiting: the last process named `{name}` has ended");
            assert!(source(&sampler).starts_with(&says), "{}", source(&sampler));
        }
    }
}

/// Starts a shell with this title, and one child that ends when the pipe is closed. The kernel's name of the shell is
/// still `sh`. PHP-FPM is similar: its title begins with `php-fpm`, but the kernel's name of it is `php-fpm8.2`.
fn titled(title: &str) -> Killed {
    Killed::start(Command::new("sh").arg0(title).args(["-c", "exec 3<&0; cat <&3 & wait"]).stdin(Stdio::piped()))
}

#[test]
fn a_process_is_found_by_the_title_it_gives_itself_with_its_workers() {
    for &ebpf in SOURCES {
        let name = format!("fpm-{}-{ebpf}", std::process::id());
        let first = titled(&format!("{name}: master process (/etc/php/fpm.conf)"));
        let mut sampler = watch(&[ProcessSelector::Name(name.clone())], ebpf);
        let with_worker = until(&mut sampler, |program| program.pids.len() == 2);
        assert!(with_worker.pids.contains(&first.pid()), "{with_worker:?}");
        let second = titled(&format!("/usr/sbin/{name} --nodaemonize"));
        until(&mut sampler, |program| program.pids.contains(&second.pid()));
        // Neither a longer first word nor a later word of the title is a name of the process.
        for other in [format!("{name}8.2: master process"), format!("run {name}")] {
            let other = titled(&other);
            let third = titled(&name);
            let all = until(&mut sampler, |program| program.pids.contains(&third.pid()));
            assert!(!all.pids.contains(&other.pid()), "{all:?}");
        }
        // The process is still found by the kernel's name.
        let mut sampler = watch(&[ProcessSelector::Name("sh".to_owned())], ebpf);
        assert!(program(&mut sampler).pids.contains(&first.pid()));
    }
}

#[test]
fn a_title_that_comes_after_the_start_is_seen() {
    for &ebpf in SOURCES {
        let name = format!("late-title-{}-{ebpf}", std::process::id());
        let mut sampler = watch(&[ProcessSelector::Name(name.clone())], ebpf);
        // The process gets a new title, but the kernel's name of the process stays the same.
        let script = format!("read -r go; exec -a '{name}: master' bash -c 'read -r end'");
        let mut child = Killed::start(Command::new("bash").args(["-c", &script]).stdin(Stdio::piped()));
        for _ in 0..3 {
            assert!(program(&mut sampler).pids.is_empty(), "the process does not have this title yet");
        }
        writeln!(child.0.stdin.as_mut().unwrap(), "go").unwrap();
        let found = until(&mut sampler, |program| !program.pids.is_empty());
        assert_eq!(*found.pids, [child.pid()]);
    }
}

/// Some servers start and end children under load, for example PHP-FPM with `pm = ondemand` and Apache. New children
/// must be watched too.
#[test]
fn workers_started_on_demand_after_the_watch_began_are_followed() {
    for &ebpf in SOURCES {
        let mut shell = Shell::start();
        let mut sampler = watch(&[ProcessSelector::Pid(shell.pid())], ebpf);
        let first = program(&mut sampler);
        assert_eq!(*first.pids, [shell.pid()]);
        let worker = shell.run(&format!("(read -r go < /dev/null; {BURN}; exec sleep 600) & echo $!")) as u32;
        let now = until(&mut sampler, |program| program.pids.contains(&worker));
        assert_eq!((now.started - first.started, now.pids.len()), (1, 2));
        // The worker's usage must be counted while it lives, and must stay counted after it has ended.
        let with_cpu = until(&mut sampler, |program| program.cpu.total.0 > first.cpu.total.0 + 1_000_000);
        shell.run(&format!("kill {worker}; wait {worker}; echo 0"));
        let ended = until(&mut sampler, |program| program.pids.len() == 1);
        assert!(ended.cpu.total >= with_cpu.cpu.total && ended.ended == first.ended + 1, "{ended:?}");
    }
}

#[test]
fn a_zombie_has_ended_and_what_it_used_stays() {
    for &ebpf in SOURCES {
        // The shell executes a program that never waits for its child. Shells give jobs in the background an empty
        // stdin.
        let mut parent = Command::new("sh");
        let parent =
            parent.args(["-c", &format!("exec 3<&0; (read -r go; {BURN}) <&3 & exec sleep 600")]).stdin(Stdio::piped());
        let mut parent = Killed::start(parent);
        let mut sampler = watch(&[ProcessSelector::Pid(parent.pid())], ebpf);
        let before = until(&mut sampler, |program| program.pids.len() == 2);
        writeln!(parent.0.stdin.as_mut().unwrap(), "go").unwrap();
        let after = until(&mut sampler, |program| program.pids.len() == 1);
        let zombie = before.pids[1];
        let stat = fs::read_to_string(format!("/proc/{zombie}/stat")).unwrap();
        assert!(stat.contains(") Z "), "{stat}");
        assert_eq!((after.ended - before.ended, after.threads), (1, 1));
        let used = after.cpu.total.0 - before.cpu.total.0;
        assert!(used > 20_000_000, "{used} ns of about 100 ms");
        for _ in 0..10 {
            let now = program(&mut sampler);
            assert_eq!((now.pids.len(), now.started, now.ended), (1, after.started, after.ended));
            assert!(now.cpu.total >= after.cpu.total && now.cpu.total.0 - after.cpu.total.0 < 5_000_000);
        }
    }
}

#[test]
fn another_process_under_the_same_number_is_another() {
    for &ebpf in SOURCES {
        let first = Killed::start(Command::new("sleep").arg("600"));
        let pid = first.pid();
        let mut sampler = watch(&[ProcessSelector::Pid(pid), ProcessSelector::Name("sleep".to_owned())], ebpf);
        let before = programs(&mut sampler);
        assert_eq!(&*before[0].pids, [pid]);
        drop(first);
        // The next process gets the next pid, unless another test starts a process in between. So this is repeated.
        let second = wait_for("a process with the same pid", || {
            fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).expect("this test must run as root");
            let child = Killed::start(Command::new("sleep").arg("600"));
            (child.pid() == pid).then_some(child)
        });
        // Until exec, the child has the name of this test's process.
        while fs::read_to_string(format!("/proc/{pid}/comm")).unwrap() != "sleep\n" {}
        let now =
            wait_for("successor", || Some(programs(&mut sampler)).filter(|programs| programs[1].pids.contains(&pid)));
        assert_eq!((now[0].pids.len(), now[0].ended), (0, 1), "the pid of a successor does not match");
        assert!(now[1].started > before[1].started, "eBPF {ebpf}: {before:?} {now:?}");
        assert!(source(&sampler).contains(&format!("the process with pid {pid} has ended")), "{}", source(&sampler));
        drop(second);
    }
}

#[test]
fn two_that_share_a_cpu_wait_while_the_other_runs() {
    for &ebpf in SOURCES {
        let cpu = online_cpus().last().unwrap().to_string();
        let burner = || Killed::start(Command::new("taskset").args(["-c", &cpu, "sh", "-c", "while :; do :; done"]));
        let burners = [burner(), burner()];
        let selectors = burners.each_ref().map(|burner| ProcessSelector::Pid(burner.pid()));
        let mut sampler = watch(&selectors, ebpf);
        for burner in &burners {
            while fs::read_to_string(format!("/proc/{}/comm", burner.pid())).unwrap() != "sh\n" {}
        }
        let first = sampler.sample();
        sleep(Duration::from_millis(800));
        // The process always runs or waits for a CPU, so the run time and the wait time must add up to the period. A
        // wait counts only when it has ended, and with /proc the value is older than the sample. The longer the period,
        // the smaller the error.
        let stretch = wait_for("run time and wait time that add up to the period", || {
            let stretch = Rates::between(&first, &sampler.sample()).process.unwrap();
            let seconds = stretch.length().as_secs_f64();
            let accounted = |process: &Program| process.run_queue_wait_s.unwrap() + process.cpu_s;
            let is_whole = |process: &Program| {
                (accounted(process) - seconds).abs() < 0.1 * seconds && process.context_switches > Some(10)
            };
            stretch.metrics.process.iter().all(is_whole).then_some(stretch)
        });
        let seconds = stretch.length().as_secs_f64();
        for process in &stretch.metrics.process {
            let waited = process.run_queue_wait_s.unwrap();
            assert!(waited > 0.4 * seconds, "eBPF {ebpf}: waited {waited} s of {seconds} s: {process:?}");
            assert_eq!((process.running, process.threads, process.processes), (Some(1), Some(1), 1));
            assert!(process.memory_share.is_some_and(|share| share > 0.0 && share < 0.1), "{process:?}");
        }
    }
}

#[test]
fn threads_are_told_from_processes() {
    for &ebpf in SOURCES {
        let script = "
import threading, sys
threads = [threading.Thread(target=sys.stdin.readline) for _ in range(4)]
for thread in threads: thread.start()
print('ready', flush=True)";
        let mut command = Command::new("python3");
        let mut child = command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let child = Killed(child);
        let mut sampler = watch(&[ProcessSelector::Pid(child.pid())], ebpf);
        let program = until(&mut sampler, |program| program.running == 0);
        assert_eq!((program.threads, &*program.pids), (5, &[child.pid()][..]));
    }
}

/// A Python program. For each line of its input, it reads every page of a file that is not in memory, and prints the
/// number of its own major faults so far.
const FAULTS: &str = "\
import mmap, os, resource, sys
file = os.open(sys.argv[1], os.O_RDONLY)
for line in sys.stdin:
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    map = mmap.mmap(file, 0, prot=mmap.PROT_READ)
    map.madvise(mmap.MADV_RANDOM)
    sum(map[at] for at in range(0, len(map), mmap.PAGESIZE))
    map.close()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_majflt, flush=True)";

#[test]
fn major_faults_are_those_of_the_kernel_and_stay_when_the_process_has_ended() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (path, script) = (directory.path().join("cold"), directory.path().join("faults.py"));
    fs::write(&script, FAULTS).unwrap();
    let file = fs::File::create(&path).unwrap();
    (&file).write_all(&[1; 64 << 12]).unwrap();
    file.sync_all().unwrap();
    for &ebpf in SOURCES {
        let mut shell = Shell::start();
        let mut sampler = watch(&[ProcessSelector::Pid(shell.pid())], ebpf);
        let before = sampler.sample();
        // The program ends when its input ends, which is after one line.
        let first = shell.run(&format!("echo go | python3 {} {}", script.display(), path.display()));
        shell.run("echo 0"); // by now the shell has waited for the program
        let seen = between(&before, &sampler.sample()).major_faults.unwrap();
        assert!(first >= 32, "only {first} of 64 pages had to be read: is {} on a disk?", path.display());
        assert!(seen >= first && seen < first + 32, "eBPF {ebpf}: {seen} seen of {first}");
    }
}

#[test]
fn the_owner_of_a_port_is_waited_for_and_found_again_when_it_changes_hands() {
    for &ebpf in SOURCES {
        let (fd, address) = listener(8);
        drop(fd);
        let port = address.port();
        let selector: ProcessSelector = format!("port:{port}").parse().unwrap();
        let mut sampler = watch(std::slice::from_ref(&selector), ebpf);
        let says = source(&sampler);
        assert!(says.starts_with(&format!("waiting: no process that listens on TCP port {port}")), "{says}");
        assert!(says.contains("nothing listens there"), "{says}");
        let strict =
            MonitorConfig { processes: vec![selector], netns: NetNamespace::Own, ebpf, ..MonitorConfig::default() };
        let error = Monitor::start(strict).unwrap_err().to_string();
        assert!(error.contains("nothing listens there") && error.contains("--process"), "{error}");

        let server = || {
            let fd = open_socket(rustix::net::SocketFlags::empty());
            sockopt::set_socket_reuseport(&fd, true).unwrap();
            bind(&fd, &SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port)).unwrap();
            listen(&fd, 8).unwrap();
            Killed::start(Command::new("sh").args(["-c", "sleep 600 & wait"]).stdin(fd))
        };
        let first = server();
        let found = until(&mut sampler, |program| program.pids.len() == 2);
        assert!(found.pids.contains(&first.pid()) && &*found.name != format!("port:{port}").as_str(), "{found:?}");
        let second = server();
        let both = until(&mut sampler, |program| program.pids.contains(&second.pid()));
        assert!(both.pids.contains(&first.pid()));
        drop(first);
        drop(second);
        until(&mut sampler, |program| program.pids.iter().all(|pid| !both.pids.contains(pid)) || program.ended > 0);
    }
}

#[test]
fn a_server_of_two_ports_is_one_program() {
    for &ebpf in SOURCES {
        let ((first, first_at), (second, second_at)) = (listener(8), listener(8));
        let server = Killed::start(Command::new("sleep").arg("600").stdin(first).stderr(second));
        let processes = vec![ProcessSelector::Port(first_at.port()), ProcessSelector::Port(second_at.port())];
        wait_for("a single owner", || (listener_owners(second_at.port()).ok()? == [server.pid()]).then_some(()));
        let config = MonitorConfig { processes, ebpf, ..MonitorConfig::default() };
        let seen = Monitor::start(config).unwrap().finish(brimful_core::Nanos::ZERO, None);
        let pids: Vec<&[u32]> = seen.process.iter().map(|program| &*program.pids).collect();
        assert_eq!(pids, [&[server.pid()][..]], "eBPF {ebpf}");
        assert!(!seen.sources["process"].contains("waiting"), "{}", seen.sources["process"]);
    }
}

#[test]
fn a_cgroup_is_everybody_in_it_and_below_it() {
    for &ebpf in SOURCES {
        let cgroup = Cgroup::new("selected");
        let selector: ProcessSelector = format!("cgroup:{}", cgroup.name().display()).parse().unwrap();
        let mut older = Shell::start();
        let burnt = older.run(&format!("{BURN}; {OWN_NS}"));
        let mut sampler = watch(&[selector], ebpf);
        assert!(source(&sampler).starts_with("waiting: no process in cgroup brimful-test-"), "{}", source(&sampler));
        cgroup.add(older.pid());
        let found = until(&mut sampler, |program| !program.pids.is_empty());
        assert_eq!((&*found.pids, found.started), (&[older.pid()][..], 0));
        assert!(found.cpu.total.0 < burnt / 2, "usage from before the watch is not counted");

        let below = Cgroup(cgroup.0.join("below"));
        fs::create_dir(&below.0).unwrap();
        let mut newer = Shell::start();
        below.add(newer.pid());
        newer.run("echo 0");
        let both = until(&mut sampler, |program| program.pids.len() == 2);
        assert!(both.pids.contains(&newer.pid()) && both.started == 1, "{both:?}");
        let before = newer.run(OWN_NS);
        newer.run(&format!("{BURN}; echo 0"));
        let used = newer.run(OWN_NS) - before;
        let now = program(&mut sampler).cpu.total.0 - both.cpu.total.0;
        assert!(near(now, used, 0.1), "{now} ns measured, {used} ns used");
        drop((older, newer));
        let ended = program(&mut sampler);
        assert_eq!((ended.pids.len(), ended.ended), (0, 2));
        drop(below);
    }
}
