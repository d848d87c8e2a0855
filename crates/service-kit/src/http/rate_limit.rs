//! Rate limits by user and by client address (contract, "Errors": 429). Each replica counts for itself.
#![expect(clippy::disallowed_types, reason = "the lock is held for one access to the map, never while waiting")]

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use common::{
    problem::{Problem, code},
    time::Clock,
};
use governor::{Quota, RateLimiter, clock, middleware::NoOpMiddleware, state::keyed::HashMapStateStore};
use uuid::Uuid;

use super::client_ip::ClientIp;

/// The party whose requests are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RateLimitKey {
    /// A client address.
    Address(IpAddr),
    /// A user, from any address.
    User(Uuid),
}

impl From<ClientIp> for RateLimitKey {
    /// An IPv6 address counts by its first 64 bits, as a client can choose the others.
    fn from(ClientIp(address): ClientIp) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
            address @ IpAddr::V4(_) => address,
        })
    }
}

/// Marks a request, in its extensions, as charged to its user. It is not charged to the client address then.
pub struct RateLimitCharged;

/// The service's clock as the limiter reads it.
#[derive(Clone)]
struct LimiterClock(Clock);

impl clock::Clock for LimiterClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A rate limit: a number of requests a minute for each key, all at once or spread (the generic cell rate algorithm).
pub struct RateLimit {
    limiter: Option<RateLimiter<RateLimitKey, HashMapStateStore<RateLimitKey>, LimiterClock, NoOpMiddleware<Duration>>>,
    clock: LimiterClock,
    charges: AtomicU32,
}

/// After this many requests, keys with their full allowance are removed.
const SWEEP: u32 = 10_000;

impl RateLimit {
    /// A limit of `most` requests a minute; 0 means no limit.
    #[must_use]
    pub fn per_minute(most: u32, clock: &Clock) -> Self {
        let clock = LimiterClock(clock.clone());
        let limiter = NonZeroU32::new(most)
            .map(|most| RateLimiter::new(Quota::per_minute(most), HashMapStateStore::default(), clock.clone()));
        Self { limiter, clock, charges: AtomicU32::new(0) }
    }

    /// Counts one request.
    pub fn charge(&self, key: RateLimitKey) -> Result<(), Problem> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        if self.charges.fetch_add(1, Ordering::Relaxed) % SWEEP == SWEEP - 1 {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
        limiter.check_key(&key).map_err(|until| {
            let wait = until.wait_time_from(clock::Clock::now(&self.clock));
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            Problem::new(code::RATE_LIMITED).retry_after(seconds.max(1))
        })
    }
}

/// Bad credentials a minute that one address may send. Further requests are refused without a look-up.
const BAD_CREDENTIALS: u32 = 60;

/// The period over which bad credentials are counted.
const PERIOD: Duration = Duration::from_mins(1);

/// Counts bad credentials by client address.
pub struct BadCredentials {
    is_limited: bool,
    clock: Clock,
    counts: Mutex<HashMap<RateLimitKey, (Duration, u32)>>,
}

impl BadCredentials {
    /// No bad credential yet. Without a limit none is ever counted.
    #[must_use]
    pub fn new(is_limited: bool, clock: &Clock) -> Self {
        Self { is_limited, clock: clock.clone(), counts: Mutex::default() }
    }

    /// Whether credentials from this address may be looked up.
    pub fn check(&self, key: RateLimitKey) -> Result<(), Problem> {
        let (now, counts) = (self.clock.elapsed(), self.counts.lock().unwrap_or_else(PoisonError::into_inner));
        match counts.get(&key) {
            Some((start, count)) if *count >= BAD_CREDENTIALS && now < *start + PERIOD => {
                let rest = (*start + PERIOD).saturating_sub(now);
                let detail = "Too many sessions and tokens that are not valid came from this address. Try again after \
                              `Retry-After` seconds.";
                Err(Problem::new(code::RATE_LIMITED).detail(detail).retry_after(rest.as_secs() + 1))
            }
            _ => Ok(()),
        }
    }

    /// Counts a bad credential.
    pub fn record(&self, key: RateLimitKey) {
        if !self.is_limited {
            return;
        }
        let (now, mut counts) = (self.clock.elapsed(), self.counts.lock().unwrap_or_else(PoisonError::into_inner));
        if counts.len() >= SWEEP as usize {
            counts.retain(|_, (start, _)| now < *start + PERIOD);
        }
        let (start, count) = counts.entry(key).or_insert((now, 0));
        if now >= *start + PERIOD {
            (*start, *count) = (now, 0);
        }
        *count += 1;
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn address(text: &str) -> RateLimitKey {
        ClientIp(text.parse().unwrap()).into()
    }

    fn wait(limit: &RateLimit, key: RateLimitKey) -> Option<u64> {
        let problem = limit.charge(key).err()?;
        let (name, seconds) = &problem.headers()[0];
        assert_eq!(*name, "retry-after");
        seconds.parse().ok()
    }

    #[test]
    fn an_address_of_ipv6_counts_by_its_network() {
        assert_eq!(address("2001:db8:1:2::1"), address("2001:db8:1:2:ffff:ffff:ffff:ffff"));
        assert_ne!(address("2001:db8:1:2::1"), address("2001:db8:1:3::1"));
        assert_ne!(address("198.51.100.1"), address("198.51.100.2"));
        assert_eq!(address("::ffff:198.51.100.1"), address("198.51.100.1"));
    }

    #[test]
    fn only_a_caller_over_the_limit_waits_and_as_long_as_the_answer_says() {
        let clock = Clock::default();
        let limit = RateLimit::per_minute(2, &clock);
        let (one, other) = (address("198.51.100.1"), RateLimitKey::User(Uuid::nil()));
        assert_eq!((wait(&limit, one), wait(&limit, one)), (None, None));
        // Hardly any time has passed since the first: rounded up, the wait is the whole half minute.
        assert_eq!(wait(&limit, one), Some(30));
        assert_eq!(wait(&limit, other), None);
        clock.advance(TimeDelta::seconds(20));
        assert_eq!(wait(&limit, one), Some(10));
        clock.advance(TimeDelta::seconds(10));
        assert_eq!((wait(&limit, one), wait(&limit, one)), (None, Some(30)));
        clock.advance(TimeDelta::minutes(5));
        assert_eq!([(); 3].map(|()| wait(&limit, one)), [None, None, Some(30)]);
    }

    #[test]
    fn nothing_is_limited_by_zero() {
        let limit = RateLimit::per_minute(0, &Clock::default());
        assert!((0..100_000).all(|_| limit.charge(RateLimitKey::User(Uuid::nil())).is_ok()));
    }

    #[test]
    fn those_with_their_whole_allowance_are_forgotten() {
        let clock = Clock::default();
        let limit = RateLimit::per_minute(60, &clock);
        let count = || limit.limiter.as_ref().unwrap().len();
        for n in 0..SWEEP - 1 {
            limit.charge(RateLimitKey::User(Uuid::from_u128(n.into()))).unwrap();
        }
        assert_eq!(count(), SWEEP as usize - 1);
        clock.advance(TimeDelta::minutes(1));
        limit.charge(RateLimitKey::User(Uuid::max())).unwrap();
        assert_eq!(count(), 1);
    }
}
