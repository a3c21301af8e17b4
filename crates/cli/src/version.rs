//! `brimful --version --verbose`: the commit and the compiler of this program, and the features that this kernel
//! permits. Bug reports need these facts.

use crate::output::columns;
use brimful_core::text::wrap;
use brimful_monitor::host::{Status, examine_kernel};

/// Column at which the values begin.
const FACTS_COLUMN: usize = 10;

/// The version of this program, and one line for each other property. clap prints the name of the program before it.
pub fn verbose() -> String {
    let mut text = env!("CARGO_PKG_VERSION").to_owned();
    let width = columns().unwrap_or(usize::MAX);
    let mut add = |name: &str, fact: &str| {
        text += &format!("\n{name:FACTS_COLUMN$}{}", wrap(fact, FACTS_COLUMN, width).trim());
    };
    add("commit", env!("BRIMFUL_COMMIT"));
    add("target", env!("BRIMFUL_TARGET"));
    add("compiler", env!("BRIMFUL_COMPILER"));
    add("kernel", &rustix::system::uname().release().to_string_lossy());
    for finding in examine_kernel() {
        let is_built_in = finding.topic != "ebpf" || cfg!(feature = "ebpf");
        let permitted = if finding.status == Status::Ok { "permitted" } else { "not permitted" };
        match is_built_in {
            true => add(finding.topic, &format!("built in, {permitted} here ({})", finding.value)),
            false => add(finding.topic, "not built in"),
        }
    }
    text
}
