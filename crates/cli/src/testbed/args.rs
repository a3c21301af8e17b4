//! The flags of `brimful testbed`.

use crate::flags::values::parse_share_or_zero;
use brimful_core::Nanos;
use brimful_core::cpus::CpuList;
use brimful_testbed::{MAX_CLIENTS, RttRange};
use clap::Args;
use std::path::PathBuf;

/// The longest queueing delay that `--queue` accepts.
const MAX_QUEUE: Nanos = Nanos::from_secs(2);

const EXAMPLES: &str = "\
Examples:
  $ sudo brimful testbed --rtt 40ms --loss 1% -- sh -c 'ip netns exec server nginx; brimful load http://{server}/'";

/// Arguments of `brimful testbed`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TestbedArgs {
    /// Number of client hosts, which are named client1, client2 and so on
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=MAX_CLIENTS as u64))]
    pub clients: u64,
    /// Round-trip time between a client and the server, like 50ms; with A..B the clients' times are evenly spaced from A to B
    #[arg(long, value_name = "TIME[..TIME]", default_value = "0ms", conflicts_with = "rtts")]
    pub rtt: RttRange,
    /// Draw each connection's round-trip time from the histogram in this file: lines like `20ms..40ms, 0.25`
    #[arg(long, value_name = "FILE")]
    pub rtts: Option<PathBuf>,
    /// Share of the round-trip time that is spent from the client to the router
    #[arg(long, value_name = "SHARE", default_value = "50%", value_parser = parse_share_or_zero)]
    pub up_share: f64,
    /// Share of the packets that each client's link loses in each direction, like 0.5%
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = parse_share_or_zero)]
    pub loss: f64,
    /// Rate of each client's link in each direction, like 10mbit [default: unlimited]
    #[arg(long, value_name = "RATE", value_parser = bits_per_s)]
    pub rate: Option<f64>,
    /// Maximum time that a packet waits in the queue of --rate; packets that would wait longer are dropped
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = queue)]
    pub queue: Nanos,
    /// Share of the packets in each direction that are delayed further, by a quarter of their delay and at least 1 ms,
    /// so that later packets overtake them
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = parse_share_or_zero)]
    pub reorder: f64,
    /// CPUs for the server's receive work, like 0 or 0,2-3 [default: half of the CPUs that the router does not use]
    #[arg(long, value_name = "LIST")]
    pub server_cpus: Option<CpuList>,
    /// CPUs for the clients' receive work [default: the other half]
    #[arg(long, value_name = "LIST")]
    pub client_cpus: Option<CpuList>,
    /// CPU of the router [default: a CPU of its own if there are three, else the clients' last one]
    #[arg(long, value_name = "N")]
    pub router_cpu: Option<usize>,
    /// Seed of all random numbers [default: from the clock, and reported]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Write counts of packets, and how late the router forwarded them, to this file as JSON
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print nothing about the router on stderr
    #[arg(short, long)]
    pub quiet: bool,
    /// The command to run, with its arguments: {server} and {client 1} are replaced by IPv4 addresses, {server v6} by an IPv6
    /// address; `ip netns exec server …` starts a program on a host
    #[arg(value_name = "COMMAND", required = true, last = true)]
    pub command: Vec<String>,
}

/// The hidden command that `brimful testbed` starts as the first process inside the test bed. It starts the user's
/// command.
#[derive(Debug, Args)]
pub struct TestbedInitArgs {
    /// Process ID of `brimful testbed`. All processes of the command are ended when this process ends.
    pub parent: u32,
    /// The user's command, with its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}

/// Parses a rate in bits per second: `10mbit`, as for tc, or `10Mbit/s`.
pub fn bits_per_s(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not a rate of at least 8kbit: write it like 256kbit, 10mbit or 1gbit");
    let lower = text.to_ascii_lowercase();
    let number = lower.trim_end_matches("/s").strip_suffix("bit").ok_or_else(wrong)?;
    let scales = [('k', 1e3), ('m', 1e6), ('g', 1e9)];
    let scaled = scales.iter().find_map(|(unit, scale)| Some((number.strip_suffix(*unit)?, *scale)));
    let (number, scale) = scaled.unwrap_or((number, 1.0));
    let rate = number.trim().parse::<f64>().ok().map(|number| number * scale);
    rate.filter(|rate| rate.is_finite() && *rate >= 8e3).ok_or_else(wrong)
}

fn queue(text: &str) -> Result<Nanos, String> {
    let queue: Nanos = text.parse().map_err(|error: brimful_core::units::ParseUnitError| error.to_string())?;
    match queue <= MAX_QUEUE {
        true => Ok(queue),
        false => Err(format!("`{text}` is too long: a queue is at most {MAX_QUEUE}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_tc() {
        for (text, rate) in
            [("10mbit", 1e7), ("256kbit", 256e3), ("1.5Gbit/s", 1.5e9), ("64000bit", 64e3), ("10 Mbit", 1e7)]
        {
            assert_eq!(bits_per_s(text), Ok(rate), "{text}");
        }
        for text in ["", "10", "10mb", "10mbps", "-1mbit", "0mbit", "1kbit", "nanmbit", "infgbit", "1e400bit", "bit"] {
            assert!(bits_per_s(text).unwrap_err().contains("10mbit"), "{text}");
        }
    }

    #[test]
    fn shares_and_queues_have_bounds() {
        assert_eq!(
            (parse_share_or_zero("0%"), parse_share_or_zero("0.5%"), parse_share_or_zero("1")),
            (Ok(0.0), Ok(0.005), Ok(1.0))
        );
        for text in ["", "-1%", "101%", "nan", "half"] {
            assert!(parse_share_or_zero(text).is_err(), "{text}");
        }
        assert_eq!(queue("50ms"), Ok(Nanos::from_millis(50)));
        assert!(queue("3s").unwrap_err().contains("at most 2s") && queue("5").is_err());
    }
}
