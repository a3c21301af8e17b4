//! `docs/first-commands.md`: every command in it is run, those that make load for a moment only, against nginx. What is
//! answered without a load is shown word for word; of a load, the lines that are shown are there.

use crate::examples::{commands, has_lines};
use crate::program::{Running, brimful, share_machine};
use brimful_testkit::{Nginx, NginxOptions, words};
use std::fs;
use std::path::Path;

/// The same, on this server, for as long as a test has time.
fn short(command: &str, nginx: &Nginx) -> Vec<String> {
    let port = nginx.addr().port().to_string();
    let here = command.replace("127.0.0.1:8080", &nginx.addr().to_string());
    let here = here.replace("--port 8080", &format!("--port {port}"));
    let here =
        here.replace("-d10s", "-d300ms").replace("-z 10s", "-z 300ms").replace("--duration 10s", "--duration 300ms");
    let here = here.replace("--stage 5s:", "--stage 150ms:").replace("--num-conns 1500", "--num-conns 30");
    // A busy host may take its time.
    let mut words = words(&here.replace("p95<200ms", "p95<10m"));
    if words.get(1).is_some_and(|word| word == "load") && !here.contains("300ms") && !here.contains("-n ") {
        words.extend(["-d".to_owned(), "300ms".to_owned()]);
    }
    words.split_off(1)
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
        let mut program = brimful(&short(&command, &nginx));
        program.current_dir(dir.path());
        let done = Running::start(program).finish();
        if shown.contains("[exit code 2]") {
            let text = done.exits(&[2]).stderr.replace(&nginx.addr().to_string(), "127.0.0.1:8080");
            let port = format!("--port {}", nginx.addr().port());
            assert_eq!(text.replace(&port, "--port 8080") + "[exit code 2]\n", shown, "{command}");
        } else {
            // Whether the generator was late is the host's business.
            has_lines(&shown, &done.exits(&[0, 4]).stdout, &command);
        }
    }
}
