//! What another end of its rule makes of a series. Pure: no database and no clock.

use std::collections::BTreeSet;

use chrono::NaiveDate;
use chrono_tz::Tz;
use common::time::Timestamp;

use super::rule::{FirstTimes, Refusal, Rule, Times, expand};

/// What a series has before its rule gets another end.
#[derive(Debug)]
pub struct Present<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// The times of the first occurrence.
    pub first: &'a FirstTimes,
    /// The dates of the rule that the series does not have.
    pub exdates: &'a BTreeSet<NaiveDate>,
    /// The days of the events and skipped dates that the new end removes.
    pub removed: &'a BTreeSet<NaiveDate>,
    /// The days of the events that somebody has deleted.
    pub deleted: &'a BTreeSet<NaiveDate>,
    /// When the events begin that stay.
    pub starts: &'a BTreeSet<Timestamp>,
}

/// What it has after that.
#[derive(Debug)]
pub struct Extension {
    /// The rule.
    pub rule: Rule,
    /// The dates of the rule that the series does not have.
    pub exdates: BTreeSet<NaiveDate>,
    /// The new dates.
    pub dates: Vec<Times>,
}

impl Present<'_> {
    /// Gives the rule another end. New dates have these times of day. Dates that the end removes may come back with a later
    /// one; those that somebody deleted or moved before do not.
    pub fn until(&self, until: NaiveDate, times: &FirstTimes, zone: Tz) -> Result<Extension, Refusal> {
        let before: BTreeSet<_> = expand(self.rule, self.first, zone)?.into_iter().map(|times| times.date).collect();
        let rule = self.rule.until(until);
        let all = expand(&rule, self.first, zone)?;
        let gone = before.iter().filter(|date| **date > until && !self.removed.contains(date));
        let exdates: BTreeSet<_> = self.exdates.iter().chain(self.deleted).chain(gone).copied().collect();
        let new = all.into_iter().map(|times| times.date);
        let new = new.filter(|date| !before.contains(date) && !exdates.contains(date));
        let dates: Option<Vec<_>> = new.map(|date| times.on(date, zone)).collect();
        let mut dates = dates.ok_or(Refusal::BadYear)?;
        dates.retain(|times| !self.starts.contains(&times.starts_at));
        Ok(Extension { rule, exdates, dates })
    }
}

/// Whether one of these spans overlaps another one, or one of the others.
pub fn any_overlaps(new: &[(Timestamp, Timestamp)], others: &[(Timestamp, Timestamp)]) -> bool {
    let overlap = |a: &(Timestamp, Timestamp), b: &(Timestamp, Timestamp)| a.0 < b.1 && b.0 < a.1;
    let rest = |n: usize| new.iter().skip(n + 1).chain(others);
    new.iter().enumerate().any(|(n, span)| rest(n).any(|other| overlap(span, other)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chrono::{Days, NaiveTime, TimeDelta};
    use proptest::prelude::*;

    use super::*;

    const ZONE: Tz = Tz::Europe__Berlin;

    /// What somebody does to a series.
    #[derive(Debug, Clone)]
    enum Step {
        /// Gives the rule an end so many days after the first date.
        Until(u64),
        /// Deletes an event.
        Delete(usize),
        /// Restores the last event that was deleted.
        Restore,
        /// Adds an event so many days after the first date, at the time of the others.
        Add(u64),
        /// Moves an event by some hours.
        Move(usize, i64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0..80_u64).prop_map(Step::Until),
            3 => any::<usize>().prop_map(Step::Delete),
            1 => Just(Step::Restore),
            1 => (0..80_u64).prop_map(Step::Add),
            1 => (any::<usize>(), -30..30_i64).prop_map(|(n, hours)| Step::Move(n, hours)),
        ]
    }

    fn day(at: Timestamp) -> NaiveDate {
        at.utc().with_timezone(&ZONE).date_naive()
    }

    /// A series as the database has it.
    struct Model {
        rule: Rule,
        first: FirstTimes,
        exdates: BTreeSet<NaiveDate>,
        /// The events, by start.
        live: BTreeSet<Timestamp>,
        /// Those that are deleted, in order, and whether the end of the rule has deleted them.
        deleted: Vec<(Timestamp, bool)>,
    }

    impl Model {
        fn new(text: &str) -> Self {
            let time = |hour| NaiveTime::from_hms_opt(hour, 0, 0).unwrap();
            let date = NaiveDate::from_ymd_opt(2026, 3, 2).unwrap();
            let first = FirstTimes { date, start: time(18), days: Days::new(0), end: time(20), given: None };
            let rule: Rule = text.parse().unwrap();
            let live = expand(&rule, &first, ZONE).unwrap().into_iter().map(|times| times.starts_at).collect();
            Self { rule, first, exdates: BTreeSet::new(), live, deleted: Vec::new() }
        }

        fn nth(&self, n: usize) -> Option<Timestamp> {
            self.live.iter().nth(n.checked_rem(self.live.len())?).copied()
        }

        fn delete(&mut self, at: Timestamp, by_until: bool) {
            self.live.remove(&at);
            self.deleted.push((at, by_until));
        }

        fn by_hand(&self) -> BTreeSet<NaiveDate> {
            self.deleted.iter().filter(|(_, by_until)| !by_until).map(|(at, _)| day(*at)).collect()
        }

        /// Returns the new dates.
        fn until(&mut self, until: NaiveDate) -> Vec<Times> {
            let removed: Vec<_> = self.live.iter().copied().filter(|at| day(*at) > until).collect();
            for at in &removed {
                self.delete(*at, true);
            }
            let (removed, deleted) = (removed.into_iter().map(day).collect(), self.by_hand());
            let present = Present {
                rule: &self.rule,
                first: &self.first,
                exdates: &self.exdates,
                removed: &removed,
                deleted: &deleted,
                starts: &self.live,
            };
            let Extension { rule, exdates, dates } = present.until(until, &self.first, ZONE).unwrap();
            (self.rule, self.exdates) = (rule, exdates);
            dates
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_new_end_makes_what_the_rule_has_and_nobody_deleted(
            text in prop::sample::select(vec!["FREQ=WEEKLY;COUNT=6", "FREQ=DAILY;INTERVAL=3;COUNT=8", "FREQ=DAILY;COUNT=20"]),
            steps in prop::collection::vec(step(), 1..12),
        ) {
            let mut model = Model::new(text);
            let on = model_date;
            // The days that somebody has deleted an event of, or moved it from, at any time.
            let mut touched = BTreeSet::new();
            for step in steps {
                match step {
                    Step::Delete(n) => if let Some(at) = model.nth(n) {
                        touched.insert(day(at));
                        model.delete(at, false);
                    },
                    Step::Restore => if let Some((at, _)) = model.deleted.pop() {
                        model.live.insert(at);
                    },
                    Step::Add(days) => { model.live.insert(model.first.on(on(days), ZONE).unwrap().starts_at); }
                    Step::Move(n, hours) => if let Some(at) = model.nth(n) {
                        touched.insert(day(at));
                        model.live.remove(&at);
                        model.live.insert(at.plus(TimeDelta::hours(hours)));
                    },
                    Step::Until(days) => {
                        let (until, by_hand) = (on(days), model.by_hand());
                        let new = model.until(until);
                        for times in &new {
                            prop_assert!(times.date <= until && !by_hand.contains(&times.date), "{} again", times.date);
                            prop_assert!(model.live.insert(times.starts_at), "{} twice", times.date);
                        }
                        prop_assert!(model.live.iter().all(|at| day(*at) <= until));
                        let of_rule = expand(&model.rule, &model.first, ZONE).unwrap();
                        for times in of_rule.iter().filter(|times| !touched.contains(&times.date)) {
                            prop_assert!(model.live.contains(&times.starts_at), "{} is missing", times.date);
                        }
                    }
                }
            }
        }

        #[test]
        fn overlaps_are_those_of_any_two(
            spans in prop::collection::vec((0..60_i64, 1..9_i64, any::<bool>()), 0..8)
        ) {
            let start: Timestamp = "2026-03-02T17:00:00Z".parse().unwrap();
            let at = |hours| start.plus(TimeDelta::hours(hours));
            let span = |(from, hours, _): &(i64, i64, bool)| (at(*from), at(from + hours));
            let (new, others): (Vec<_>, Vec<_>) = spans.iter().partition(|(.., is_new)| *is_new);
            let (new, others): (Vec<_>, Vec<_>) = (new.iter().map(span).collect(), others.iter().map(span).collect());
            // Hour by hour.
            let mut taken: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for (n, (from, hours, is_new)) in spans.iter().enumerate() {
                for hour in *from..from + hours {
                    taken.entry(hour).or_default().push((n, *is_new));
                }
            }
            let expected = taken.values().any(|of_hour| of_hour.len() > 1 && of_hour.iter().any(|(_, is_new)| *is_new));
            prop_assert_eq!(any_overlaps(&new, &others), expected);
        }
    }

    fn model_date(days: u64) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 3, 2).unwrap() + Days::new(days)
    }
}
