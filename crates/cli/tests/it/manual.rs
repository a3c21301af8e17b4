//! Tests `brimful completions` and `brimful man`.

use crate::program::run;
use std::fs;

#[test]
fn shells_complete_every_command_and_its_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]).exits(&[0]).stdout;
        for word in ["characterize", "s-clients", "max-delay", "completions"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert!(!script.contains("testbed-inside"), "{shell}: hidden commands stay hidden");
    }
    run(&["completions", "csh"]).fails(2, "zsh");
}

#[test]
fn every_command_has_a_man_page() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("share/man/man1");
    run(&["man", place.to_str().unwrap()]).exits(&[0]);
    let page = |name: &str| fs::read_to_string(place.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    for name in ["brimful.1", "brimful-load.1", "brimful-plan-what-if.1", "brimful-module-install.1", "brimful-man.1"] {
        assert!(page(name).starts_with(".ie"), "{name} is not a man page");
    }
    // The man page must have the long descriptions of flags, which `--help` does not contain.
    let load = page("brimful-load.1");
    assert!(load.contains("with Hurst parameter H") && load.contains("Examples:"), "{load}");
    let pages = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(pages.into_iter().all(|name| !name.contains("inside") && !name.contains("help")));
    run(&["man", "/dev/null/pages"]).fails(3, "cannot make /dev/null/pages");
}
