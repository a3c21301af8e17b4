//! Tests that `brimful fleet` and `survey --shards` do not load Python modules from the working directory: in a
//! directory like `/tmp`, other users may have created them.

use crate::plan::{Files, path_argument};
use crate::program::{Done, Running, brimful, lock_machine_shared};
use crate::target;
use std::fs;
use std::path::Path;

/// A working directory with Python modules named like this package and like modules of Python's library. Each module
/// creates the file `ran` if Python loads it.
fn planted() -> Files {
    let files = Files::new();
    fs::create_dir_all(files.path("brimful/fleet")).unwrap();
    let ran = files.path("ran");
    let source = format!("open({:?}, 'w').close()\n", path_argument(&ran));
    for name in ["brimful/__init__.py", "brimful/fleet/__init__.py", "brimful/fleet/__main__.py"] {
        files.write(name, &source);
    }
    for name in ["json.py", "argparse.py", "runpy.py", "ray.py"] {
        files.write(name, &source);
    }
    files
}

/// Runs `brimful` in the directory of `files`. If `installed` is true, Python finds the package of this checkout.
fn run_there(files: &Files, installed: bool, args: &[&str]) -> Done {
    let _machine = lock_machine_shared();
    let mut command = brimful(args);
    command.current_dir(files.path(".")).env_remove("PYTHONPATH").env_remove("PYTHONSAFEPATH");
    if installed {
        command.env("PYTHONPATH", Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python"));
    }
    Running::start(command).finish()
}

#[test]
fn a_fleet_runs_no_python_of_the_working_directory() {
    let (_target, address) = target::start(&["--service", "page=50us"]);
    let url = format!("http://{address}/");
    for installed in [true, false] {
        let files = planted();
        let load = ["fleet", "run", "--shards=1", "--rate=100", "--duration=200ms", "--quiet", &url];
        let done = run_there(&files, installed, &load);
        assert!(!files.path("ran").exists(), "with the package: {installed}; {done:#?}");
        if installed {
            let text = done.exits(&[0, 4]).stdout;
            assert!(text.contains("20 calls"), "{text}");
        } else {
            done.fails(3, "`pip install brimful`");
        }
    }
}

#[test]
fn a_survey_with_shards_runs_no_python_of_the_working_directory() {
    let (_target, address) = target::start(&["--service", "page=50us"]);
    let url = format!("http://{address}/");
    for installed in [true, false] {
        let files = planted();
        // No cluster exists at this address, so the survey ends after it has tried to connect to one.
        let survey = ["survey", "--shards=1", "--address=127.0.0.1:1", "--black-box", "--quiet", &url];
        let done = run_there(&files, installed, &survey);
        assert!(!files.path("ran").exists(), "with the package: {installed}; {done:#?}");
        done.fails(3, if installed { "Ray" } else { "`pip install brimful`" });
    }
}
