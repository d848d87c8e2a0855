//! How often each caller may call (contract, "Errors": 429). An anonymous request is charged to its client's address
//! before anything is done for it; any other to its user, as soon as that is known. Counted in this process alone.

use std::{
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use actix_web::{
    Error, HttpMessage, HttpResponse,
    body::{BoxBody, MessageBody},
    dev::{ServiceRequest, ServiceResponse},
    middleware::Next,
    web::Data,
};
use common::{
    problem::{Problem, code},
    time::Clock,
};
use governor::{Quota, RateLimiter, clock, middleware::NoOpMiddleware, state::keyed::HashMapStateStore};
use uuid::Uuid;

use super::client::Address;
use crate::{error::Failure, server::AppState};

/// Whom something is charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RateLimitKey {
    /// Everybody behind an address.
    Address(IpAddr),
    /// A user, wherever they are.
    User(Uuid),
}

impl From<Address> for RateLimitKey {
    /// Of an IPv6 address its first 64 bits: the others are the client's to choose.
    fn from(Address(address): Address) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
            address @ IpAddr::V4(_) => address,
        })
    }
}

/// That a request has been charged to whom it is from, in its extensions.
pub struct RateLimitCharged;

/// The service's clock, for the limiter.
#[derive(Clone)]
struct Steady(Clock);

impl clock::Clock for Steady {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// How often each may do one thing: so many times in a minute, which may all come at once (the generic cell rate
/// algorithm).
pub struct Limit {
    limiter: Option<RateLimiter<RateLimitKey, HashMapStateStore<RateLimitKey>, Steady, NoOpMiddleware<Duration>>>,
    clock: Steady,
    charges: AtomicU32,
}

/// After so many charges those are forgotten who have their whole allowance again.
const SWEEP: u32 = 10_000;

impl Limit {
    /// `most` times a minute; 0 means any number of times.
    #[must_use]
    pub fn per_minute(most: u32, clock: &Clock) -> Self {
        let clock = Steady(clock.clone());
        let limiter = NonZeroU32::new(most)
            .map(|most| RateLimiter::new(Quota::per_minute(most), HashMapStateStore::default(), clock.clone()));
        Self { limiter, clock, charges: AtomicU32::new(0) }
    }

    /// Charges one time to `payer`.
    ///
    /// # Errors
    /// 429 `rate-limited` with the seconds after which it will do.
    pub fn charge(&self, payer: RateLimitKey) -> Result<(), Problem> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        if self.charges.fetch_add(1, Ordering::Relaxed) % SWEEP == SWEEP - 1 {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
        limiter.check_key(&payer).map_err(|until| {
            let wait = until.wait_time_from(clock::Clock::now(&self.clock));
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            Problem::new(code::RATE_LIMITED).retry_after(seconds.max(1))
        })
    }
}

/// What a load balancer and a monitor must always learn.
const EXEMPT: [&str; 3] = ["/livez", "/readyz", "/metrics"];

/// Middleware that charges every request to its client's address which is not charged to a user: before the work when
/// it carries no credential; else after it, when the credential proved to be none. What failed by our fault is free, and
/// so are the files of a front end, as one look at it takes dozens of them.
///
/// # Errors
/// Passes on what it is given.
pub async fn limit<B: MessageBody + 'static>(
    req: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let service = req.app_data::<Data<AppState>>().cloned();
    let is_file = |it: &Data<AppState>| it.front_end_of(req.request()).is_some() && req.match_pattern().is_none();
    let service = service.filter(|it| !EXEMPT.contains(&req.path()) && !is_file(it));
    let Some(service) = service else { return Ok(next.call(req).await?.map_into_boxed_body()) };
    let payer = RateLimitKey::from(Address::of(req.request(), service.trusted_proxies()));
    if !(service.about().has_credential)(req.request()) {
        if let Err(problem) = service.limit().charge(payer) {
            return Ok(req.error_response(Failure(problem)));
        }
        return Ok(next.call(req).await?.map_into_boxed_body());
    }
    let (req, response) = next.call(req).await?.map_into_boxed_body().into_parts();
    let is_free = response.status().is_server_error() || req.extensions().contains::<RateLimitCharged>();
    let charged = if is_free { Ok(()) } else { service.limit().charge(payer) };
    let response = charged.map_or_else(|problem| HttpResponse::from_error(Failure(problem)), |()| response);
    Ok(ServiceResponse::new(req, response))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn address(text: &str) -> RateLimitKey {
        Address(text.parse().unwrap()).into()
    }

    fn wait(limit: &Limit, payer: RateLimitKey) -> Option<u64> {
        let problem = limit.charge(payer).err()?;
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
    fn whoever_is_over_the_limit_waits_as_long_as_told_and_no_one_else_does() {
        let clock = Clock::default();
        let limit = Limit::per_minute(2, &clock);
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
        let limit = Limit::per_minute(0, &Clock::default());
        assert!((0..100_000).all(|_| limit.charge(RateLimitKey::User(Uuid::nil())).is_ok()));
    }

    #[test]
    fn those_with_their_whole_allowance_are_forgotten() {
        let clock = Clock::default();
        let limit = Limit::per_minute(60, &clock);
        let known = || limit.limiter.as_ref().unwrap().len();
        for n in 0..SWEEP - 1 {
            limit.charge(RateLimitKey::User(Uuid::from_u128(n.into()))).unwrap();
        }
        assert_eq!(known(), SWEEP as usize - 1);
        clock.advance(TimeDelta::minutes(1));
        limit.charge(RateLimitKey::User(Uuid::max())).unwrap();
        assert_eq!(known(), 1);
    }
}
