//! Where time can go, in order of precedence, and sums over it. All amounts are nanoseconds.

use std::fmt;

use musec_trace::StepCategory;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Where time goes. Earlier ones win where several go on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// The user's own code.
    User,
    /// The worker did not run at all.
    Stall,
    /// Objects to and from the store.
    Storage,
    /// Bytes between workers.
    Peer,
    /// Waiting for another worker's bytes.
    PeerWait,
    /// The worker's own work.
    Overhead,
    /// Behind an earlier command of the lane.
    Queue,
    /// In transit: wire, socket buffers, TLS.
    Network,
    /// The coordinator deciding.
    Coordinator,
    /// The program itself waiting.
    Wait,
    /// From the request to the engine's acceptance.
    Launch,
    /// From there to the connection.
    Start,
    /// From there to the hello.
    Handshake,
    /// From quit to the end.
    Teardown,
    /// After the last that was heard.
    Lost,
}

impl Category {
    /// All of them, in order of precedence.
    pub const ALL: [Self; 15] = [
        Self::User,
        Self::Stall,
        Self::Storage,
        Self::Peer,
        Self::PeerWait,
        Self::Overhead,
        Self::Queue,
        Self::Network,
        Self::Coordinator,
        Self::Wait,
        Self::Launch,
        Self::Start,
        Self::Handshake,
        Self::Teardown,
        Self::Lost,
    ];

    /// Its name, as it is shown and as JSON's key.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Stall => "stall",
            Self::Storage => "storage",
            Self::Peer => "peer",
            Self::PeerWait => "peer_wait",
            Self::Overhead => "overhead",
            Self::Queue => "queue",
            Self::Network => "network",
            Self::Coordinator => "coordinator",
            Self::Wait => "wait",
            Self::Launch => "launch",
            Self::Start => "start",
            Self::Handshake => "handshake",
            Self::Teardown => "teardown",
            Self::Lost => "lost",
        }
    }

    /// The row of the roll-up that it belongs to.
    #[must_use]
    pub const fn group(self) -> Group {
        match self {
            Self::User => Group::User,
            Self::Storage => Group::Storage,
            Self::Peer => Group::Messages,
            Self::PeerWait | Self::Wait => Group::Waiting,
            Self::Lost => Group::Lost,
            Self::Launch
            | Self::Start
            | Self::Handshake
            | Self::Coordinator
            | Self::Network
            | Self::Queue
            | Self::Overhead
            | Self::Stall
            | Self::Teardown => Group::Overhead,
        }
    }
}

impl From<StepCategory> for Category {
    fn from(category: StepCategory) -> Self {
        match category {
            StepCategory::User => Self::User,
            StepCategory::Storage => Self::Storage,
            StepCategory::Peer => Self::Peer,
            StepCategory::PeerWait => Self::PeerWait,
            StepCategory::Overhead => Self::Overhead,
            StepCategory::Wait => Self::Wait,
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Rows of the roll-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// What was not computing, storing or waiting.
    Overhead,
    /// The store.
    Storage,
    /// Between workers.
    Messages,
    /// The user's own code.
    User,
    /// Waiting for others.
    Waiting,
    /// Without result.
    Lost,
}

impl Group {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 6] =
        [Self::Overhead, Self::Storage, Self::Messages, Self::User, Self::Waiting, Self::Lost];

    /// Its name, as it is shown and as JSON's key.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overhead => "overhead",
            Self::Storage => "storage",
            Self::Messages => "messages",
            Self::User => "user",
            Self::Waiting => "waiting",
            Self::Lost => "lost",
        }
    }
}

macro_rules! sums {
    ($(#[$doc:meta])* $name:ident[$key:ident; $n:literal]) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name([u128; $n]);

        impl $name {
            /// The amount of one, in nanoseconds.
            #[must_use]
            pub const fn get(&self, key: $key) -> u128 {
                self.0[key as usize]
            }

            /// Adds `ns` nanoseconds to one.
            pub const fn add(&mut self, key: $key, ns: u128) {
                self.0[key as usize] += ns;
            }

            /// Adds all of `other`.
            pub fn add_all(&mut self, other: &Self) {
                for (mine, theirs) in self.0.iter_mut().zip(other.0) {
                    *mine += theirs;
                }
            }

            /// The sum, in nanoseconds.
            #[must_use]
            pub fn total(&self) -> u128 {
                self.0.iter().sum()
            }

            /// All amounts, zeros too, in order.
            pub fn iter(&self) -> impl Iterator<Item = ($key, u128)> + '_ {
                $key::ALL.iter().map(|key| (*key, self.get(*key)))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some($n))?;
                for (key, ns) in self.iter() {
                    map.serialize_entry(key.name(), &ns)?;
                }
                map.end()
            }
        }
    };
}

sums! {
    /// Nanoseconds by category. A sum fits: 2^64 lives of 2^64 ns each are below 2^128.
    Categories[Category; 15]
}
sums! {
    /// Nanoseconds by row of the roll-up.
    Rollup[Group; 6]
}

/// A life's parts: categories and what could not be accounted for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// By category.
    pub categories: Categories,
    /// In none of them, in nanoseconds.
    pub unaccounted_ns: u128,
}

impl Split {
    /// All of it, in nanoseconds.
    #[must_use]
    pub fn total(&self) -> u128 {
        self.categories.total() + self.unaccounted_ns
    }

    /// Adds all of `other`.
    pub fn add_all(&mut self, other: &Self) {
        self.categories.add_all(&other.categories);
        self.unaccounted_ns += other.unaccounted_ns;
    }
}

/// The roll-up of one attempt: of one without result all but its unaccounted time is lost.
#[must_use]
pub fn roll_up(split: &Split, without_result: bool) -> Rollup {
    let mut rollup = Rollup::default();
    if without_result {
        rollup.add(Group::Lost, split.categories.total());
        return rollup;
    }
    for (category, ns) in split.categories.iter() {
        rollup.add(category.group(), ns);
    }
    rollup
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_are_numbered_in_order_of_precedence() {
        assert!(Category::ALL.is_sorted());
        for (place, category) in Category::ALL.into_iter().enumerate() {
            assert_eq!(category as usize, place);
        }
        for (place, group) in Group::ALL.into_iter().enumerate() {
            assert_eq!(group as usize, place);
        }
    }

    #[test]
    fn the_roll_up_keeps_the_sum_and_loses_what_has_no_result() {
        let mut split = Split::default();
        for (place, category) in Category::ALL.into_iter().enumerate() {
            split.categories.add(category, 1 << place);
        }
        let kept = roll_up(&split, false);
        assert_eq!(kept.total(), split.categories.total());
        assert_eq!(kept.get(Group::Waiting), (1 << 4) + (1 << 9));
        let lost = roll_up(&split, true);
        assert_eq!(lost.get(Group::Lost), split.categories.total());
        assert_eq!(lost.total(), split.categories.total());
    }
}
