//! `brimful doctor`: examines the limits of this host, and names the command that raises each limit that is too low.

use crate::exit::Exit;
use crate::output::{StyledText, columns, print, print_document, print_styled};
use brimful_core::text::wrap;
use brimful_monitor::host::{FINDING_TOPICS, Finding, Status, examine};
use clap::Args;

const EXAMPLES: &str = "\
Exit code: 0 if there is no shortfall, 3 if there is one.

Examples:
  $ brimful doctor
  $ brimful doctor descriptors ports io_uring
  $ brimful doctor --script | sh";

/// Arguments of `brimful doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, next_help_heading = "Output")]
pub struct DoctorArgs {
    /// Examine only these topics, like descriptors or io_uring [default: all]
    #[arg(value_name = "TOPIC", help_heading = None, value_parser = topic)]
    pub topics: Vec<String>,
    /// Print one shell script that fixes every shortfall that a command can fix
    #[arg(long, conflicts_with = "json")]
    pub script: bool,
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}

/// Column at which the description of a finding begins.
const DESCRIPTION_COLUMN: usize = 24;

/// Examines the host and prints the findings. The exit code shows whether a limit is too low.
pub fn main(args: &DoctorArgs) -> anyhow::Result<Exit> {
    let mut findings = examine();
    findings.retain(|finding| args.topics.is_empty() || args.topics.iter().any(|topic| topic == finding.topic));
    if args.script {
        print(&script(&findings))?;
    } else if args.json {
        print_document(&(serde_json::to_string_pretty(&findings)? + "\n"))?;
    } else {
        print_styled(&text(&findings, columns().unwrap_or(usize::MAX)))?;
    }
    Ok(exit_code(&findings))
}

fn exit_code(findings: &[Finding]) -> Exit {
    let has_shortfall = findings.iter().any(|finding| finding.status == Status::Shortfall);
    if has_shortfall { Exit::EnvironmentError } else { Exit::Ok }
}

/// Parses the name of a topic, the kind of limit that a finding is about.
fn topic(text: &str) -> Result<String, String> {
    match FINDING_TOPICS.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("the topics are {}", FINDING_TOPICS.join(", "))),
    }
}

/// A shell script that raises limits that are too low, until the host restarts. A fix that needs more than a command is
/// a comment in the script.
fn script(findings: &[Finding]) -> String {
    let mut script =
        "#!/bin/sh\n# Fixes the shortfalls that `brimful doctor` found on this host. Settings last until it restarts.\n"
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

/// The findings in lines of at most `width` columns. Commands stay on one line so that they can be copied.
fn text(findings: &[Finding], width: usize) -> StyledText {
    use clap::builder::styling::AnsiColor::{Green, Red, Yellow};
    let mut text = StyledText::default();
    for finding in findings {
        let (mark, colour) = match finding.status {
            Status::Ok => ("ok       ", Green),
            Status::Shortfall => ("shortfall", Red),
            Status::Unknown => ("unknown  ", Yellow),
        };
        let value = wrap(&finding.value, DESCRIPTION_COLUMN, width);
        text.styled(colour.on_default(), mark).plain(&format!("  {:<12} {}", finding.topic, value.trim_start()));
        text.plain(&wrap(&finding.means, DESCRIPTION_COLUMN, width));
        if let Some(fix) = &finding.fix {
            text.plain(&format!("{:DESCRIPTION_COLUMN$}fix: {fix}\n", ""));
        }
    }
    let shortfalls = findings.iter().filter(|finding| finding.status == Status::Shortfall).count();
    text.plain(&match shortfalls {
        0 => "no limit of this host is too low for brimful\n".to_owned(),
        n => format!(
            "{n} shortfall{}; `brimful doctor --script` prints a script that fixes those that a command can fix\n",
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
    fn the_script_fixes_what_a_command_can_fix_and_names_the_rest() {
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
        assert_eq!([&findings[..1], &findings].map(exit_code), [Exit::Ok, Exit::EnvironmentError]);
        assert_eq!(exit_code(&findings[2..3]), Exit::Ok);
    }
}
