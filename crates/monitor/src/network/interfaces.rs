//! Reads the counters of network interfaces from /proc/net/dev.

use crate::counter::TimeSpan;
use crate::procfs::{number, words};
use brimful_core::server::NetworkTraffic;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One interface at one moment: counters since it was created.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterfaceSample {
    /// Name of the interface.
    pub name: Arc<str>,
    /// Number of bytes received.
    pub rx_bytes: u64,
    /// Number of packets received.
    pub rx_packets: u64,
    /// Number of packets that arrived damaged.
    pub rx_errors: u64,
    /// Number of received packets that were dropped.
    pub rx_dropped: u64,
    /// Number of bytes sent.
    pub tx_bytes: u64,
    /// Number of packets sent.
    pub tx_packets: u64,
    /// Number of packets that could not be sent.
    pub tx_errors: u64,
    /// Number of packets dropped before they were sent.
    pub tx_dropped: u64,
    /// Number of collisions.
    pub collisions: u64,
}

/// Reads the interfaces. The names are kept, so that all samples share them in memory.
#[derive(Debug, Default)]
pub(super) struct Interfaces {
    names: Vec<Arc<str>>,
}

impl Interfaces {
    /// Parses /proc/net/dev: two heading lines, then one line for each interface. Returns `None` if the text does not
    /// have this form.
    pub fn read(&mut self, text: &[u8]) -> Option<Vec<InterfaceSample>> {
        let mut lines = text.split_inclusive(|&byte| byte == b'\n').skip(1);
        lines.next().filter(|heading| heading.ends_with(b"\n"))?;
        let mut interfaces = Vec::with_capacity(self.names.len());
        for line in lines {
            interfaces.extend(self.interface(line, interfaces.len()));
        }
        Some(interfaces)
    }

    fn interface(&mut self, line: &[u8], index: usize) -> Option<InterfaceSample> {
        let line = line.strip_suffix(b"\n")?;
        // A name contains no colon. Old drivers may print a number directly after the colon.
        let colon = line.iter().position(|&byte| byte == b':')?;
        let mut counters = [0; 16];
        let mut words = words(&line[colon + 1..]);
        for counter in &mut counters {
            *counter = number(words.next()?)?;
        }
        // Columns of received data: bytes packets errs drop fifo frame compressed multicast. Columns of sent data begin
        // with: bytes packets errs drop fifo colls.
        let [rx_bytes, rx_packets, rx_errors, rx_dropped, _, _, _, _, tx_bytes, tx_packets, tx_errors, tx_dropped, ..] =
            counters;
        let name = self.name(line[..colon].trim_ascii(), index);
        Some(InterfaceSample {
            name,
            rx_bytes,
            rx_packets,
            rx_errors,
            rx_dropped,
            tx_bytes,
            tx_packets,
            tx_errors,
            tx_dropped,
            collisions: counters[13],
        })
    }

    /// The name of the interface at this index, in the memory that earlier samples also use. The order of interfaces
    /// changes only when one is added or removed.
    fn name(&mut self, name: &[u8], index: usize) -> Arc<str> {
        if let Some(known) = self.names.get(index).filter(|known| known.as_bytes() == name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = String::from_utf8_lossy(name).into();
        self.names.truncate(index);
        self.names.push(Arc::clone(&name));
        name
    }
}

/// Traffic of each interface between two samples. An interface is left out if it is missing in a sample, or if its
/// counters were reset.
pub(super) fn since(
    earlier: &[InterfaceSample],
    now: &[InterfaceSample],
    over: TimeSpan,
) -> BTreeMap<String, NetworkTraffic> {
    let traffic = |(index, now): (usize, &InterfaceSample)| {
        let same = |before: &&InterfaceSample| before.name == now.name;
        let before = earlier.get(index).filter(same).or_else(|| earlier.iter().find(same))?;
        Some((now.name.to_string(), now.since(before, over)?))
    };
    now.iter().enumerate().filter_map(traffic).collect()
}

/// The sum of all interfaces; `None` if there are none.
pub(super) fn together<'t>(interfaces: impl Iterator<Item = &'t NetworkTraffic>) -> Option<NetworkTraffic> {
    interfaces.copied().reduce(|a, b| NetworkTraffic {
        rx_packets_per_s: a.rx_packets_per_s + b.rx_packets_per_s,
        tx_packets_per_s: a.tx_packets_per_s + b.tx_packets_per_s,
        rx_bytes_per_s: a.rx_bytes_per_s + b.rx_bytes_per_s,
        tx_bytes_per_s: a.tx_bytes_per_s + b.tx_bytes_per_s,
        rx_errors_per_s: a.rx_errors_per_s + b.rx_errors_per_s,
        tx_errors_per_s: a.tx_errors_per_s + b.tx_errors_per_s,
        rx_dropped_per_s: a.rx_dropped_per_s + b.rx_dropped_per_s,
        tx_dropped_per_s: a.tx_dropped_per_s + b.tx_dropped_per_s,
        collisions_per_s: a.collisions_per_s + b.collisions_per_s,
    })
}

impl InterfaceSample {
    /// Computes the traffic since an earlier sample. Returns `None` if a counter has fallen: another interface has
    /// taken the name.
    fn since(&self, before: &InterfaceSample, over: TimeSpan) -> Option<NetworkTraffic> {
        let per_s = |counter: fn(&InterfaceSample) -> u64| over.per_s(counter(before), counter(self));
        Some(NetworkTraffic {
            rx_packets_per_s: per_s(|i| i.rx_packets)?,
            tx_packets_per_s: per_s(|i| i.tx_packets)?,
            rx_bytes_per_s: per_s(|i| i.rx_bytes)?,
            tx_bytes_per_s: per_s(|i| i.tx_bytes)?,
            rx_errors_per_s: per_s(|i| i.rx_errors)?,
            tx_errors_per_s: per_s(|i| i.tx_errors)?,
            rx_dropped_per_s: per_s(|i| i.rx_dropped)?,
            tx_dropped_per_s: per_s(|i| i.tx_dropped)?,
            collisions_per_s: per_s(|i| i.collisions)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_core::Nanos;
    use proptest::prelude::*;

    const HEADINGS: &str = "Inter-|   Receive                                                |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n";
    const OVER: TimeSpan = TimeSpan(Nanos::from_secs(2));

    fn read(lines: &str) -> Vec<InterfaceSample> {
        Interfaces::default().read(format!("{HEADINGS}{lines}").as_bytes()).unwrap()
    }

    /// A line with the counters `n` to `n + 15`.
    fn line(name: &str, n: u64) -> String {
        let counters: Vec<String> = (n..n + 16).map(|counter| counter.to_string()).collect();
        format!("{name:>6}: {}\n", counters.join("   "))
    }

    #[test]
    fn each_counter_is_of_its_column() {
        let found = read(&line("eth0", 101));
        let expected = InterfaceSample {
            name: "eth0".into(),
            rx_bytes: 101,
            rx_packets: 102,
            rx_errors: 103,
            rx_dropped: 104,
            tx_bytes: 109,
            tx_packets: 110,
            tx_errors: 111,
            tx_dropped: 112,
            collisions: 114,
        };
        assert_eq!(found, std::slice::from_ref(&expected));
        let close = "eth0:101 102 103 104 105 106 107 108 109 110 111 112 113 114 115 116\n";
        assert_eq!(read(close), [expected]);
    }

    #[test]
    fn an_interface_that_comes_goes_or_counts_anew_is_left_out() {
        let text = |interfaces: &[(&str, u64)]| interfaces.iter().map(|&(name, n)| line(name, n)).collect::<String>();
        let mut watch = Interfaces::default();
        let mut read = |interfaces| watch.read(format!("{HEADINGS}{}", text(interfaces)).as_bytes()).unwrap();
        let before = read(&[("lo", 10), ("veth1", 500), ("eth0", 100), ("wg0", 900)]);
        let after = read(&[("lo", 14), ("eth0", 106), ("wg0", 20), ("veth2", 70)]);
        let rates = since(&before, &after, OVER);
        assert_eq!(rates.keys().collect::<Vec<_>>(), ["eth0", "lo"]);
        assert_eq!((rates["lo"].rx_bytes_per_s, rates["eth0"].collisions_per_s), (2.0, 3.0));
        let all = together(rates.values()).unwrap();
        assert_eq!((all.tx_packets_per_s, all.rx_dropped_per_s), (5.0, 5.0));
        let names = |sample: &[InterfaceSample]| sample.iter().map(|i| i.name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(&after), ["lo", "eth0", "wg0", "veth2"]);
        assert!(since(&before, &[], OVER).is_empty());
        assert_eq!(together(std::iter::empty()), None, "the sum of no interfaces is unknown, not zero");
    }

    #[test]
    fn a_file_that_ends_early_gives_whole_lines_only() {
        let text = format!("{HEADINGS}{}{}", line("lo", 10), line("eth0", 100));
        let whole = read(&(line("lo", 10) + &line("eth0", 100)));
        for length in 0..text.len() {
            let Some(found) = Interfaces::default().read(&text.as_bytes()[..length]) else {
                assert!(length < HEADINGS.len());
                continue;
            };
            assert_eq!(found, whole[..found.len()], "{length}");
            assert!(found.len() < 2);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(line in "[a-z ]{0,8}:?([0-9]{0,22} ?){0,20}\n?", tail in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut text = format!("{HEADINGS}{line}").into_bytes();
            text.extend(&tail);
            let mut watch = Interfaces::default();
            let _ = (watch.read(&text), watch.read(&tail), watch.read(&text));
        }
    }
}
