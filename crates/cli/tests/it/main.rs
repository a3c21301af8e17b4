//! Tests of the binary `brimful`: help, documents, messages, exit codes, signals.
//!
//! Only counts, texts and exit codes are asserted, never times, because the machine may be busy with other programs.
//! Golden files are rewritten by `BRIMFUL_BLESS=1 cargo test -p brimful-cli`.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bad_input;
mod bad_servers;
mod calibrate;
mod characterize;
mod choosers;
mod circle;
mod doctor;
mod documents;
mod examples;
mod first_commands;
mod foreign_text;
mod habits;
mod help;
mod http2;
mod httperf;
mod limits;
mod load;
mod look;
mod manual;
mod merge;
mod module;
mod module_demands;
mod other_tools;
mod output;
mod plan;
mod plan_calibrate;
mod plan_docs;
mod plan_forecast;
mod plan_known;
mod plan_paper;
mod plan_site;
mod plan_solve;
mod plan_what_if;
mod program;
mod redirects;
mod regressions;
mod remote;
mod replay;
mod safety;
mod sessions;
mod shapes;
mod signals;
mod small_disk;
mod stop_when;
mod survey;
mod sweep;
mod target;
mod testbed;
mod tls;
mod unix_socket;
mod warm_up;
mod watch;
