//! The list of the groups of metrics. Code that applies to every group is written once: `per_group!` evaluates an
//! expression for each group, and `for_each_group!` runs a statement for each group.

use crate::group::Group;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A family of types: one type for each group of metrics, such as the type of the group's samples.
pub trait GroupValue {
    /// The type that belongs to the group `G`.
    type Value<G: Group>;
}

/// A group in the list at the end of this file.
pub trait ListedGroup: Group + Sized {
    /// The group's name.
    const NAME: GroupName;

    /// The value that `all` contains for this group.
    fn get<K: GroupValue>(all: &PerGroup<K>) -> &K::Value<Self>;

    /// A mutable reference to the value that `all` contains for this group.
    fn get_mut<K: GroupValue>(all: &mut PerGroup<K>) -> &mut K::Value<Self>;
}

macro_rules! groups {
    ($d:tt $($(#[$doc:meta])* $field:ident $Name:ident $Group:path,)+) => {
        /// Names of the groups.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum GroupName {
            $($(#[$doc])* $Name,)+
        }

        impl GroupName {
            /// All groups.
            pub const ALL: [GroupName; [$(stringify!($field)),+].len()] = [$(GroupName::$Name),+];

            /// The group's name, as it is used on the command line, in documents and in the names of log files.
            pub fn name(self) -> &'static str {
                match self {
                    $(GroupName::$Name => stringify!($field),)+
                }
            }
        }

        /// One value for each group; `K` determines the types of the values.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct PerGroup<K: GroupValue> {
            $($(#[$doc])* pub $field: K::Value<$Group>,)+
        }

        $(impl ListedGroup for $Group {
            const NAME: GroupName = GroupName::$Name;

            fn get<K: GroupValue>(all: &PerGroup<K>) -> &K::Value<Self> {
                &all.$field
            }

            fn get_mut<K: GroupValue>(all: &mut PerGroup<K>) -> &mut K::Value<Self> {
                &mut all.$field
            }
        })+

        /// Evaluates an expression for each group `G`, and collects the values in a [`PerGroup`].
        macro_rules! per_group {
            ($d G:ident => $d each:expr) => {
                $crate::groups::PerGroup { $($field: { type $d G = $Group; $d each },)+ }
            };
        }

        /// Runs a statement for each group `G`.
        macro_rules! for_each_group {
            ($d G:ident => $d each:expr) => {{ $({ type $d G = $Group; $d each })+ }};
        }
    };
}

groups! { $
    /// The machine: CPUs, disks, paging, interrupts, context switches.
    kernel Kernel crate::kernel::KernelGroup,
    /// The server's programs.
    process Process crate::process::ProcessGroup,
    /// Interfaces and TCP of the server's network namespace.
    network Network crate::network::NetworkGroup,
    /// The server's ports: listening sockets and connections.
    connections Connections crate::connections::ConnectionsGroup,
    /// Requests, from counters that the Server Module keeps inside the server.
    module Module crate::module::ModuleGroup,
    /// Requests, measured by tracepoints at the server's sockets. This is the only group that slows the server down.
    requests Requests crate::requests::RequestsGroup,
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for GroupName {
    type Err = String;

    fn from_str(text: &str) -> Result<GroupName, String> {
        GroupName::ALL.into_iter().find(|group| group.name() == text).ok_or_else(|| {
            let [first @ .., last] = GroupName::ALL.map(GroupName::name);
            format!("`{text}` is no group of figures: choose among {} and {last}", first.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_refused() {
        for group in GroupName::ALL {
            assert_eq!(group.name().parse(), Ok(group));
        }
        assert!("disk".parse::<GroupName>().unwrap_err().contains("network, connections, module and requests"));
    }

    #[test]
    fn each_group_has_what_is_called_like_it() {
        struct Names;
        impl GroupValue for Names {
            type Value<G: Group> = GroupName;
        }
        let mut names: PerGroup<Names> = per_group!(G => G::NAME);
        assert_eq!((names.kernel, names.connections), (GroupName::Kernel, GroupName::Connections));
        let mut seen = Vec::new();
        for_each_group!(G => {
            seen.push(*G::get(&names));
            *G::get_mut(&mut names) = GroupName::Kernel;
        });
        assert_eq!(seen, GroupName::ALL);
        assert_eq!(names.connections, GroupName::Kernel);
    }
}
