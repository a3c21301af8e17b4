//! Tests the test bed with real programs in it. The tests need root or user namespaces, `/dev/net/tun` and iproute2;
//! without these, they fail and say so. Times are only compared with lower bounds.

use crate::documents;
use crate::program::{Done, Running, brimful, lock_machine_shared, run, wait_until};
use brimful_core::record::Record;
use brimful_core::testbed::Testbed;
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Shell commands that start a server on the host `server`, and wait until it listens. `$B` is the program brimful.
const SERVE: &str = "ip netns exec server $B target --listen {server}:80 --service 'page=100us/64KiB' > target.log & \
                     until grep -q listening target.log; do sleep 0.05; done; ";

/// Accepted exit codes of a load: success (0), or a late load generator on a busy machine (4).
const LOADED: [i32; 2] = [0, 4];

/// Runs a script in a test bed, in a temporary directory. Returns the outcome, the test bed's document and the
/// directory.
fn bed(flags: &[&str], script: &str) -> (Done, Testbed, TempDir) {
    let _machine = lock_machine_shared();
    let directory = tempfile::tempdir().unwrap();
    let done = Running::start(bed_in(directory.path(), flags, script)).finish();
    let text = fs::read_to_string(directory.path().join("bed.json"));
    let document = serde_json::from_str(&text.unwrap_or_else(|error| panic!("{error}: {done:#?}"))).unwrap();
    (done, document, directory)
}

fn bed_in(directory: &Path, flags: &[&str], script: &str) -> Command {
    let fixed = ["--out", "bed.json", "--", "sh", "-c", script];
    let mut command = brimful(&[&["testbed"], flags, &fixed].concat());
    command.current_dir(directory).env("B", env!("CARGO_BIN_EXE_brimful"));
    command
}

fn record(directory: &TempDir, name: &str) -> Record {
    documents::record(&fs::read_to_string(directory.path().join(name)).unwrap())
}

#[test]
fn connections_have_the_given_round_trip_times() {
    let load = "for c in $BRIMFUL_CLIENTS; do \
                ip netns exec $c $B load http://{server}/ -n 20 --rate 50 --new-connection --json > $c.json; done";
    let (done, document, directory) = bed(&["--clients", "2", "--rtt", "30ms..60ms"], &format!("{SERVE}{load}"));
    done.exits(&LOADED);
    for (client, least_us) in document.clients.iter().zip([30_000.0, 60_000.0]) {
        assert_eq!(client.rtt_s.map(|rtt| (rtt * 1e6).round()), [least_us; 2]);
        let record = record(&directory, &format!("{}.json", client.host.name));
        assert_eq!(record.counts.completed, 20, "{record:#?}");
        // Connecting takes one round trip, and a request takes at least another.
        for times in [record.connect_time_us, record.first_byte_us] {
            // An error of 0.2 % is tolerated.
            assert!(times.unwrap().min >= least_us * 0.998, "{times:?}");
        }
        assert!(client.up.packets >= 20 * 4 && client.down.bytes >= 20 * 65_536, "{client:#?}");
        assert_eq!((client.up.lost_packets, client.down.queue_full_packets, client.host.unread_packets), (0, 0, 0));
    }
    assert_eq!(document.router.delivered_packets, document.router.late_us.unwrap().count);
    assert!(document.seed > 0 && document.duration_s > 0.0);
}

/// If the timeout T of an S-Client is shorter than the round trip, every attempt is abandoned (Banga & Druschel 1997,
/// §4.2).
#[test]
fn a_connect_timeout_below_the_round_trip_is_named_as_the_cause() {
    let load = "ip netns exec client1 $B load http://{server}/ --s-clients 4 --connect-timeout 50ms -d 1s";
    let (done, ..) = bed(&["--rtt", "100ms"], &format!("{SERVE}{load}"));
    let said = done.exits(&[2]).stderr;
    assert!(said.contains("--connect-timeout 50 ms is shorter than the round trip to 198.18.0.1:80"), "{said}");
    assert!(said.contains(": a connection takes 1") && said.contains("raise it above this time"), "{said}");
}

/// The load by one client host is compared with the load by two, at a real server (Banga & Druschel 1997, §4.3). Two
/// hosts that run the shards of one schedule must send nginx the same requests as a single host.
#[test]
fn two_client_hosts_make_the_requests_of_one_at_nginx() {
    let nginx = "printf '%s' \"daemon off; pid $PWD/pid; error_log $PWD/error.log; events { } \
                 http { access_log off; client_body_temp_path $PWD/body; proxy_temp_path $PWD/proxy; \
                 fastcgi_temp_path $PWD/fastcgi; scgi_temp_path $PWD/scgi; uwsgi_temp_path $PWD/uwsgi; \
                 server { listen {server}:80; location / { return 200 page; } } }\" > nginx.conf; \
                 ip netns exec server nginx -e $PWD/error.log -c $PWD/nginx.conf & \
                 until ip netns exec client1 $B load http://{server}/ -n 1 --quiet; do sleep 0.05; done; ";
    let load = "load http://{server}/ --s-clients 20 --connect-timeout 5s --rate 50 --arrivals poisson --seed 7 -d 1s";
    let loads = format!(
        "ip netns exec client1 $B {load} --json > one.json; \
         ip netns exec client1 $B {load} --shard 1/2 --json > first.json & first=$!; \
         ip netns exec client2 $B {load} --shard 2/2 --json > second.json; wait $first"
    );
    let (done, _, directory) = bed(&["--clients", "2"], &format!("{nginx}{loads}"));
    done.exits(&LOADED);
    let [one, first, second] = ["one.json", "first.json", "second.json"].map(|name| record(&directory, name).counts);
    assert!(one.scheduled > 20 && one.established == one.scheduled, "{one:#?}");
    assert_eq!(first.scheduled + second.scheduled, one.scheduled);
    assert_eq!(first.status.s2xx + second.status.s2xx, one.status.s2xx, "{first:#?} {second:#?}");
    assert!(first.scheduled.abs_diff(second.scheduled) <= 1);
}

#[test]
fn the_server_of_a_test_bed_can_be_watched() {
    let watch = "$B watch --netns server --port 80 --interval 100ms --duration 1s --json > watched.json & watch=$!; \
                 ip netns exec client1 $B load http://{server}/ -n 20 --rate 50 --new-connection --quiet; wait $watch";
    let (done, _, directory) = bed(&[], &format!("{SERVE}{watch}"));
    done.exits(&LOADED);
    let watched = fs::read_to_string(directory.path().join("watched.json")).unwrap();
    let watched: serde_json::Value = serde_json::from_str(&watched).unwrap();
    let listener = &watched["listener"];
    assert!(listener["accepted_per_s"].as_f64().is_some_and(|rate| rate > 1.0), "{listener}");
}

#[test]
fn connections_survive_loss_and_reordering() {
    let load = "ip netns exec client1 $B load http://{server}/ -n 40 --rate 40 --new-connection --json \
                --timeout 60s --connect-timeout 60s > load.json";
    let flags = ["--rtt", "4ms", "--loss", "3%", "--reorder", "3%", "--seed", "3"];
    let (done, document, directory) = bed(&flags, &format!("{SERVE}{load}"));
    let said = done.exits(&LOADED).stderr;
    assert_eq!(record(&directory, "load.json").counts.completed, 40);
    let client = &document.clients[0];
    assert!(client.up.lost_packets + client.down.lost_packets > 0, "{client:#?}");
    assert!(client.up.reordered_packets + client.down.reordered_packets > 0, "{client:#?}");
    assert!(said.contains("testbed: seed 3; the router forwarded") && said.contains("lost by --loss"), "{said}");
    assert_eq!((document.seed, document.link.loss), (3, 0.03));
}

#[test]
fn the_rate_limits_throughput_and_the_queue_limits_waiting() {
    let load = "ip netns exec client1 $B load http://{server}/ -n 1 --rate 10 --timeout 60s --json > load.json";
    let flags = ["--rate", "2mbit", "--queue", "20ms"];
    let (done, document, directory) = bed(&flags, &format!("{SERVE}{load}"));
    done.exits(&LOADED);
    let record = record(&directory, "load.json");
    // Sending 64 KiB at 2 Mbit/s takes 262 ms.
    assert!(record.response_time_us.unwrap().min >= 262_144.0, "{record:#?}");
    assert_eq!((document.link.rate_bits_per_s, document.link.queue_s), (Some(2e6), 0.02));
    // The server first sends ten packets at once, which takes 60 ms at this rate. But the queue has room for only 20
    // ms, so some are dropped.
    assert!(document.clients[0].down.queue_full_packets > 0, "{document:#?}");
}

#[test]
fn every_connection_draws_its_own_time_from_a_histogram() {
    let load = "ip netns exec client1 $B load http://{server}/ -n 30 --rate 100 --new-connection --json > load.json";
    let histogram = tempfile::NamedTempFile::new().unwrap();
    fs::write(histogram.path(), "# half are near\n20ms, 1\n60ms..90ms, 1\n").unwrap();
    let flags = ["--rtts", histogram.path().to_str().unwrap()];
    let (done, document, directory) = bed(&flags, &format!("{SERVE}{load}"));
    done.exits(&LOADED);
    let times = record(&directory, "load.json").connect_time_us.unwrap();
    assert!(times.min >= 20_000.0 * 0.998 && times.max >= 60_000.0 * 0.998, "{times:?}");
    assert_eq!(document.clients[0].rtt_s, [0.020, 0.090]);
    assert!(document.clients[0].drawn >= 30, "{document:#?}");
}

#[test]
fn hosts_have_ipv6_addresses_and_clients_have_several() {
    let load = "ip netns exec server $B target --listen '[{server v6}]:81' > six.log & \
                until grep -q listening six.log; do sleep 0.05; done; \
                ip netns exec client1 $B load 'http://[{server v6}]:81/' -n 3 --rate 50 --json > six.json; \
                ip netns exec client1 $B load http://{server}/ -n 3 --rate 50 --source-ip 198.18.1.64/26 --json > many.json";
    let (done, document, directory) = bed(&["--rtt", "10ms"], &format!("{SERVE}{load}"));
    done.exits(&LOADED);
    assert_eq!(document.server.ipv6.as_deref(), Some("2001:2::1"), "this test needs IPv6");
    for name in ["six.json", "many.json"] {
        let record = record(&directory, name);
        assert_eq!(record.counts.completed, 3, "{name}: {record:#?}");
        assert!(record.connect_time_us.unwrap().min >= 10_000.0 * 0.998, "{name}");
    }
    assert_eq!(document.clients[0].sources, "198.18.1.0/24");
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)] {
        let (done, document, _) = bed(&["--quiet"], script);
        assert_eq!(done.stderr, "");
        assert_eq!(done.exits(&[code]).code, i32::from(document.exit_code));
    }
    run(&["testbed", "--", "/no/such/program"]).fails(2, "cannot start `/no/such/program`: No such file or directory");
}

#[test]
fn host_names_are_known_only_inside_the_test_bed() {
    let names = || fs::read_dir("/run/netns").map_or(0, Iterator::count);
    let before = names();
    let script = "ls /run/netns | tr '\\n' ' '; echo; \
                  ip netns exec client2 cat /sys/class/net/wan/mtu /proc/sys/net/ipv4/ip_local_port_range; \
                  echo $BRIMFUL_SERVER $BRIMFUL_CLIENTS; ls -d /proc/[0-9]* | wc -l; ip netns exec server true";
    let (done, ..) = bed(&["--clients", "2"], script);
    let said = done.exits(&[0]).stdout;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..4], ["client1 client2 server ", "1500", "1024\t65535", "198.18.0.1 client1 client2"], "{said}");
    let processes: u32 = lines[4].parse().unwrap();
    assert!(processes <= 6, "the command sees only its own processes: {said}");
    assert_eq!(names(), before);
}

/// Whether the command line of any process contains this word.
fn runs(word: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap();
    processes.flatten().any(|process| {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    })
}

#[test]
fn nothing_is_left_behind_however_it_ends() {
    let _machine = lock_machine_shared();
    let ends: [(&str, Option<(Signal, i32)>); 4] = [
        ("1", Some((Signal::TERM, 143))),
        ("2", Some((Signal::INT, 130))),
        ("3", Some((Signal::HUP, 129))),
        ("4", None),
    ];
    for (number, signal) in ends {
        let directory = tempfile::tempdir().unwrap();
        // No other process sleeps for this time, so `runs` finds only processes of this test.
        let time = format!("1{}.{number}", std::process::id());
        let script = format!(
            "ip netns exec server sleep {time} & setsid ip netns exec client1 sleep {time} & \
             until [ $(grep -slx sleep /proc/[0-9]*/comm | wc -l) = 2 ]; do sleep 0.05; done; echo started; exec sleep {time}"
        );
        let mut bed = bed_in(directory.path(), &[], &script);
        // Use the default action for SIGHUP: the test process may ignore it, and the program would inherit that.
        let mut command = Command::new("env");
        command.arg("--default-signal=HUP").arg(bed.get_program()).args(bed.get_args());
        command.current_dir(directory.path());
        bed = command;
        let mut running = Running::start(bed);
        assert_eq!(running.stdout_line(), "started\n");
        assert!(runs(&time));
        match signal {
            Some((signal, code)) => {
                running.signal(signal);
                running.finish().exits(&[code]);
            }
            None => running.kill(),
        }
        wait_until(|| !runs(&time));
    }
}

/// Two test beds share the directory of names. The second must continue to work after the end of the first, which has
/// created the directory.
#[test]
fn a_test_bed_that_ends_does_not_disturb_another_one() {
    let _machine = lock_machine_shared();
    let directory = tempfile::tempdir().unwrap();
    let wait =
        |file: &str| format!("echo started; until [ -e {file} ]; do sleep 0.05; done; ip netns exec server true");
    let beds = ["first", "second"].map(|file| {
        let mut bed = Running::start(bed_in(directory.path(), &[], &wait(file)));
        assert_eq!(bed.stdout_line(), "started\n");
        (file, bed)
    });
    for (file, bed) in beds {
        fs::write(directory.path().join(file), "").unwrap();
        bed.finish().exits(&[0]);
    }
}

#[test]
fn a_command_that_ignores_signals_is_killed() {
    let _machine = lock_machine_shared();
    let directory = tempfile::tempdir().unwrap();
    let mut running =
        Running::start(bed_in(directory.path(), &[], "trap 'echo no' TERM; echo started; while :; do sleep 0.1; done"));
    assert_eq!(running.stdout_line(), "started\n");
    running.signal(Signal::TERM);
    assert_eq!(running.stdout_line(), "no\n");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    running.signal(Signal::TERM);
    running.finish().exits(&[137]);
}

/// Runs a command without capabilities, like an ordinary user's.
fn unprivileged(arguments: &[&str]) -> Command {
    let brimful = brimful(arguments);
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all"]).arg(brimful.get_program()).args(brimful.get_args());
    command
}

#[test]
fn users_have_a_test_bed_in_a_user_namespace() {
    let _machine = lock_machine_shared();
    let brimful = brimful(&["testbed", "--quiet", "--", "sh", "-c", "ip netns exec client1 true && exit 5"]);
    // Run the script as another user and without capabilities.
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-user=1000", "--map-group=1000"]).arg(brimful.get_program()).args(brimful.get_args());
    Running::start(command).finish().exits(&[5]);
}

#[test]
fn without_privilege_it_says_what_to_do() {
    let _machine = lock_machine_shared();
    let brimful = unprivileged(&["testbed", "--", "true"]);
    let mut command = Command::new("unshare");
    let script = r#"echo 0 > /proc/sys/user/max_user_namespaces && exec "$@""#;
    command.args(["--user", "--map-root-user", "sh", "-c", script, "sh"]);
    command.arg(brimful.get_program()).args(brimful.get_args());
    Running::start(command).finish().fails(3, "run as root, or let users make namespaces");
}

#[test]
fn bad_input_is_refused_before_anything_is_created() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "20ms\n").unwrap();
    let file = file.path().to_str().unwrap();
    for (flags, message) in [
        (&["--rtt", "2s..1s"][..], "ends before it begins"),
        (&["--loss", "150%"], "is not a share"),
        (&["--rate", "10"], "write it like 256kbit"),
        (&["--clients", "0"], "0 is not in 1..=200"),
        (&["--clients", "201"], "201 is not in 1..=200"),
        (&["--rtts", "/no/such/file"], "give --rtts a file of lines like"),
        (&["--rtts", file], "line 1: `20ms` is no round-trip time"),
        (&["--server-cpus", "7777"], "--server-cpus names CPU 7777"),
        (&["--out", "-"], "stdout belongs to the command"),
    ] {
        run(&[&["testbed"], flags, &["--", "true"]].concat()).fails(2, message);
    }
    run(&["testbed", "--", "curl", "http://{client 2}/"]).fails(2, "`{client 2}` in the command names no host");
    run(&["testbed"]).fails(2, "COMMAND");
}
