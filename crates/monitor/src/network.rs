//! Network group: interfaces and TCP of one network namespace.

use brimful_core::Nanos;
use brimful_core::server::Network;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The network at one moment: counters since boot, or since the namespace was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkSample {}

/// Reads it again and again.
#[derive(Debug)]
pub(crate) struct NetworkWatch {}

impl NetworkWatch {
    /// `net` is the directory that is /proc/net in the namespace.
    pub fn open(_net: &Path) -> NetworkWatch {
        NetworkWatch {}
    }

    pub fn read(&mut self, _buffer: &mut Vec<u8>) -> NetworkSample {
        NetworkSample::default()
    }

    /// Where its figures come from, or why there are none.
    pub fn sources(&self, _sources: &mut BTreeMap<String, String>) {}
}

impl NetworkSample {
    /// What happened since an earlier sample, `over` a time.
    pub(crate) fn since(&self, _earlier: &NetworkSample, _over: Nanos) -> Network {
        Network::default()
    }
}
