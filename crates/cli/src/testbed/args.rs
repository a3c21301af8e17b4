//! The flags of `brimful testbed`.

use crate::args::examples;
use brimful_core::Nanos;
use brimful_core::cpus::CpuList;
use brimful_testbed::{MAX_CLIENTS, RttRange};
use clap::Args;
use std::path::PathBuf;

/// Longest queue of a limited rate.
const MOST_QUEUE: Nanos = Nanos::from_secs(2);

/// `brimful testbed`.
#[derive(Debug, Args)]
#[command(after_help = examples::TESTBED)]
pub struct TestbedArgs {
    /// Client hosts, named client1, client2 and so on
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=MAX_CLIENTS as u64))]
    pub clients: u64,
    /// Round-trip time between a client and the server, like 50ms; of A..B the first client has A, the last B, the
    /// others lie evenly between
    #[arg(long, value_name = "TIME[..TIME]", default_value = "0ms", conflicts_with = "rtts")]
    pub rtt: RttRange,
    /// Draw a round-trip time for each connection from this histogram: lines like `20ms..40ms, 0.25`
    #[arg(long, value_name = "FILE")]
    pub rtts: Option<PathBuf>,
    /// Share of each round-trip time that is the way from the client to the router
    #[arg(long, value_name = "SHARE", default_value = "50%", value_parser = share)]
    pub up_share: f64,
    /// Share of the packets that each client's link loses, each way, like 0.5%
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = share)]
    pub loss: f64,
    /// Rate of each client's link, each way, like 10mbit [default: unlimited]
    #[arg(long, value_name = "RATE", value_parser = bits_per_s)]
    pub rate: Option<f64>,
    /// The longest that a packet waits for its turn at that rate; those that would wait longer are dropped
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = queue)]
    pub queue: Nanos,
    /// Share of the packets, each way, that are held back for a quarter of their delay and 1 ms at least, so that later
    /// ones overtake them
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = share)]
    pub reorder: f64,
    /// CPUs that do the server's receive work, like 0 or 0,2-3 [default: half of those the router leaves]
    #[arg(long, value_name = "LIST")]
    pub server_cpus: Option<CpuList>,
    /// CPUs that do the clients' receive work [default: the other half]
    #[arg(long, value_name = "LIST")]
    pub client_cpus: Option<CpuList>,
    /// CPU of the router [default: one of its own if there are three, else the clients' last]
    #[arg(long, value_name = "N")]
    pub router_cpu: Option<usize>,
    /// Seed of all randomness [default: from the clock, and reported]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Write what became of the packets, and how late they left the router, to this file as JSON
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Say nothing about the router on stderr
    #[arg(short, long)]
    pub quiet: bool,
    /// What to run, with its arguments: {server} and {client 1} are replaced by addresses, {server v6} by one of IPv6;
    /// `ip netns exec server …` starts a program on a host
    #[arg(value_name = "COMMAND", required = true, last = true)]
    pub command: Vec<String>,
}

/// What `brimful testbed` starts itself by.
#[derive(Debug, Args)]
pub struct InsideArgs {
    /// Whose end is the end of all.
    pub parent: u32,
    /// The command.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
}

/// Reads `0.5%` and `0.005`.
fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.trim().parse::<f64>().map(|x| x / scale).ok().filter(|x| (0.0..=1.0).contains(x));
    share.ok_or_else(|| format!("`{text}` is no share: write it like 0.5% or 0.005"))
}

/// Reads `10mbit`, as tc does, and `10Mbit/s`.
fn bits_per_s(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is no rate of at least 8kbit: write it like 256kbit, 10mbit or 1gbit");
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
    match queue <= MOST_QUEUE {
        true => Ok(queue),
        false => Err(format!("`{text}` is too long: a queue is {MOST_QUEUE} at most")),
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
        assert_eq!((share("0%"), share("0.5%"), share("1")), (Ok(0.0), Ok(0.005), Ok(1.0)));
        for text in ["", "-1%", "101%", "nan", "half"] {
            assert!(share(text).is_err(), "{text}");
        }
        assert_eq!(queue("50ms"), Ok(Nanos::from_millis(50)));
        assert!(queue("3s").unwrap_err().contains("2s at most") && queue("5").is_err());
    }
}
