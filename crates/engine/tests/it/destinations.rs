//! Tests a server with several addresses, and a server whose address changes.

use crate::call_recorder::{completed, count};
use crate::case::{Case, on_each_engine};
use crate::support::Plan;
use brimful_engine::{Destination, NameLookup};
use brimful_testkit::RawServer;
use std::net::SocketAddr;
use std::sync::Arc;

on_each_engine!(
    connections_go_to_each_address_in_turn,
    kept_connections_are_spread_over_the_addresses_at_a_low_rate,
    shards_begin_at_different_addresses,
    addresses_of_another_family_than_the_source_are_left_out,
    a_moved_server_is_found_by_another_look_up,
);

fn servers() -> [RawServer; 2] {
    [(); 2].map(|()| RawServer::content_length("hello"))
}

fn connections(servers: &[RawServer; 2]) -> [usize; 2] {
    servers.each_ref().map(RawServer::connections)
}

fn at_both(case: Case, servers: &[RawServer; 2]) -> Plan {
    let [first, second] = servers.each_ref().map(RawServer::addr);
    let destination = Destination::new(first.into(), vec![second.into()], None);
    Plan::new(case, first).configure(|config| config.address = destination)
}

fn connections_go_to_each_address_in_turn(case: Case) {
    let servers = servers();
    let plan = at_both(case, &servers).calls(20).configure(|c| c.connections.calls_per_connection = Some(1));
    let calls = plan.run_closed(4);
    assert_eq!((count(&calls, completed), connections(&servers)), (20, [10, 10]));
    let to_first = calls.iter().filter(|call| call.address == 0).count();
    assert_eq!(to_first, 10);
}

fn shards_begin_at_different_addresses(case: Case) {
    let servers = servers();
    let mut plan = at_both(case, &servers).calls(2);
    plan.shards = 2;
    assert_eq!((count(&plan.run_closed(2), completed), connections(&servers)), (2, [1, 1]));
}

/// Makes one call at a time, so that one connection would be enough. Expects that the shard still opens a connection to
/// each address.
fn kept_connections_are_spread_over_the_addresses_at_a_low_rate(case: Case) {
    let servers = servers();
    let plan = at_both(case, &servers).calls(20);
    let calls = plan.run_closed(1);
    assert_eq!((count(&calls, completed), connections(&servers)), (20, [1, 1]));
    let to_first = calls.iter().filter(|call| call.address == 0).count();
    assert!((9..=11).contains(&to_first), "{to_first} of 20 calls");
}

fn addresses_of_another_family_than_the_source_are_left_out(case: Case) {
    let server = RawServer::content_length("hello");
    let other_family: SocketAddr = "[::1]:9".parse().unwrap();
    let destination = Destination::new(other_family.into(), vec![server.addr().into()], None);
    let plan = Plan::new(case, server.addr()).calls(4).configure(|config| {
        config.address = destination;
        config.connections.source = Some("127.0.0.1".parse().unwrap());
        config.connections.calls_per_connection = Some(1);
    });
    assert_eq!((count(&plan.run_closed(1), completed), server.connections()), (4, 4));
}

fn a_moved_server_is_found_by_another_look_up(case: Case) {
    let (old, new) = (RawServer::dies_after(5), RawServer::content_length("hello"));
    let moved = new.addr();
    let look_up = NameLookup(Arc::new(move |_: &[SocketAddr]| vec![moved]));
    let destination = Destination::new(old.addr().into(), Vec::new(), Some(look_up));
    let plan = Plan::new(case, old.addr()).calls(u64::MAX).configure(|config| {
        config.address = destination;
        config.window = brimful_core::Nanos::from_secs(300);
    });
    let run = plan.run_open_until(200.0, |_| new.connections() > 0);
    assert_eq!(run.observer.addresses, [old.addr(), new.addr()].map(|address| address.to_string()));
    assert!(run.observer.calls.iter().any(|call| call.address == 1), "calls go to the new address");
}
