//! Tests that the terminal sessions in the manual match the program's output.

use crate::plan::Files;
use crate::program::{Running, brimful, lock_machine_shared};
use std::fs;
use std::path::Path;

/// The commands of a page and their expected output: from each `$ brimful plan` to the end of its code block.
fn sessions(page: &str) -> Vec<(Vec<String>, String)> {
    let blocks = page.split("\n```").filter_map(|block| block.split_once("$ brimful plan "));
    let read = |(_, session): (&str, &str)| {
        let (command, output) = session.split_once('\n')?;
        let words = command.split_whitespace().map(|word| word.trim_matches('\'').to_owned());
        Some((words.collect(), output.to_owned() + "\n"))
    };
    blocks.filter_map(read).collect()
}

#[test]
fn sessions_match_the_output_of_the_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manual = fs::read_to_string(root.join("docs/plan.md")).unwrap();
    let (_, model) = manual.split_once("```toml\n").unwrap();
    let files = Files::new();
    files.write("shop.toml", model.split_once("```").unwrap().0);
    let _machine = lock_machine_shared();
    let mut compared = 0;
    for (args, shown) in sessions(&manual) {
        if !matches!(args[0].as_str(), "solve" | "what-if") {
            continue;
        }
        let mut command = brimful(&[&["plan".to_owned()], &args[..]].concat());
        command.current_dir(files.path(""));
        assert_eq!(Running::start(command).finish().exits(&[0]).stdout, shown, "{args:?}");
        compared += 1;
    }
    assert_eq!(compared, 3);
}
