//! `brimful doctor`: what this host allows, and what would mend each shortfall.

use crate::args::DoctorArgs;
use crate::exit::Exit;
use crate::output::{Painted, print_document, print_painted};
use brimful_monitor::host::{Finding, Status, examine};

/// Examines the host. Shortfalls are findings, not failures: the exit code is 0.
pub fn main(args: &DoctorArgs) -> anyhow::Result<Exit> {
    let findings = examine();
    if args.json {
        print_document(&(serde_json::to_string_pretty(&findings)? + "\n"))?;
    } else {
        print_painted(&text(&findings))?;
    }
    Ok(Exit::Ok)
}

fn text(findings: &[Finding]) -> Painted {
    use clap::builder::styling::AnsiColor::{Green, Red, Yellow};
    let mut text = Painted::default();
    for finding in findings {
        let (mark, colour) = match finding.status {
            Status::Ok => ("ok       ", Green),
            Status::Shortfall => ("shortfall", Red),
            Status::Unknown => ("unknown  ", Yellow),
        };
        text.styled(colour.on_default(), mark).plain(&format!("  {:<12} {}\n", finding.topic, finding.value));
        text.plain(&format!("{:24}{}\n", "", finding.means));
        if let Some(fix) = &finding.fix {
            text.plain(&format!("{:24}fix: {fix}\n", ""));
        }
    }
    let shortfalls = findings.iter().filter(|finding| finding.status == Status::Shortfall).count();
    text.plain(&match shortfalls {
        0 => "nothing on this host limits brimful noticeably\n".to_owned(),
        1 => "1 shortfall\n".to_owned(),
        n => format!("{n} shortfalls\n"),
    });
    text
}
