//! What is remembered of the replicas of a shard: which did not answer, and how long answers took. It decides who is
//! asked and when a second one is, and never what is answered, for replicas have one content.
//!
//! A replica that fails rests, twice as long each time in a row, and is then asked by one call to see if it is back.
//! One that is late again and again counts as failing, so that a slow one costs no more than that.
//!
//! Source: the second request behind a percentile, and its bound: Dean and Barroso 2013, "The tail at scale", hedged
//! requests.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// The share of calls that may be made twice for being late: one in this many, so that a load under which all are late
/// does not double. One in twenty is late as it is; were no more allowed, nothing would be left for a replica that
/// becomes slow (`scripts/simulate-shards`: then two replicas may have a longer tail than one).
pub(super) const HEDGED_ONE_IN: u32 = 10;

/// Calls that may be made twice in a row after a time in which none was.
const BURST: u32 = 8;

/// Answers that the time of a kind of call is known by.
const RECENT: usize = 64;

/// Fewer say nothing of a percentile.
const RECENT_MIN: usize = 16;

/// The share of answers that are not late, in percent.
const IN_TIME_PERCENT: usize = 95;

/// The time after which a call is late where too few were made to say it.
const LATE_UNKNOWN: Duration = Duration::from_secs(1);

/// No call is late before.
const LATE_MIN: Duration = Duration::from_millis(2);

/// The first rest of a replica that fails, and the longest.
const REST: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// Times in a row that a replica may be late.
const LATE_MAX: u32 = 3;

/// The kind of the call for the generation, with which each request begins.
pub(super) const GENERATION: &str = "generation";

/// Why one that is late too often rests.
const SLOW: &str = "it is slower than another replica";

/// The replicas of one shard, by their numbers.
#[derive(Debug)]
pub(super) struct Standing {
    replicas: Vec<Replica>,
    /// The times of answers, by the kind of call and the number of the replica.
    times: HashMap<(&'static str, usize), VecDeque<Duration>>,
    /// The number of the next replica to begin with, by the kind of call: by one count of all, a request of an even
    /// number of calls would ask the same replica for the same thing each time.
    turns: HashMap<&'static str, usize>,
    /// Calls since the last that were made twice, as far as they count.
    credit: u32,
    pub(super) n_hedged: u64,
    pub(super) n_hedges_won: u64,
}

/// The standing of one.
#[derive(Debug, Clone, Default)]
pub(super) struct Replica {
    /// The end of its rest and why it rests; nothing if it answered last.
    pub(super) rest: Option<(Instant, String)>,
    /// It rests for having another generation than that which was asked for.
    has_other: bool,
    n_failed_in_a_row: u32,
    n_late_in_a_row: u32,
    pub(super) n_answers: u64,
    pub(super) n_failures: u64,
    pub(super) n_overtaken: u64,
}

/// The replicas that a call goes to, one after the other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) replicas: Vec<usize>,
    /// The first of them that do not rest: a late call is made to these alone.
    pub(super) n_ready: usize,
    /// The first is asked to see if it is back.
    pub(super) is_look: bool,
}

impl Standing {
    pub(super) fn new(n_replicas: usize) -> Self {
        let credit = BURST * HEDGED_ONE_IN;
        let replicas = vec![Replica::default(); n_replicas];
        Self { replicas, times: HashMap::new(), turns: HashMap::new(), credit, n_hedged: 0, n_hedges_won: 0 }
    }

    pub(super) fn replicas(&self) -> &[Replica] {
        &self.replicas
    }

    /// The order for the next call: those that answer take turns in each kind of call; a rest that is over is looked at
    /// by one call, which asks for the generation where another one is why it rests; those that rest come last, in
    /// case nobody else answers.
    pub(super) fn order(&mut self, kind: &'static str, now: Instant) -> Order {
        self.credit = (self.credit + 1).min(BURST * HEDGED_ONE_IN);
        let n = self.replicas.len();
        let n_kinds = self.turns.len(); // the calls of one request begin with different replicas
        let next = self.turns.entry(kind).or_insert(n_kinds);
        let turn = *next % n.max(1);
        *next = turn + 1;
        let rests = |&at: &usize| self.replicas[at].rest.as_ref().map(|(until, _)| *until);
        let (mut replicas, mut resting): (Vec<usize>, Vec<usize>) =
            (0..n).map(|at| (turn + at) % n).partition(|at| rests(at).is_none());
        let may_look = |at: usize| kind == GENERATION || !self.replicas[at].has_other;
        let over = resting.iter().position(|at| rests(at).is_some_and(|until| until <= now) && may_look(*at));
        if let Some(over) = over.map(|over| resting.remove(over)) {
            replicas.insert(0, over);
            let pause = self.replicas[over].pause();
            if let Some((until, _)) = &mut self.replicas[over].rest {
                *until = now.checked_add(pause).unwrap_or(now); // no other call looks at it meanwhile
            }
        }
        let n_ready = replicas.len();
        replicas.append(&mut resting);
        Order { replicas, n_ready, is_look: over.is_some() }
    }

    /// The time after which a call is late: that in which the quickest replica gives nearly all such answers.
    pub(super) fn late(&self, kind: &'static str) -> Duration {
        let known = (0..self.replicas.len()).filter_map(|at| self.times.get(&(kind, at)));
        let in_time = known.filter(|times| times.len() >= RECENT_MIN).map(|times| {
            let mut times: Vec<Duration> = times.iter().copied().collect();
            times.sort_unstable();
            times[(times.len() * IN_TIME_PERCENT / 100).min(times.len() - 1)]
        });
        in_time.min().map_or(LATE_UNKNOWN, |time| time.max(LATE_MIN))
    }

    /// Counts a call that is made twice, if it may be. A look at a replica that was down may always: it is one call a
    /// rest.
    pub(super) fn may_hedge(&mut self, is_look: bool) -> bool {
        let may = is_look || self.credit >= HEDGED_ONE_IN;
        if may && !is_look {
            self.credit -= HEDGED_ONE_IN;
        }
        self.n_hedged += u64::from(may);
        may
    }

    /// A right answer; a late one where nobody else was asked says of the replica what being overtaken says.
    pub(super) fn answered(&mut self, at: usize, kind: &'static str, took: Duration, is_late: bool, now: Instant) {
        let times = self.times.entry((kind, at)).or_default();
        if times.len() == RECENT {
            times.pop_front();
        }
        times.push_back(took);
        let replica = &mut self.replicas[at];
        replica.n_answers += 1;
        if is_late {
            return replica.late(now);
        }
        (replica.rest, replica.has_other, replica.n_failed_in_a_row, replica.n_late_in_a_row) = (None, false, 0, 0);
    }

    pub(super) fn failed(&mut self, at: usize, why: String, now: Instant) {
        let replica = &mut self.replicas[at];
        replica.n_failures += 1;
        replica.n_failed_in_a_row = replica.n_failed_in_a_row.saturating_add(1);
        replica.rest = Some((now.checked_add(replica.pause()).unwrap_or(now), why));
        replica.has_other = false;
    }

    /// It has another generation than what was asked for. What it has is for it to say: any other call would find the
    /// same again, and lengthen its rest, each time.
    pub(super) fn has_other(&mut self, at: usize, why: String, now: Instant) {
        self.failed(at, why, now);
        self.replicas[at].has_other = true;
    }

    /// Another replica answered the same call first, though it was asked later.
    pub(super) fn overtaken(&mut self, at: usize, now: Instant) {
        self.replicas[at].n_overtaken += 1;
        self.replicas[at].late(now);
    }
}

impl Replica {
    fn late(&mut self, now: Instant) {
        self.n_late_in_a_row = self.n_late_in_a_row.saturating_add(1);
        if self.rest.is_some() || self.n_late_in_a_row >= LATE_MAX {
            self.n_failed_in_a_row = self.n_failed_in_a_row.saturating_add(1);
            self.rest = Some((now.checked_add(self.pause()).unwrap_or(now), SLOW.to_owned()));
        }
    }

    fn pause(&self) -> Duration {
        let doubled = 1 << self.n_failed_in_a_row.saturating_sub(1).min(16);
        (REST[0] * doubled).min(REST[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn those_that_answer_take_turns_and_one_that_fails_comes_last() {
        let (mut standing, now) = (Standing::new(3), Instant::now());
        let first = |standing: &mut Standing| standing.order("kind", now).replicas[0];
        assert_eq!([(); 4].map(|()| first(&mut standing)), [0, 1, 2, 0]);
        assert_eq!([(); 3].map(|()| standing.order("other", now).replicas[0]), [1, 2, 0], "a turn for each kind");
        standing.failed(1, "gone".to_owned(), now);
        for _ in 0..6 {
            let order = standing.order("kind", now);
            assert_eq!((order.replicas[2], order.n_ready, order.is_look), (1, 2, false));
        }
    }

    #[test]
    fn a_rest_doubles_and_its_end_is_seen_by_one_call() {
        let (mut standing, mut now) = (Standing::new(2), Instant::now());
        for rest in [1, 2, 4, 8, 16, 32, 60, 60] {
            standing.failed(0, "gone".to_owned(), now);
            now += rest * SECOND - Duration::from_millis(1);
            assert!(!standing.order("kind", now).is_look, "{rest}");
            now += Duration::from_millis(1);
            let look = standing.order("kind", now);
            assert_eq!((look.replicas, look.n_ready, look.is_look), (vec![0, 1], 2, true), "{rest}");
            assert!(!standing.order("kind", now).is_look, "one call is enough");
        }
        standing.answered(0, "kind", SECOND, false, now);
        assert_eq!(standing.order("kind", now).n_ready, 2);
        standing.failed(0, "gone".to_owned(), now);
        assert!(standing.order("kind", now + SECOND).is_look, "the first rest is short again");
    }

    #[test]
    fn one_with_another_generation_is_looked_at_by_calls_for_that_alone() {
        let (mut standing, now) = (Standing::new(2), Instant::now());
        standing.has_other(0, "another".to_owned(), now);
        let order = standing.order("kind", now + SECOND);
        assert_eq!((order.replicas, order.n_ready, order.is_look), (vec![1, 0], 1, false));
        assert!(!standing.order(GENERATION, now).is_look, "it rests");
        assert!(standing.order(GENERATION, now + SECOND).is_look);
        standing.failed(0, "gone".to_owned(), now);
        assert!(standing.order("kind", now + 2 * SECOND).is_look, "now it fails for another reason");
    }

    #[test]
    fn a_call_is_late_behind_the_quickest_replica_and_few_are_made_twice() {
        let (mut standing, now) = (Standing::new(2), Instant::now());
        assert_eq!(standing.late("kind"), LATE_UNKNOWN);
        for ms in 1..=100 {
            standing.answered(0, "kind", Duration::from_millis(ms), false, now);
            standing.answered(1, "kind", Duration::from_millis(10 * ms), false, now);
        }
        assert_eq!(standing.late("kind"), Duration::from_millis(97), "of 37 to 100");
        assert_eq!(standing.late("other"), LATE_UNKNOWN);
        let mut n_hedged = 0;
        for _ in 0..10_000 {
            standing.order("kind", now);
            n_hedged += u32::from(standing.may_hedge(false));
        }
        assert!((10_000 / HEDGED_ONE_IN..=10_000 / HEDGED_ONE_IN + BURST).contains(&n_hedged), "{n_hedged}");
    }

    #[test]
    fn one_that_is_always_late_rests() {
        let (mut standing, now) = (Standing::new(2), Instant::now());
        for n in 1..=LATE_MAX {
            assert_eq!(standing.order("kind", now).n_ready, 2, "{n}");
            match n {
                1 => standing.answered(0, "kind", SECOND, true, now),
                _ => standing.overtaken(0, now),
            }
        }
        assert_eq!(standing.order("kind", now).n_ready, 1);
        assert!(standing.order("kind", now + SECOND).is_look);
        standing.overtaken(0, now + SECOND);
        assert!(!standing.order("kind", now + 2 * SECOND).is_look, "a look that is overtaken is a failure");
    }
}
