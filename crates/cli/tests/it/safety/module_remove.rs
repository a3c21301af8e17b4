//! Tests `brimful module`, run by root, if another user can write to the server's directory. It must not remove files
//! or run programs of that user's choice.

use crate::module::{NGINX, NGINX_CONF_WITH_MODULES, built_module, files_without_logs, make_prefix, module};
use crate::safety::{NOBODY, is_root};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, lchown};
use std::path::Path;

/// Writes a manifest of nginx's module into this directory, as if brimful had created all files in `made`.
fn write_manifest(directory: &Path, binary: &Path, made: Value) {
    let text = json!({
        "schema": "brimful.module-manifest/1", "server": "nginx", "version": "nginx/1", "binary": binary,
        "prefix": directory, "config": null, "memory": "/nonexistent", "made": made, "by_hand": [],
    });
    fs::create_dir_all(directory.join("modules")).unwrap();
    fs::write(directory.join("modules/ngx_http_brimful_module.json"), text.to_string()).unwrap();
}

/// Writes a program that creates the file `mark` when it is run.
fn write_program(path: &Path, mark: &Path) {
    fs::write(path, format!("#!/bin/sh\ntouch '{}'\nexec {NGINX} \"$@\"\n", mark.display())).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

fn give_away(path: &Path) {
    lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| give_away(&entry.unwrap().path()));
    }
}

#[test]
fn root_does_not_run_or_rename_what_another_users_manifest_names() {
    if !is_root() {
        return;
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let (victim, mark) = (elsewhere.path().join("brimful.conf"), elsewhere.path().join("mark"));
    fs::write(&victim, "root's").unwrap();
    let directory = make_prefix(NGINX_CONF_WITH_MODULES);
    let program = directory.path().join("program");
    write_program(&program, &mark);
    write_manifest(directory.path(), &program, json!([{"kind": "file", "path": &victim, "hash": "0"}]));
    give_away(directory.path());
    for action in ["remove", "install"] {
        let more: &[&str] = if action == "install" { &["--yes"] } else { &[] };
        module(action, "nginx", directory.path(), more).fails(3, "belongs to user 65534");
    }
    // The directory itself belongs to root here, but this does not suffice.
    lchown(directory.path(), Some(0), Some(0)).unwrap();
    module("remove", "nginx", directory.path(), &[]).fails(3, "modules belongs to user 65534");
    lchown(directory.path().join("modules"), Some(0), Some(0)).unwrap();
    module("remove", "nginx", directory.path(), &[]).fails(3, "ngx_http_brimful_module.json belongs to user 65534");
    lchown(directory.path().join("modules/ngx_http_brimful_module.json"), Some(0), Some(0)).unwrap();
    module("remove", "nginx", directory.path(), &[]).fails(3, "nginx.conf belongs to user 65534");
    lchown(directory.path().join("nginx.conf"), Some(0), Some(0)).unwrap();
    module("remove", "nginx", directory.path(), &[]).fails(3, "program belongs to user 65534");
    assert!(!mark.exists(), "another user's program was run");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "root's");
}

#[test]
fn a_directory_that_others_can_write_to_is_refused() {
    let elsewhere = tempfile::tempdir().unwrap();
    let mark = elsewhere.path().join("mark");
    let directory = make_prefix(NGINX_CONF_WITH_MODULES);
    let program = directory.path().join("program");
    write_program(&program, &mark);
    write_manifest(directory.path(), &program, json!([]));
    let set = |path: &Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    for path in ["", "modules", "modules/ngx_http_brimful_module.json", "nginx.conf"] {
        let path = directory.path().join(path);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        set(&path, mode | 0o002);
        module("remove", "nginx", directory.path(), &[]).fails(3, "other users can write to");
        set(&path, mode);
    }
    assert!(!mark.exists(), "the program was run");
}

#[test]
fn a_manifest_with_files_that_install_does_not_make_is_refused() {
    let elsewhere = tempfile::tempdir().unwrap();
    let victim = elsewhere.path().join("brimful.conf");
    fs::write(&victim, "not the module's").unwrap();
    let directory = make_prefix(NGINX_CONF_WITH_MODULES);
    let own = directory.path().join("conf.d/mine.conf");
    fs::write(&own, "# mine\n").unwrap();
    let outside = directory.path().join("conf.d/../../x/brimful.conf");
    for made in [
        json!([{"kind": "file", "path": &victim, "hash": "0"}]),
        json!([{"kind": "file", "path": &own, "hash": "0"}]),
        json!([{"kind": "directory", "path": elsewhere.path()}]),
        json!([{"kind": "directory", "path": directory.path().join("conf.d")}]),
        json!([{"kind": "link", "path": &victim, "to": "brimful.conf"}]),
    ] {
        write_manifest(directory.path(), Path::new(NGINX), made.clone());
        let before = files_without_logs(directory.path());
        module("remove", "nginx", directory.path(), &[]).fails(2, "which install cannot have made for this server");
        assert_eq!(files_without_logs(directory.path()), before, "{made}");
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "not the module's");
    // The manifest lists a file that does not exist, which must do no harm.
    write_manifest(directory.path(), Path::new(NGINX), json!([{"kind": "file", "path": &outside, "hash": "0"}]));
    module("remove", "nginx", directory.path(), &[]).exits(&[0]);
}

#[test]
fn an_installation_in_roots_own_directory_is_removed() {
    let directory = make_prefix(NGINX_CONF_WITH_MODULES);
    let before = files_without_logs(directory.path());
    let file = tempfile::Builder::new().suffix(".so").tempfile().unwrap();
    fs::write(file.path(), built_module()).unwrap();
    let given = format!("--module={}", file.path().display());
    module("install", "nginx", directory.path(), &["--yes", &given]).exits(&[0]);
    // A path of the same directory that contains `..`.
    let name = directory.path().join("conf.d/..");
    module("remove", "nginx", &name, &[]).exits(&[0]);
    assert_eq!(files_without_logs(directory.path()), before);
}
