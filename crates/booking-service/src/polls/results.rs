//! The results of a poll: how many users each slot suits.

use std::collections::{HashMap, HashSet};

use service_kit::database::types::{DbTimestamp, DbUuid};

/// A candidate slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub id: DbUuid,
    pub starts_at: DbTimestamp,
    pub ends_at: DbTimestamp,
}

/// A slot for which a user answered yes or maybe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub user: DbUuid,
    pub slot: DbUuid,
    pub maybe: bool,
}

/// The users whom a slot suits.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotResult {
    /// The slot.
    pub slot: DbUuid,
    /// The users who answered yes, by id.
    pub yes: Vec<DbUuid>,
    /// The users who answered maybe, by id.
    pub maybe: Vec<DbUuid>,
    /// The number of yes divided by the number of answers to the poll; 0 without answers.
    pub rate: f64,
    /// Whether no slot has more yes, or as many yes and more maybe. False for a slot that nobody chose.
    pub is_top: bool,
}

/// The result of each slot, in the order of the slots.
pub fn tally(slots: &[Slot], choices: &[Choice], answers: usize) -> Vec<SlotResult> {
    let mut users: HashMap<DbUuid, (Vec<DbUuid>, Vec<DbUuid>)> = HashMap::new();
    for choice in choices {
        let (yes, maybe) = users.entry(choice.slot).or_default();
        if choice.maybe { maybe.push(choice.user) } else { yes.push(choice.user) }
    }
    for (yes, maybe) in users.values_mut() {
        yes.sort_unstable();
        maybe.sort_unstable();
    }
    let top = users.values().map(|(yes, maybe)| (yes.len(), maybe.len())).max();
    let result = |slot: &Slot| {
        let (yes, maybe) = users.remove(&slot.id).unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "a number of people is far below 2^52")]
        let rate = if answers == 0 { 0.0 } else { yes.len() as f64 / answers as f64 };
        let is_top = top == Some((yes.len(), maybe.len()));
        SlotResult { slot: slot.id, yes, maybe, rate, is_top }
    };
    slots.iter().map(result).collect()
}

/// The choices by user.
pub fn by_user(choices: Vec<Choice>) -> HashMap<DbUuid, Vec<Choice>> {
    let mut by_user: HashMap<DbUuid, Vec<Choice>> = HashMap::new();
    for choice in choices {
        by_user.entry(choice.user).or_default().push(choice);
    }
    by_user
}

/// Those of `invitees` who are not in `respondents`, in the order of `invitees`.
pub fn non_respondents(invitees: &[DbUuid], respondents: impl Iterator<Item = DbUuid>) -> Vec<DbUuid> {
    let respondents: HashSet<_> = respondents.collect();
    invitees.iter().copied().filter(|user| !respondents.contains(user)).collect()
}

#[cfg(test)]
mod tests {
    use common::time::Timestamp;
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn id(n: usize) -> DbUuid {
        DbUuid(Uuid::from_u128(n as u128 + 1))
    }

    fn slot(n: usize) -> Slot {
        let at = DbTimestamp(Timestamp::from_micros(0).unwrap());
        Slot { id: id(n), starts_at: at, ends_at: at }
    }

    /// Answers of users to slots: 0 no, 1 yes, 2 maybe.
    fn tally_of(answers: &[Vec<u8>], slots: usize) -> Vec<SlotResult> {
        let choices = answers.iter().enumerate().flat_map(|(user, slots)| {
            let chosen = slots.iter().enumerate().filter(|(_, answer)| **answer > 0);
            chosen.map(move |(n, answer)| Choice { user: id(user), slot: id(n), maybe: *answer == 2 })
        });
        let slots: Vec<_> = (0..slots).map(slot).collect();
        tally(&slots, &choices.collect::<Vec<_>>(), answers.len())
    }

    fn top(answers: &[Vec<u8>], slots: usize) -> Vec<usize> {
        let results = tally_of(answers, slots);
        (0..slots).filter(|n| results[*n].is_top).collect()
    }

    #[test]
    fn the_most_yes_is_the_top_choice_and_maybe_breaks_ties() {
        assert_eq!(top(&[vec![1, 1, 0], vec![0, 2, 2], vec![2, 0, 2]], 3), [0, 1]);
        assert_eq!(top(&[vec![1, 1, 0], vec![0, 2, 2]], 3), [1]);
        assert_eq!(top(&[vec![0, 2, 2], vec![0, 2, 0]], 3), [1]);
        assert_eq!(top(&[vec![1, 2, 2], vec![0, 2, 2], vec![0, 2, 2]], 3), [0]);
    }

    #[test]
    fn a_slot_that_nobody_chose_is_no_top_choice() {
        assert!(top(&[], 2).is_empty());
        assert!(top(&[vec![0, 0]], 2).is_empty());
        assert_eq!(tally_of(&[], 1)[0].rate.to_bits(), 0.0_f64.to_bits());
    }

    proptest! {
        #[test]
        fn every_answer_is_counted_once(answers in prop::collection::vec(prop::collection::vec(0_u8..3, 4), 0..9)) {
            let results = tally_of(&answers, 4);
            prop_assert_eq!(results.len(), 4);
            let score = |n: usize| {
                let count = |choice| answers.iter().filter(|slots| slots[n] == choice).count();
                (count(1), count(2))
            };
            for (n, result) in results.iter().enumerate() {
                prop_assert_eq!(result.slot, id(n));
                prop_assert_eq!((result.yes.len(), result.maybe.len()), score(n));
                prop_assert!(result.yes.is_sorted() && result.maybe.is_sorted());
                prop_assert!((0.0..=1.0).contains(&result.rate));
                let best = (0..4).map(score).max().unwrap();
                prop_assert_eq!(result.is_top, score(n) == best && best != (0, 0));
            }
        }
    }
}
