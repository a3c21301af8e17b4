//! Tests that another user of the machine cannot disturb a test bed. Needs root, like the test bed itself.

use crate::program::{Running, brimful, lock_machine_exclusively};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};

#[test]
fn another_users_lock_on_the_names_of_networks_does_not_block_a_test_bed() {
    let _machine = lock_machine_exclusively();
    let existed = fs::create_dir("/run/netns").is_err();
    let names = File::open("/run/netns").unwrap();
    flock(&names, FlockOperation::LockExclusive).unwrap();
    let done = Running::start(brimful(&["testbed", "--", "ip", "netns", "exec", "server", "true"])).finish();
    drop(names);
    if !existed {
        fs::remove_dir("/run/netns").unwrap();
    }
    done.exits(&[0]);
}
