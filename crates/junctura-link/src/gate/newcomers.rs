//! Clients that have connected and are not let in yet.
//!
//! Their number is bounded, and a new one is always accepted: when there are too many, the oldest one of the address with
//! the most newcomers is evicted. A client that completes its greeting within milliseconds is admitted while untrusted
//! clients, from its own address or another one, open connections and send nothing; only a flood that replaces all
//! newcomers within these milliseconds keeps it out. No input or output happens here.

use std::collections::VecDeque;
use std::net::IpAddr;

/// Newcomers at a time, at most.
pub(crate) const NEWCOMERS_MAX: usize = 128;
/// Newcomers of one address at a time, at most. For IPv6 all addresses of a /64 network are one.
pub(crate) const PER_ADDRESS_MAX: usize = 96;
/// Evicted newcomers whose threads have not ended, at most.
pub(crate) const EVICTED_MAX: usize = 64;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct GateNewcomers {
    /// The oldest first.
    waiting: VecDeque<(u64, IpAddr)>,
    evicted: usize,
}

/// The result for a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NewcomerFate {
    Free,
    /// The place of this one, which must end.
    Of(u64),
    /// There is none: the evicted ones are still ending.
    None,
}

impl GateNewcomers {
    /// Adds newcomer `number`, and names the one that is evicted for it.
    pub(crate) fn add(&mut self, number: u64, address: IpAddr) -> NewcomerFate {
        let origin = origin(address);
        let place = if self.count(origin) >= PER_ADDRESS_MAX {
            self.evict(origin)
        } else if self.waiting.len() >= NEWCOMERS_MAX {
            let crowded = self.waiting.iter().rev().max_by_key(|(_, origin)| self.count(*origin));
            let crowded = crowded.map(|(_, origin)| *origin);
            crowded.map_or(NewcomerFate::None, |origin| self.evict(origin))
        } else {
            NewcomerFate::Free
        };
        if place != NewcomerFate::None {
            self.waiting.push_back((number, origin));
        }
        place
    }

    /// Evicts the oldest newcomer of all, if there is one.
    pub(crate) fn evict_oldest(&mut self) -> NewcomerFate {
        let oldest = self.waiting.front().map(|(_, origin)| *origin);
        oldest.map_or(NewcomerFate::None, |origin| self.evict(origin))
    }

    /// Removes a newcomer that was admitted or has ended. False: it was evicted before.
    pub(crate) fn remove(&mut self, number: u64) -> bool {
        let at = self.waiting.iter().position(|(waiting, _)| *waiting == number);
        at.and_then(|at| self.waiting.remove(at)).is_some()
    }

    /// The thread of an evicted newcomer ends.
    pub(crate) fn forget_evicted(&mut self) {
        self.evicted -= 1;
    }

    /// Whether one more newcomer is certain to get a place.
    pub(crate) fn can_evict(&self) -> bool {
        self.evicted < EVICTED_MAX
    }

    /// Newcomers now.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    fn count(&self, origin: IpAddr) -> usize {
        self.waiting.iter().filter(|(_, other)| *other == origin).count()
    }

    fn evict(&mut self, origin: IpAddr) -> NewcomerFate {
        if !self.can_evict() {
            return NewcomerFate::None;
        }
        let at = self.waiting.iter().position(|(_, other)| *other == origin);
        let oldest = at.and_then(|at| self.waiting.remove(at));
        oldest.map_or(NewcomerFate::None, |(number, _)| {
            self.evicted += 1;
            NewcomerFate::Of(number)
        })
    }
}

/// All addresses that one host can easily have.
fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_oldest_of_one_address_goes_for_its_newest() {
        let mut newcomers = GateNewcomers::default();
        let one = address("127.0.0.1");
        for number in 0..PER_ADDRESS_MAX as u64 {
            assert_eq!(newcomers.add(number, one), NewcomerFate::Free);
        }
        assert_eq!(newcomers.add(1000, one), NewcomerFate::Of(0));
        assert_eq!(newcomers.add(1001, address("::ffff:127.0.0.1")), NewcomerFate::Of(1));
        assert!(newcomers.remove(2) && !newcomers.remove(2) && !newcomers.remove(0));
        assert_eq!(newcomers.add(1002, one), NewcomerFate::Free);
        assert_eq!(newcomers.len(), PER_ADDRESS_MAX);
        // Others are not concerned.
        for number in 2000..2000 + (NEWCOMERS_MAX - PER_ADDRESS_MAX) as u64 {
            assert_eq!(newcomers.add(number, address("127.0.0.2")), NewcomerFate::Free);
        }
        assert_eq!(newcomers.add(3000, address("127.0.0.3")), NewcomerFate::Of(3));
    }

    #[test]
    fn an_honest_newcomer_outlasts_as_many_strangers_as_there_are_places() {
        let mut newcomers = GateNewcomers::default();
        for number in 0..10_000 {
            newcomers.add(number, address("10.0.0.1"));
            newcomers.evicted = 0;
        }
        // From the same address: older ones are evicted first.
        newcomers.add(10_000, address("10.0.0.1"));
        for number in 10_001..10_000 + PER_ADDRESS_MAX as u64 {
            assert_ne!(newcomers.add(number, address("10.0.0.1")), NewcomerFate::Of(10_000));
            newcomers.evicted = 0;
        }
        assert!(newcomers.remove(10_000));
        // From another one: for as long as the strangers have the most.
        newcomers.add(20_000, address("10.0.0.2"));
        for number in 20_001..30_000 {
            assert_ne!(newcomers.add(number, address("10.0.0.1")), NewcomerFate::Of(20_000));
            newcomers.evicted = 0;
        }
        assert!(newcomers.remove(20_000));
    }

    #[test]
    fn those_that_do_not_go_keep_new_ones_out() {
        let mut newcomers = GateNewcomers::default();
        let many = |number: u64| IpAddr::V6((u128::from(number) << 64).into());
        for number in 0..(NEWCOMERS_MAX + EVICTED_MAX) as u64 {
            assert_ne!(newcomers.add(number, many(number)), NewcomerFate::None);
        }
        assert_eq!(newcomers.add(1000, many(1000)), NewcomerFate::None);
        assert_eq!(newcomers.evict_oldest(), NewcomerFate::None);
        assert_eq!(newcomers.len(), NEWCOMERS_MAX);
        newcomers.forget_evicted();
        // Among addresses with equal numbers the oldest newcomer is evicted.
        assert_eq!(newcomers.add(1000, many(1000)), NewcomerFate::Of(EVICTED_MAX as u64));
    }

    #[test]
    fn a_network_is_one_address() {
        assert_eq!(origin(address("2001:db8::1")), origin(address("2001:db8::2:3:4:5")));
        assert_ne!(origin(address("2001:db8::1")), origin(address("2001:db8:0:1::1")));
        assert_ne!(origin(address("10.0.0.1")), origin(address("10.0.0.2")));
    }
}
