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
use crate::credentials::hash;

/// The party whose requests are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RateLimitKey {
    /// A client address.
    Address(IpAddr),
    /// The requests of a client address whose credentials were refused. They do not use up what others have there.
    Refused(IpAddr),
    /// A user, from any address.
    User(Uuid),
}

impl From<ClientIp> for RateLimitKey {
    fn from(address: ClientIp) -> Self {
        Self::Address(network(address))
    }
}

impl RateLimitKey {
    /// The requests of a client address with refused credentials.
    pub fn refused(address: ClientIp) -> Self {
        Self::Refused(network(address))
    }
}

/// An IPv6 address counts by its first 64 bits, as a client can choose the others.
fn network(ClientIp(address): ClientIp) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address @ IpAddr::V4(_) => address,
    }
}

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

/// Failed look-ups of credentials that one address may cause at once.
const FAILED_LOOK_UPS: u32 = 100;

/// The time after which it may cause another one.
const LOOK_UP_INTERVAL: Duration = Duration::from_millis(200);

/// How long a refused credential is refused without a look-up.
const REFUSED_FOR: Duration = Duration::from_mins(1);

/// Limits the look-ups of unknown credentials by client address. Only those count that find nobody, so an address with
/// many members is as good as one with few. A credential that was refused within the last minute is not looked up.
pub struct LookUpLimit {
    is_limited: bool,
    clock: Clock,
    state: Mutex<LookUps>,
}

#[derive(Default)]
struct LookUps {
    /// When the whole allowance of an address is available again.
    recovered: HashMap<RateLimitKey, Duration>,
    /// Until when a credential, by its hash, is refused.
    refused: HashMap<Vec<u8>, Duration>,
}

impl LookUpLimit {
    /// No failed look-up yet. Without a limit none ever counts.
    pub fn new(is_limited: bool, clock: &Clock) -> Self {
        Self { is_limited, clock: clock.clone(), state: Mutex::default() }
    }

    /// Whether this credential was refused a moment ago.
    pub fn was_refused(&self, credential: &str) -> bool {
        let (now, state) = (self.clock.elapsed(), self.state.lock().unwrap_or_else(PoisonError::into_inner));
        state.refused.get(&hash(credential)).is_some_and(|until| now < *until)
    }

    /// Whether an unknown credential from this address may be looked up.
    ///
    /// # Errors
    /// 429 after too many failed look-ups.
    pub fn check(&self, key: RateLimitKey) -> Result<(), Problem> {
        let (now, state) = (self.clock.elapsed(), self.state.lock().unwrap_or_else(PoisonError::into_inner));
        let recovered = state.recovered.get(&key).copied().unwrap_or_default();
        let earliest = (recovered + LOOK_UP_INTERVAL).saturating_sub(LOOK_UP_INTERVAL * FAILED_LOOK_UPS);
        if earliest <= now {
            return Ok(());
        }
        let detail = "Too many sessions, tokens or feeds that do not exist were requested from this address. Try again \
                      after `Retry-After` seconds.";
        let wait = earliest.saturating_sub(now).as_secs_f64().ceil();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the whole allowance")]
        Err(Problem::new(code::RATE_LIMITED).detail(detail).retry_after(wait as u64))
    }

    /// Counts a look-up that found nobody.
    pub fn record(&self, key: RateLimitKey) {
        if !self.is_limited {
            return;
        }
        let (now, mut state) = (self.clock.elapsed(), self.state.lock().unwrap_or_else(PoisonError::into_inner));
        if state.recovered.len() >= SWEEP as usize {
            state.recovered.retain(|_, recovered| now < *recovered);
        }
        let recovered = state.recovered.entry(key).or_default();
        // Look-ups that ran at the same time cost the whole allowance at most.
        *recovered = ((*recovered).max(now) + LOOK_UP_INTERVAL).min(now + LOOK_UP_INTERVAL * FAILED_LOOK_UPS);
    }

    /// Remembers a credential that was looked up and will not become good later.
    pub fn refuse(&self, credential: &str) {
        let (now, mut state) = (self.clock.elapsed(), self.state.lock().unwrap_or_else(PoisonError::into_inner));
        if state.refused.len() >= SWEEP as usize {
            state.refused.clear();
        }
        state.refused.insert(hash(credential), now + REFUSED_FOR);
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
        let clock = Clock::stopped();
        let limit = RateLimit::per_minute(2, &clock);
        let (one, other) = (address("198.51.100.1"), RateLimitKey::User(Uuid::nil()));
        assert_eq!((wait(&limit, one), wait(&limit, one)), (None, None));
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
        let limit = RateLimit::per_minute(0, &Clock::stopped());
        assert!((0..100_000).all(|_| limit.charge(RateLimitKey::User(Uuid::nil())).is_ok()));
    }

    #[test]
    fn those_with_their_whole_allowance_are_forgotten() {
        let clock = Clock::stopped();
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
    #[test]
    fn only_failed_look_ups_count_and_nobody_waits_longer_than_the_allowance() {
        let clock = Clock::stopped();
        let limit = LookUpLimit::new(true, &clock);
        let (one, other) = (address("198.51.100.1"), address("198.51.100.2"));
        // As many as run at once.
        for _ in 0..10 * FAILED_LOOK_UPS {
            limit.record(one);
        }
        let problem = limit.check(one).unwrap_err();
        assert_eq!(problem.headers(), [("retry-after", "1".to_owned())]);
        assert!(limit.check(other).is_ok());
        clock.advance(TimeDelta::seconds(1));
        let allowed = (0..10).filter(|_| limit.check(one).map(|()| limit.record(one)).is_ok()).count();
        assert_eq!(allowed, 5);
        clock.advance(TimeDelta::seconds(20));
        let allowed = (0..1000).filter(|_| limit.check(one).map(|()| limit.record(one)).is_ok()).count();
        assert_eq!(allowed, FAILED_LOOK_UPS as usize);
    }

    #[test]
    fn a_refused_credential_is_remembered_for_a_minute_and_only_so_many_are() {
        let clock = Clock::stopped();
        let limit = LookUpLimit::new(true, &clock);
        limit.refuse("a");
        assert!(limit.was_refused("a") && !limit.was_refused("b"));
        clock.advance(TimeDelta::seconds(60));
        assert!(!limit.was_refused("a"));
        for number in 0..=SWEEP {
            limit.refuse(&number.to_string());
        }
        assert!(limit.state.lock().unwrap().refused.len() <= SWEEP as usize);
        assert!(limit.was_refused(&SWEEP.to_string()));
    }
}
