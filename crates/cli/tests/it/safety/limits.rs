//! Tests that the program rejects values that need more memory than any machine has, and arrivals that would take too
//! long to generate.

use crate::program::run;
use brimful_testkit::RawServer;

#[test]
fn impossible_numbers_of_clients_are_refused_before_memory_is_allocated() {
    let server = RawServer::content_length("hello");
    let (url, most) = (server.url(), u64::MAX.to_string());
    for flag in ["--clients", "--s-clients"] {
        run(&["load", &url, "-d", "1s", flag, &most]).fails(2, "ask for at most 10000000");
    }
    run(&["load", &url, "-d", "1s", "--clients", "9999999"]).fails(3, "the descriptor limit leaves room for");
    run(&["load", &url, "-d", "1s", "--rate", "10", "--threads", &most]).fails(2, "give --threads at most 1024");
}

#[test]
fn arrivals_that_take_too_long_to_generate_are_refused() {
    let server = RawServer::content_length("hello");
    let url = server.url();
    for (rate, arrivals, why) in [
        ("10", "steps:1e300@1ns", "a rate of 0 or from 1e-9 to 1e9"),
        ("10", "steps:1e308@1s,1e308@1s", "a rate of 0 or from 1e-9 to 1e9"),
        ("10", "steps:1@1ns", "let its steps or bursts last longer, or make 50,000 calls per second or more"),
        ("0.0001", "mmpp:2,0.1,1ms", "changes its rate too often for 0.0001 calls per second"),
        ("0.001", "selfsimilar:0.8,pareto", "changes its rate too often for 0.001 calls per second"),
    ] {
        run(&["load", &url, "-d", "1s", "--rate", rate, "--arrivals", arrivals]).fails(2, why);
    }
}
