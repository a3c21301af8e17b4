//! Tests `brimful module`: it installs the Server Module in real web servers, uses it, and removes it. Each server has
//! its own directory and configuration.

use crate::documents;
use crate::program::{Done, Running, brimful, lock_machine_shared, run, wait_until};
use brimful_core::Nanos;
use brimful_monitor::module::ServerSample;
use brimful_testkit::{Apache, ApacheOptions, Daemon, Mpm, Nginx, NginxOptions};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

/// Path of Debian's nginx.
pub const NGINX: &str = "/usr/sbin/nginx";

/// Creates a directory with a server configuration, and the two subdirectories that the configuration includes files
/// from.
pub fn make_prefix(config: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("nginx.conf"), config).unwrap();
    make_directories(directory.path());
    directory
}

fn make_directories(directory: &Path) {
    for name in ["modules-enabled", "conf.d"] {
        fs::create_dir(directory.join(name)).unwrap();
    }
}

/// A configuration of nginx that includes files for modules and for `http`.
pub const NGINX_CONF_WITH_MODULES: &str = "pid nginx.pid;\nerror_log error.log;\ninclude modules-enabled/*.conf;\nevents {}\nhttp {\n\
                         access_log off;\n\
                         include conf.d/*.conf;\nserver { listen 127.0.0.1:1; }\n}\n";

/// Runs `brimful module ACTION SERVER --prefix DIRECTORY` with the arguments in `more`.
pub fn module(action: &str, server: &str, directory: &Path, more: &[&str]) -> Done {
    let prefix = directory.to_str().unwrap();
    run(&[&["module", action, server, "--prefix", prefix], more].concat())
}

/// Paths and contents of all files and subdirectories, at any depth. The content of a directory is empty.
fn all_files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let content = |path: &Path| if path.is_dir() { Vec::new() } else { fs::read(path).unwrap() };
    all_paths(directory).into_iter().map(|path| (path.clone(), content(&path))).collect()
}

/// Paths of all files and subdirectories, at any depth, sorted.
fn all_paths(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(all_paths(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

/// All files except those that nginx itself creates when it tests a configuration.
pub fn files_without_logs(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let found = all_files(directory).into_iter();
    found.filter(|(path, _)| !path.ends_with("error.log") && !path.ends_with("nginx.pid")).collect()
}

/// The Server Module for nginx. It is built only once for all tests.
pub fn built_module() -> &'static Vec<u8> {
    static MODULE: OnceLock<Vec<u8>> = OnceLock::new();
    MODULE.get_or_init(|| {
        let directory = make_prefix(NGINX_CONF_WITH_MODULES);
        module("install", "nginx", directory.path(), &["--yes"]).exits(&[0]);
        fs::read(directory.path().join("modules/ngx_http_brimful_module.so")).unwrap()
    })
}

/// The counters of a server, read from its shared memory.
fn counted(memory: &Path) -> ServerSample {
    ServerSample::from_bytes(&fs::read(memory).unwrap(), Nanos::ZERO).unwrap()
}

#[test]
fn installed_in_and_removed_from_nginx() {
    let nginx = Nginx::start(NginxOptions {
        workers: 2,
        keepalive: false,
        main: "include modules-enabled/*.conf;".to_owned(),
        http: "include conf.d/*.conf;".to_owned(),
        extra: "access_log access.log;".to_owned(),
        ..Default::default()
    });
    let file = nginx.directory().join("module.so");
    fs::write(&file, built_module()).unwrap();
    let given = format!("--module={}", file.display());
    install_and_remove(
        &nginx,
        "nginx",
        &[&given, "--class", "small=size 0-4999", "--class", "images=url /images/*"],
        Signal::HUP,
    );
}

#[test]
fn installed_in_and_removed_from_apache() {
    for mpm in [Mpm::Event, Mpm::Prefork] {
        let apache = Apache::start(ApacheOptions {
            mpm,
            max_workers: 8,
            extra: "LogFormat %s status\nCustomLog access.log status\nIncludeOptional conf.d/*.conf\n".to_owned(),
            ..Default::default()
        });
        install_and_remove(
            &apache,
            "apache",
            &["--class", "small=size 0-4999", "--class", "images=url /images/*"],
            Signal::USR1,
        );
    }
}

fn install_and_remove(server: &Daemon, name: &str, more: &[&str], graceful: Signal) {
    let directory = server.directory();
    make_directories(directory);
    let before = names(directory);
    let config = format!("--config={}", directory.join("server.conf").display());
    let memory = directory.join("memory");
    let named = format!("--memory={}", memory.display());
    let former = server.workers();
    let said = module("install", name, directory, &[&[&config, &named, "--yes", "--reload"], more].concat())
        .exits(&[0])
        .stdout;
    assert!(said.contains("now has the module") && said.contains("on: "), "{said}");

    // After a reload, old workers continue to serve requests for some time. Wait until they have ended.
    wait_until(|| !server.workers().iter().any(|worker| former.contains(worker)));

    // No request may be lost during a reload, and each must be counted once.
    let load = {
        let _machine = lock_machine_shared();
        let url = server.url();
        let load = ["load", &url, "--clients", "4", "--new-connection", "--duration", "1h", "--json"];
        let running = Running::start(brimful(&load));
        for _ in 0..3 {
            let lines = || fs::read_to_string(directory.join("access.log")).unwrap_or_default().lines().count();
            let so_far = lines();
            wait_until(|| lines() > so_far + 20);
            kill_process(Pid::from_raw(server.pid() as i32).unwrap(), graceful).unwrap();
        }
        running.ctrl_c();
        documents::record(&running.finish().exits(&[130]).stdout)
    };
    assert_eq!(load.counts.errors(), 0, "{:#?}", load.counts);
    let lines = || fs::read_to_string(directory.join("access.log")).unwrap().lines().count() as u64;
    wait_until(|| counted(&memory).requests() == lines());
    assert!(counted(&memory).requests() >= load.counts.status.s2xx);
    let of_class = |wanted: &str| {
        let sample = counted(&memory);
        sample
            .classes
            .iter()
            .find(|class| class.name == wanted)
            .unwrap_or_else(|| panic!("no {wanted}: {sample:?}"))
            .requests
    };
    assert!(of_class("small") > 0 && of_class("images") == 0);

    let said = module("status", name, directory, &[&config]).exits(&[0]).stdout;
    assert!(said.contains("on: ") && said.contains(memory.to_str().unwrap()), "{said}");
    let said = module("off", name, directory, &[&config]).exits(&[0]).stdout;
    assert!(said.contains(": recording is off"), "{said}");
    let so_far = counted(&memory).requests();
    run(&["load", &server.url(), "--requests", "20", "--clients", "1", "--json"]).exits(&[0, 4]);
    assert_eq!(counted(&memory).requests(), so_far, "no request is counted while recording is off");
    assert!(module("status", name, directory, &[&config]).exits(&[0]).stdout.contains("off: "));
    assert!(module("on", name, directory, &[&config]).exits(&[0]).stdout.contains(": recording is on"));
    assert!(module("on", name, directory, &[&config]).exits(&[0]).stdout.contains(": recording is already on"));

    let said = module("remove", name, directory, &[&config, "--reload"]).exits(&[0]).stdout;
    assert!(said.contains("no longer has the module"), "{said}");
    let left: Vec<PathBuf> = names(directory).into_iter().filter(|path| !before.contains(path)).collect();
    assert!(left.iter().all(|path| path.ends_with("access.log")), "{left:?}");
    let load = run(&["load", &server.url(), "--requests", "20", "--clients", "1", "--new-connection", "--json"])
        .exits(&[0, 4]);
    assert_eq!(documents::record(&load.stdout).counts.errors(), 0);
}

fn names(directory: &Path) -> Vec<PathBuf> {
    all_paths(directory).into_iter().filter(|path| !is_written_by_server(path)).collect()
}

/// Whether the server itself wrote this file. At each reload, Apache replaces its `server.pid` by a file that first has
/// a random suffix.
fn is_written_by_server(path: &Path) -> bool {
    ["client_body", "proxy", "fastcgi", "scgi", "uwsgi", "error.log", "cgisock", "server.pid"]
        .iter()
        .any(|name| path.components().any(|part| part.as_os_str().to_string_lossy().starts_with(name)))
}

#[test]
fn changes_that_nginx_refuses_are_undone() {
    let directory = make_prefix(NGINX_CONF_WITH_MODULES);
    let before = all_files(directory.path());
    // The file of nginx itself contains the signature that a module needs, but it is not a module.
    let given = format!("--module={NGINX}");
    let done = module("install", "nginx", directory.path(), &["--yes", &given]);
    assert!(done.stderr.contains("refuses the module") && done.stderr.contains("all changes were undone"), "{done:#?}");
    assert_eq!(done.exits(&[3]).stdout, "");
    assert_eq!(files_without_logs(directory.path()), before);
}

#[test]
fn a_module_for_another_nginx_is_refused() {
    let directory = make_prefix(NGINX_CONF_WITH_MODULES);
    let before = all_files(directory.path());
    let file = tempfile::NamedTempFile::new().unwrap();
    let given = format!("--module={}", file.path().display());
    fs::write(file.path(), b"\x7fELF\x008,4,8,0101010101010101010101010101010101\x00").unwrap();
    module("install", "nginx", directory.path(), &["--yes", &given])
        .fails(2, "built for another nginx: its signature is 8,4,8,0101");
    fs::write(file.path(), b"").unwrap();
    module("install", "nginx", directory.path(), &["--yes", &given]).fails(2, "this is not a module of nginx");
    assert_eq!(files_without_logs(directory.path()), before);
}

#[test]
fn a_configuration_without_includes_is_not_edited() {
    let directory = make_prefix("pid nginx.pid;\nerror_log error.log;\nevents {}\nhttp { access_log off; }\n");
    let at = |name: &str| directory.path().join(name);
    let config = fs::read_to_string(at("nginx.conf")).unwrap();
    let file = at("given.so");
    fs::write(&file, built_module()).unwrap();
    let given = format!("--module={}", file.display());
    let said = module("install", "nginx", directory.path(), &["--yes", &given]).exits(&[0]).stdout;
    for line in ["at the top of", "within `http { … }` of"] {
        assert!(said.contains(line), "{said}");
    }
    assert_eq!(fs::read_to_string(at("nginx.conf")).unwrap(), config);
    // While the configuration contains these lines, the module cannot be removed.
    let load = format!("include {};\n", at("brimful-load.conf").display());
    let with_lines =
        format!("{load}{config}").replace("http {", &format!("http {{ include {};", at("brimful-http.conf").display()));
    fs::write(at("nginx.conf"), with_lines).unwrap();
    let made = all_files(directory.path());
    module("remove", "nginx", directory.path(), &[]).fails(2, "nothing was removed");
    assert_eq!(all_files(directory.path()).len(), made.len());
    fs::write(at("nginx.conf"), &config).unwrap();
    module("remove", "nginx", directory.path(), &[]).exits(&[0]);
    assert!(!at("brimful-load.conf").exists() && !at("brimful-http.conf").exists() && !at("modules").exists());
}

#[test]
fn changed_files_are_kept() {
    let directory = make_prefix(NGINX_CONF_WITH_MODULES);
    let at = |name: &str| directory.path().join(name);
    fs::write(at("given.so"), built_module()).unwrap();
    let given = format!("--module={}", at("given.so").display());
    module("install", "nginx", directory.path(), &["--yes", &given]).exits(&[0]);
    // Install the module a second time, with other classes.
    module("install", "nginx", directory.path(), &["--yes", &given, "--class", "all=size 0-"]).exits(&[0]);
    assert!(fs::read_to_string(at("conf.d/brimful.conf")).unwrap().contains("brimful_class all size 0-;"));
    let changed = fs::read_to_string(at("conf.d/brimful.conf")).unwrap() + "# mine\n";
    fs::write(at("conf.d/brimful.conf"), &changed).unwrap();
    module("install", "nginx", directory.path(), &["--yes", &given]).fails(2, "was changed since brimful wrote it");
    let said = module("remove", "nginx", directory.path(), &[]).exits(&[0]).stdout;
    assert!(said.contains("brimful.conf.kept was changed"), "{said}");
    assert_eq!(fs::read_to_string(at("conf.d/brimful.conf.kept")).unwrap(), changed);
    module("remove", "nginx", directory.path(), &[]).fails(2, "has no module that brimful installed");
    // A file that another program has created must not be overwritten.
    fs::write(at("conf.d/brimful.conf"), "# somebody else's\n").unwrap();
    module("install", "nginx", directory.path(), &["--yes", &given]).fails(2, "brimful did not write it");
}

#[test]
fn bad_input_is_refused() {
    let directory = make_prefix(NGINX_CONF_WITH_MODULES);
    let at = |name: &str| directory.path().join(name);
    let install = |more: &[&str]| module("install", "nginx", directory.path(), more);
    install(&[]).fails(2, "use --yes");
    install(&["--yes", "--binary", "/bin/true"]).fails(2, "not nginx, according to its answer to -V");
    install(&["--yes", "--binary", "/nonexistent"]).fails(2, "not an executable program");
    install(&["--yes", "--class", "a;b=size 0-1"]).fails(2, "letters, digits");
    install(&["--yes", "--cpu-one-in", "1000001"]).fails(2, "1000001");
    install(&["--yes", "--memory", "/dev/shm/a;b"]).fails(2, "not usable in a server's configuration");
    install(&["--yes", "--source", "/nonexistent"]).fails(2, "has no sources of nginx");
    install(&["--yes", "--module", "/nonexistent"]).fails(3, "cannot read /nonexistent");
    module("install", "apache", directory.path(), &["--yes"]).fails(2, "name the main configuration with --config");
    module("off", "nginx", directory.path(), &["--memory", "/nonexistent"]).fails(3, "/nonexistent");
    module("off", "nginx", directory.path(), &["--memory", at("nginx.conf").to_str().unwrap()])
        .fails(2, "no file of the Server Module");
    fs::write(at("modules-enabled/broken.conf"), "nonsense;").unwrap();
    install(&["--yes"]).fails(2, "unknown directive \"nonsense\"");
    let said = module("status", "nginx", directory.path(), &[]).exits(&[0]).stdout;
    assert!(said.contains("without the module"), "{said}");
    assert!(!at("modules").exists());
}
