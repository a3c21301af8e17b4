//! `docs/first-commands.md`: every command in it is run, those that make load for a moment only, against nginx. What is
//! answered without a load is shown word for word; of a load, the lines that are shown are there.

use crate::examples::{commands, has_lines};
use crate::program::{Running, brimful, share_machine};
use brimful_testkit::{Nginx, NginxOptions, words};
use std::fs;
use std::path::Path;

/// The same on this server.
fn here(command: &str, nginx: &Nginx) -> String {
    let port = format!("--port {}", nginx.addr().port());
    command.replace("127.0.0.1:8080", &nginx.addr().to_string()).replace("--port 8080", &port)
}

/// The same for as long as a test has time.
fn short(command: &str) -> String {
    let times =
        [("-d10s", "-d300ms"), ("-z 10s", "-z 300ms"), ("--duration 10s", "--duration 300ms"), ("5s:", "150ms:")];
    let shorter = times.iter().fold(command.to_owned(), |command, (long, short)| command.replace(long, short));
    // A busy host may take its time.
    let shorter = shorter.replace("--num-conns 1500", "--num-conns 30").replace("p95<200ms", "p95<10m");
    let endless = shorter.starts_with("brimful load") && !shorter.contains("ms") && !shorter.contains("-n ");
    if endless { shorter + " -d 300ms" } else { shorter }
}

#[test]
fn they_do_what_is_shown() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/first-commands.md");
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let socket = dir.path().join("nginx.sock");
    let extra = format!("listen unix:{}; location = /old {{ return 301 /index.html; }}", socket.display());
    let nginx = Nginx::start(NginxOptions { extra, ..NginxOptions::default() });
    let all = commands(&fs::read_to_string(page).unwrap());
    assert!(all.len() >= 10, "{all:#?}");
    for (command, shown) in all {
        let _machine = share_machine();
        let is_answered = shown.ends_with("[exit code 2]\n");
        let line = here(&if is_answered { command.clone() } else { short(&command) }, &nginx);
        let mut program = brimful(&words(&line)[1..]);
        program.current_dir(dir.path());
        let done = Running::start(program).finish();
        if is_answered {
            let said = done.exits(&[2]).stderr.replace(&nginx.addr().to_string(), "127.0.0.1:8080");
            assert_eq!(said + "[exit code 2]\n", shown, "{command}");
        } else {
            // Whether the generator was late is the host's business.
            has_lines(&shown, &done.exits(&[0, 4]).stdout, &command);
        }
    }
}
