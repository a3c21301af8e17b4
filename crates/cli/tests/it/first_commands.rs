//! Tests the commands in `docs/from-other-tools.md` against nginx, with very short loads. Error messages must be as on
//! the page, word for word; the output of a load must have the lines on the page.

use crate::examples::{assert_has_lines, commands};
use crate::program::{Running, brimful, lock_machine_shared};
use brimful_testkit::{Nginx, NginxOptions, words};
use std::fs;
use std::path::Path;

/// Replaces the address on the page by the address of this nginx.
fn here(command: &str, nginx: &Nginx) -> String {
    let port = format!("--port {}", nginx.addr().port());
    command.replace("127.0.0.1:8080", &nginx.addr().to_string()).replace("--port 8080", &port)
}

/// Shortens the duration of a command.
fn short(command: &str) -> String {
    let times =
        [("-d10s", "-d300ms"), ("-z 10s", "-z 300ms"), ("--duration 10s", "--duration 300ms"), ("5s:", "150ms:")];
    let shorter = times.iter().fold(command.to_owned(), |command, (long, short)| command.replace(long, short));
    // Replace an objective by one that even a busy host meets.
    let shorter = shorter.replace("--num-conns 1500", "--num-conns 30").replace("p95<200ms", "p95<10m");
    let endless = shorter.starts_with("brimful load") && !shorter.contains("ms") && !shorter.contains("-n ");
    if endless { shorter + " -d 300ms" } else { shorter }
}

#[test]
fn the_commands_do_what_the_page_shows() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/from-other-tools.md");
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let socket = dir.path().join("nginx.sock");
    let extra = format!("listen unix:{}; location = /old {{ return 301 /index.html; }}", socket.display());
    let nginx = Nginx::start(NginxOptions { extra, ..NginxOptions::default() });
    let all = commands(&fs::read_to_string(page).unwrap());
    assert!(all.len() >= 10, "{all:#?}");
    for (command, shown) in all {
        let _machine = lock_machine_shared();
        let is_error = shown.ends_with("[exit code 2]\n");
        let line = here(&if is_error { command.clone() } else { short(&command) }, &nginx);
        let mut program = brimful(&words(&line)[1..]);
        program.current_dir(dir.path());
        let done = Running::start(program).finish();
        if is_error {
            let said = done.exits(&[2]).stderr.replace(&nginx.addr().to_string(), "127.0.0.1:8080");
            assert_eq!(said + "[exit code 2]\n", shown, "{command}");
        } else {
            // Exit code 4 means that the load generator was late, because the host was busy.
            assert_has_lines(&shown, &done.exits(&[0, 4]).stdout, &command);
        }
    }
}
