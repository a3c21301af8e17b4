//! Tests how `brimful watch` reports requests that a Server Module has recorded, in all its outputs. Instead of a web
//! server, a program writes to the shared memory like the module (`crates/monitor/tests/it/module/server.c`).

use super::OFTEN;
use crate::documents;
use crate::program::{Running, brimful, lock_machine_shared, run, wait_until};
use brimful_core::server::{LogLine, Module, Server};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A program that records requests in shared memory on command, like the Server Module in a web server.
struct ImitatedServer {
    directory: tempfile::TempDir,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl ImitatedServer {
    fn start() -> ImitatedServer {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("program");
        let compiler = Command::new("cc")
            .args(["-std=gnu11", "-pthread", "-I"])
            .arg(root.join("server-module"))
            .arg("-o")
            .arg(&program)
            .arg(root.join("crates/monitor/tests/it/module/server.c"))
            .output()
            .expect("this test needs a C compiler: apt install gcc");
        assert!(compiler.status.success(), "{}", String::from_utf8_lossy(&compiler.stderr));
        let mut command = Command::new(program);
        command.arg(directory.path().join("brimful-made-up")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut server = ImitatedServer { directory, child, input, output };
        server.answer();
        server
    }

    fn serve(&mut self, requests: u32) {
        writeln!(self.input, "{requests}").unwrap();
        self.answer();
    }

    fn answer(&mut self) {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the server has ended");
    }

    fn file(&self) -> String {
        self.directory.path().join("brimful-made-up").display().to_string()
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("logs/module.jsonl")
    }

    /// Runs `watch` with these arguments while this number of requests is recorded. Returns its final output.
    fn watched(&mut self, args: &[&str], requests: u32) -> String {
        let logs = self.directory.path().join("logs");
        let watch = Running::start(brimful(&[args, &["--log", logs.to_str().unwrap()], &OFTEN[..]].concat()));
        let lines = |path: &Path| fs::read_to_string(path).unwrap_or_default().lines().count();
        let before = lines(&self.log());
        wait_until(|| lines(&self.log()) > before);
        self.serve(requests);
        let served = lines(&self.log());
        wait_until(|| lines(&self.log()) > served + 1);
        watch.ctrl_c();
        watch.finish().exits(&[0]).stdout
    }
}

impl Drop for ImitatedServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn recorded_requests_are_in_the_document_the_text_and_the_log() {
    let _machine = lock_machine_shared();
    let mut made_up = ImitatedServer::start();
    let pid = made_up.child.id().to_string();
    let server: Server = documents::document(&made_up.watched(&["watch", "--process", &pid, "--json"], 1_000));
    let Module { servers, classes } = server.module.expect("the module was found by its process");
    assert_eq!((servers[0].name.as_str(), servers[0].workers, servers[0].requests_in_progress), ("made-up/1.0", 1, 1));
    assert_eq!((classes[0].name.as_str(), classes[1].name.as_str()), ("small", "other"));
    assert_eq!((classes[0].requests, classes[1].requests), (1_000, 0));
    assert_eq!(classes[0].cpu_us.map(|cpu| (cpu.count, cpu.mean)), Some((100, 27.0)));
    assert!(server.sources["module"].contains("brimful-made-up of made-up/1.0"), "{:?}", server.sources);
    assert!(server.intervals.iter().any(|interval| interval.requests_per_s.is_some()), "{:?}", server.intervals);
    let mut logged = 0;
    for line in fs::read_to_string(made_up.log()).unwrap().lines() {
        let line: LogLine<Module> = serde_json::from_str(line).unwrap();
        logged += line.figures.classes[0].requests;
    }
    assert_eq!(logged, 1_000);

    let lines = made_up.watched(&["watch", "--module", &made_up.file()], 500);
    assert!(lines.contains(" served\n") && lines.contains("classes ") && lines.contains("  small "), "{lines}");
    let once = ["watch", "--module", &made_up.file(), "--once", "--interval", "50ms"];
    let text = run(&once).exits(&[0]).stdout;
    for name in ["requests_per_s", "workers_busy", "unexplained_cpu_us", "cpu_mixed", "made-up/1.0", "small", "other"] {
        assert!(text.split_ascii_whitespace().any(|word| word == name), "{name} in\n{text}");
    }
}

#[test]
fn the_papers_tables_have_all_their_rows() {
    let _machine = lock_machine_shared();
    let mut made_up = ImitatedServer::start();
    let text = made_up.watched(&["watch", "--module", &made_up.file(), "--paper-tables"], 1_000);
    // The rows of Tables 4 to 8 of the WebMonitor paper (Almeida, Almeida & Yates 1997).
    for row in [
        "conn/s",
        "Mbit/s",
        "reads/conn",
        "CPU parsetime(ms)/conn          0.00500",
        "CPU processingtime(ms)/conn     0.0200",
        "CPU logtime(ms)/conn            0.00200",
        "elapsed parsetime(ms)/conn      0.0100",
        "elapsed processingtime(ms)/conn 1.50",
        "elapsed logtime(ms)/conn        0.00200",
        "cpu_idle(%)",
        "cpu_user(%)",
        "cpu_system(%)",
        "interrupts/s",
        "net_interrupts/s",
        "disk_interrupts/s",
        "page-in/s",
        "page-out/s",
        "reads/s",
        "writes/s",
        "ctxt/s",
        "cpu(%)",
        "mem(%)",
        "started processes",
        "running processes",
        "Packets transmitted per second",
        "Packets received per second",
    ] {
        let words: Vec<&str> = row.split_ascii_whitespace().collect();
        let found = |line: &str| line.split_ascii_whitespace().collect::<Vec<_>>().starts_with(&words);
        assert!(text.lines().any(found), "{row} in\n{text}");
    }
    run(&["watch", "--paper-tables", "--json"]).fails(2, "cannot be used with");
}

#[test]
fn a_file_that_is_not_a_modules_memory_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("other");
    let name = file.to_str().unwrap();
    run(&["watch", "--once", "--module", name]).fails(3, "start the server with the module first");
    fs::write(&file, vec![7; 4096]).unwrap();
    run(&["watch", "--once", "--module", name]).fails(3, "it is no file of the Server Module");
    run(&["watch", "--once", "--module", directory.path().to_str().unwrap()]).fails(3, "it is no regular file");
}
