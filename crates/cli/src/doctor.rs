//! `brimful doctor`: what this host allows, and what would mend each shortfall.

use crate::exit::Exit;
use crate::output::{Painted, columns, print, print_document, print_painted};
use brimful_core::text::wrap;
use brimful_monitor::host::{Finding, Status, TOPICS, examine};
use clap::Args;

const EXAMPLES: &str = "\
Exit code: 0 where nothing that was looked at is in the way, 3 where something is.

Examples:
  $ brimful doctor
  $ brimful doctor descriptors ports io_uring
  $ brimful doctor --script | sh";

/// `brimful doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, next_help_heading = "Output")]
pub struct DoctorArgs {
    /// Only these, like descriptors or io_uring [default: all]
    #[arg(value_name = "TOPIC", help_heading = None, value_parser = topic)]
    pub topics: Vec<String>,
    /// Print one shell script that mends every shortfall that a command can mend
    #[arg(long, conflicts_with = "json")]
    pub script: bool,
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}

/// Where what is said of a finding begins.
const SAID: usize = 24;

/// Examines the host. A script learns by the exit code whether something is in the way.
pub fn main(args: &DoctorArgs) -> anyhow::Result<Exit> {
    let mut findings = examine();
    findings.retain(|finding| args.topics.is_empty() || args.topics.iter().any(|topic| topic == finding.topic));
    if args.script {
        print(&script(&findings))?;
    } else if args.json {
        print_document(&(serde_json::to_string_pretty(&findings)? + "\n"))?;
    } else {
        print_painted(&text(&findings, columns().unwrap_or(usize::MAX)))?;
    }
    Ok(exit_of(&findings))
}

fn exit_of(findings: &[Finding]) -> Exit {
    let in_the_way = findings.iter().any(|finding| finding.status == Status::Shortfall);
    if in_the_way { Exit::Environment } else { Exit::Ok }
}

/// Reads the name of a finding.
pub fn topic(text: &str) -> Result<String, String> {
    match TOPICS.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("there are {}", TOPICS.join(", "))),
    }
}

/// Mends whatever a command can mend, until the next start of the machine; what it cannot is said in comments.
fn script(findings: &[Finding]) -> String {
    let mut script =
        "#!/bin/sh\n# What `brimful doctor` found in the way on this host. Settings last until it restarts.\n"
            .to_owned();
    for finding in findings.iter().filter(|finding| finding.status == Status::Shortfall) {
        script += &format!("\n# {}: {}\n", finding.topic, finding.value);
        script += &match (&finding.script, &finding.fix) {
            (Some(command), _) => format!("{command}\n"),
            (None, by_hand) => format!("# by hand: {}\n", by_hand.as_deref().unwrap_or_default()),
        };
    }
    script
}

/// In lines of so many columns, but for commands, which are to be copied.
fn text(findings: &[Finding], width: usize) -> Painted {
    use clap::builder::styling::AnsiColor::{Green, Red, Yellow};
    let mut text = Painted::default();
    for finding in findings {
        let (mark, colour) = match finding.status {
            Status::Ok => ("ok       ", Green),
            Status::Shortfall => ("shortfall", Red),
            Status::Unknown => ("unknown  ", Yellow),
        };
        let value = wrap(&finding.value, SAID, width);
        text.styled(colour.on_default(), mark).plain(&format!("  {:<12} {}", finding.topic, value.trim_start()));
        text.plain(&wrap(&finding.means, SAID, width));
        if let Some(fix) = &finding.fix {
            text.plain(&format!("{:SAID$}fix: {fix}\n", ""));
        }
    }
    let shortfalls = findings.iter().filter(|finding| finding.status == Status::Shortfall).count();
    text.plain(&match shortfalls {
        0 => "nothing on this host limits brimful noticeably\n".to_owned(),
        n => format!(
            "{n} shortfall{}; `brimful doctor --script` prints a script that mends what a command can mend\n",
            if n == 1 { "" } else { "s" }
        ),
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(topic: &'static str, status: Status, [fix, script]: [Option<&str>; 2]) -> Finding {
        let [fix, script] = [fix, script].map(|text| text.map(str::to_owned));
        Finding { topic, status, value: "7".to_owned(), means: "much".to_owned(), fix, script }
    }

    #[test]
    fn a_script_mends_what_it_can_and_names_the_rest() {
        let sysctl = "sudo sysctl -w net.core.somaxconn=4096";
        let findings = [
            finding("ports", Status::Ok, [None, None]),
            finding("somaxconn", Status::Shortfall, [Some(sysctl); 2]),
            finding("clock", Status::Unknown, [None, None]),
            finding("steal", Status::Shortfall, [Some("vmstat 1"), None]),
        ];
        let script = script(&findings);
        let commands: Vec<&str> = script.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        assert_eq!(commands, [sysctl]);
        assert!(script.starts_with("#!/bin/sh\n") && script.contains("\n# by hand: vmstat 1\n"), "{script}");
        assert_eq!([&findings[..1], &findings].map(exit_of), [Exit::Ok, Exit::Environment]);
        assert_eq!(exit_of(&findings[2..3]), Exit::Ok);
    }
}
