//! The part of a run's report about a server with several addresses: the share of the calls that each received and, in
//! a full report, the results of each.

use super::Detail;
use super::layout::{fact, row, table, time_or_dash};
use super::percentile::{self, P50, P99};
use brimful_core::quantity::{count, percent};
use brimful_core::record::{AddressRecord, Record};

/// Maximum number of addresses in one line.
const MAX_NAMED: usize = 4;

/// The lines about the server's addresses; empty if it has only one.
pub(super) fn addresses(record: &Record, detail: Detail) -> Vec<String> {
    let addresses = &record.addresses;
    match detail {
        _ if addresses.len() < 2 => Vec::new(),
        Detail::Main => vec![fact("Addresses", &shares(addresses))],
        Detail::Full => {
            let rows: Vec<_> = addresses.iter().map(figures).collect();
            vec![table(
                &["Address", "calls", "share", "connections", "completed", "failed", "response", "p50", "p99"],
                &rows,
            )]
        }
    }
}

fn shares(addresses: &[AddressRecord]) -> String {
    let with_failures = |address: &AddressRecord| {
        let failed = if address.failed > 0 { format!(" ({} failed)", count(address.failed)) } else { String::new() };
        format!("{} {}{failed}", address.address, percent(address.share))
    };
    if addresses.len() <= MAX_NAMED {
        let shares: Vec<String> = addresses.iter().map(with_failures).collect();
        return format!("{} of the calls", shares.join(", "));
    }
    let shares = || addresses.iter().map(|address| address.share);
    let least = percent(shares().fold(1.0, f64::min));
    let most = percent(shares().fold(0.0, f64::max));
    format!("{}, each with {least} to {most} of the calls (--full lists them)", addresses.len())
}

fn figures(address: &AddressRecord) -> Vec<String> {
    let response = address.response_time_us.as_ref();
    row(
        &address.address,
        [
            count(address.calls),
            percent(address.share),
            count(address.connections),
            count(address.completed),
            count(address.failed),
            time_or_dash(response.map(|summary| summary.mean)),
            percentile::cell(P50, response),
            percentile::cell(P99, response),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{record, summary};
    use super::*;

    fn of_addresses(shares: &[(&str, f64, u64)]) -> Record {
        let address = |&(address, share, failed): &(&str, f64, u64)| AddressRecord {
            address: address.to_owned(),
            connections: 4,
            calls: (share * 1000.0) as u64,
            share,
            completed: (share * 1000.0) as u64 - failed,
            failed,
            response_time_us: summary(1e3),
        };
        Record { addresses: shares.iter().map(address).collect(), ..record() }
    }

    #[test]
    fn one_address_goes_without_saying_and_several_with_their_shares() {
        let text = |record: &Record| addresses(record, Detail::Main).join("\n");
        assert_eq!(text(&of_addresses(&[("192.0.2.1:80", 1.0, 0)])), "");
        let two = text(&of_addresses(&[("192.0.2.1:80", 0.6, 0), ("192.0.2.2:80", 0.4, 7)]));
        assert_eq!(two, "Addresses   192.0.2.1:80 60.0 %, 192.0.2.2:80 40.0 % (7 failed) of the calls");
        let five = text(&of_addresses(&[("a", 0.1, 0), ("b", 0.2, 0), ("c", 0.2, 0), ("d", 0.2, 0), ("e", 0.3, 0)]));
        assert_eq!(five, "Addresses   5, each with 10.0 % to 30.0 % of the calls (--full lists them)");
    }

    #[test]
    fn each_address_has_its_times_where_all_figures_are_asked_for() {
        let record = of_addresses(&[("192.0.2.1:80", 0.6, 0), ("192.0.2.2:80", 0.4, 7)]);
        let text = addresses(&record, Detail::Full).join("\n");
        let words: Vec<&str> = text.lines().nth(2).unwrap().split_whitespace().collect();
        assert_eq!(words[..7], ["192.0.2.2:80", "400", "40.0", "%", "4", "393", "7"], "{text}");
    }
}
