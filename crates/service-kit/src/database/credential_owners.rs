//! The users of credentials that have been looked up, so that all requests of a user have one [`JobOwner`].
#![expect(clippy::disallowed_types, reason = "the lock is held for one access to the map, never while waiting")]

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use uuid::Uuid;

use super::job::JobOwner;

/// The most credentials in memory, 24 bytes each. The next one removes all of them.
const CAPACITY: usize = 10_000;

/// The users of credentials, by the hashes of the credentials.
#[derive(Debug, Default)]
pub struct CredentialOwners(Mutex<HashMap<JobOwner, Uuid>>);

impl CredentialOwners {
    /// The user of this credential, or the credential itself while its user is not known.
    pub fn owner(&self, credential: &str) -> JobOwner {
        let unknown = JobOwner::of_credential(credential);
        let users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        users.get(&unknown).map_or(unknown, |user| JobOwner::User(*user))
    }

    /// Remembers the user of a credential that has been looked up.
    pub fn remember(&self, credential: &str, user: Uuid) {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if users.len() >= CAPACITY {
            users.clear();
        }
        users.insert(JobOwner::of_credential(credential), user);
    }

    /// Forgets a credential that is not good any more.
    pub fn forget(&self, credential: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&JobOwner::of_credential(credential));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_one_user_have_one_owner_and_only_so_many_are_remembered() {
        let (owners, user) = (CredentialOwners::default(), Uuid::from_u128(1));
        assert_eq!(owners.owner("a"), JobOwner::of_credential("a"));
        owners.remember("a", user);
        owners.remember("b", user);
        assert_eq!([owners.owner("a"), owners.owner("b")], [JobOwner::User(user); 2]);
        assert_eq!(owners.owner("c"), JobOwner::of_credential("c"));
        owners.forget("b");
        assert_eq!([owners.owner("a"), owners.owner("b")], [JobOwner::User(user), JobOwner::of_credential("b")]);
        for number in 0..CAPACITY {
            owners.remember(&number.to_string(), user);
        }
        assert!(owners.0.lock().unwrap().len() <= CAPACITY);
        assert_eq!(owners.owner(&(CAPACITY - 1).to_string()), JobOwner::User(user));
    }
}
