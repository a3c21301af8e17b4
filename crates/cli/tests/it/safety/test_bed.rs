//! A test bed beside another user of the machine. Needs root, as the test bed does.

use crate::program::{Running, brimful, own_machine};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};

#[test]
fn a_lock_that_another_user_holds_on_the_names_of_networks_holds_up_no_test_bed() {
    let _machine = own_machine();
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
