//! Tests output to full disks, pipes, links and terminals.

use crate::documents;
use crate::program::{Running, brimful, lock_machine_shared, run, wait_until};
use crate::small_disk::SmallDisk;
use brimful_testkit::{RawServer, RefusingPort};
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;

const SHORT: [&str; 4] = ["--clients", "1", "--requests", "20"];

#[test]
fn colours_are_for_terminals_or_forced_and_no_color_wins() {
    // `Running::finish` asserts that output to pipes has no escape sequences. This test shows that such output can have
    // them, so that the assertion can fail.
    let coloured = |variables: &[(&str, &str)]| {
        let output = brimful(&["doctor"]).envs(variables.iter().copied()).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
        output.stdout.contains(&0x1b)
    };
    assert!(!coloured(&[]));
    assert!(coloured(&[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}

#[test]
fn lines_fit_the_terminal_and_words_are_not_cut() {
    let server = RawServer::content_length("hello\n");
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("record.json");
    let load = ["load", &server.url(), "--shard", "1/1", "--seed", "1", "--out", out.to_str().unwrap()];
    run(&[&load[..], &SHORT].concat()).exits(&[0, 4]);
    let at = |columns: &str| {
        let output = brimful(&["merge", out.to_str().unwrap(), "--full"]).env("COLUMNS", columns).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let wide = at("200");
    assert!(wide.contains("Response") && wide.contains("lateness"), "{wide}");
    for columns in [60, 80, 200] {
        let text = at(&columns.to_string());
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}: {text}");
        let missing: Vec<&str> = wide.split_whitespace().filter(|word| !text.contains(word)).collect();
        assert!(missing.is_empty(), "{columns}: {missing:?} of\n{wide}");
    }
}

#[test]
fn a_locale_without_utf8_gets_ascii_and_documents_are_unchanged() {
    let server = RawServer::content_length("hello\n");
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("größe.json");
    let secret = ["load", &server.url(), "--secret-header", "X-A", "-H", "X-A: b"];
    let part = ["--shard", "1/1", "--seed", "1", "--out", out.to_str().unwrap()];
    run(&[&secret[..], &part, &SHORT].concat()).exits(&[0, 4]);
    let said = |locale: &[(&str, &str)], args: &[&str]| {
        let mut command = brimful(&[&["merge", out.to_str().unwrap()], args].concat());
        for name in ["LC_ALL", "LC_CTYPE", "LANG"] {
            command.env_remove(name);
        }
        String::from_utf8(command.envs(locale.iter().copied()).output().unwrap().stdout).unwrap()
    };
    for locale in [&[("LC_ALL", "C")][..], &[("LC_CTYPE", "POSIX"), ("LANG", "en_US.UTF-8")], &[("LANG", "de_DE")]] {
        let text = said(locale, &["--full"]);
        assert!(text.is_ascii() && text.contains(" us"), "{locale:?}: {text}");
        assert!(said(locale, &["--json"]).contains("X-A: •••"), "a document is the same in every locale");
    }
    for locale in [&[][..], &[("LANG", "C.UTF-8")], &[("LC_ALL", "de_DE.utf8"), ("LANG", "C")]] {
        assert!(said(locale, &["--full"]).contains(" µs"), "{locale:?}");
    }
}

#[test]
fn a_full_disk_loses_no_document() {
    let server = RawServer::content_length("hello\n");
    let done = run(&[&["load", &server.url(), "--out", "/dev/full"], &SHORT[..]].concat()).exits(&[3]);
    assert!(done.stderr.contains("cannot write /dev/full") && done.stderr.contains("on stdout"), "{}", done.stderr);
    let json = done.stdout.find('{').expect("the document is on stdout");
    assert_eq!(documents::record(&done.stdout[json..]).counts.completed, 20);
}

#[test]
fn a_full_disk_leaves_the_former_file_unchanged() {
    let server = RawServer::content_length("hello\n");
    let small = SmallDisk::mount("64k");
    let out = small.path().join("record.json");
    fs::write(&out, "the former").unwrap();
    // After this, the disk has space for a file name, but not for a document.
    small.fill();
    let done = run(&[&["load", &server.url(), "--out", out.to_str().unwrap()], &SHORT[..]].concat()).exits(&[3]);
    assert!(done.stderr.contains("cannot write") && done.stderr.contains("No space left"), "{}", done.stderr);
    assert_eq!(fs::read_to_string(&out).unwrap(), "the former");
    let json = done.stdout.find('{').expect("the document is on stdout");
    assert_eq!(documents::record(&done.stdout[json..]).counts.completed, 20);
    assert_eq!(fs::read_dir(small.path()).unwrap().count(), 2, "no partial file is left");
}

#[test]
fn a_dash_is_stdout() {
    let server = RawServer::content_length("hello\n");
    let dir = tempfile::tempdir().unwrap();
    let in_dir = |args: &[&str]| {
        let mut command = brimful(args);
        command.current_dir(dir.path());
        Running::start(command).finish()
    };
    let _machine = lock_machine_shared();
    let done = in_dir(&[&["load", &server.url(), "-o", "-"], &SHORT[..]].concat()).exits(&[0, 4]);
    assert_eq!(documents::record(&done.stdout).counts.completed, 20);
    assert!(done.stderr.contains(": 20 calls in "), "the text is on stderr: {}", done.stderr);
    let done = in_dir(&[&["load", &server.url(), "--json", "-o", "/dev/stdout"], &SHORT[..]].concat()).exits(&[0, 4]);
    assert_eq!(documents::record(&done.stdout).counts.completed, 20);
    let done = in_dir(&["watch", "-n", "2", "--interval", "50ms", "-o", "-"]).exits(&[0]);
    documents::document::<brimful_core::server::Server>(&done.stdout);
    assert!(done.stderr.contains("this machine for "), "{}", done.stderr);
    in_dir(&["plan", "solve", "no-such-model", "--out", "-", "--html", "-"])
        .fails(2, "--out and --html both name stdout");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "`-` means stdout, not a file");
}

#[test]
fn mode_and_links_of_a_file_are_kept() {
    let server = RawServer::content_length("hello\n");
    let dir = tempfile::tempdir().unwrap();
    let (file, link) = (dir.path().join("record.json"), dir.path().join("link.json"));
    fs::write(&file, "the former").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    symlink("record.json", &link).unwrap();
    let load = |path: &Path| run(&[&["load", &server.url(), "--out", path.to_str().unwrap()], &SHORT[..]].concat());
    load(&link).exits(&[0, 4]);
    assert_eq!(documents::record(&fs::read_to_string(&file).unwrap()).counts.completed, 20);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    fs::hard_link(&file, dir.path().join("other.json")).unwrap();
    load(&file).fails(3, "(hard links), which would keep the old content");
}

#[test]
fn a_full_disk_leaves_one_document_on_stdout() {
    let server = RawServer::content_length("hello\n");
    let done = run(&[&["load", &server.url(), "--json", "--out", "/dev/full"], &SHORT[..]].concat()).exits(&[3]);
    assert_eq!(documents::record(&done.stdout).counts.completed, 20);
}

#[test]
fn a_full_stdout_is_an_error_but_the_file_is_written() {
    let server = RawServer::content_length("hello\n");
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("record.json");
    let _machine = lock_machine_shared();
    let to_file = ["load", &server.url(), "--json", "--out", out.to_str().unwrap()];
    let mut command = brimful(&[&to_file, &SHORT[..]].concat());
    command.stdout(File::options().write(true).open("/dev/full").unwrap()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("cannot write to stdout"), "{stderr}");
    let document = fs::read_to_string(&out).expect("the measurements are in the file");
    assert_eq!(documents::record(&document).counts.completed, 20);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let server = RawServer::content_length("hello\n");
    let _machine = lock_machine_shared();
    let mut command = brimful(&[&["load", &server.url(), "--json"], &SHORT[..]].concat());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", output.status);
}

#[test]
fn an_existing_file_is_replaced_only_by_a_complete_one() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("record.json");
    fs::write(&out, "the former").unwrap();
    let silent = RefusingPort::reserve();
    let nobody = silent.addr().to_string();
    run(&[&["load", &nobody, "--out", out.to_str().unwrap()], &SHORT[..]].concat()).fails(3, "nothing listens");
    assert_eq!(fs::read_to_string(&out).unwrap(), "the former");

    let server = RawServer::never_answers();
    let _machine = lock_machine_shared();
    let load = Running::start(brimful(&["load", &server.url(), "--rate", "100", "--out", out.to_str().unwrap()]));
    // Brimful checks that the server listens by one connection. The second connection belongs to the load.
    wait_until(|| server.connections() >= 2);
    load.kill();
    assert_eq!(fs::read_to_string(&out).unwrap(), "the former");
}
