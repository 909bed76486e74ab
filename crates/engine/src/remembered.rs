//! Values that are remembered for whoever asks the same again: for a time, and within a number and a size.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The hash of all that a value depends on.
pub(crate) type Key = blake3::Hash;

/// The most that is remembered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) n_values: usize,
    /// Of all of them together, about.
    pub(crate) n_bytes: usize,
}

/// Values by key, those used longest ago dropped first.
#[derive(Debug)]
pub(crate) struct Remembered<V> {
    limits: Limits,
    kept: Mutex<Kept<V>>,
}

#[derive(Debug)]
struct Kept<V> {
    values: HashMap<Key, Entry<V>>,
    n_bytes: usize,
    /// Uses so far.
    clock: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: Arc<V>,
    n_bytes: usize,
    made: Instant,
    ttl: Duration,
    used: u64,
}

impl<V> Remembered<V> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, kept: Mutex::new(Kept { values: HashMap::new(), n_bytes: 0, clock: 0 }) }
    }

    /// The value of a key, if its time has not run out at `now`.
    pub(crate) fn find(&self, key: &Key, now: Instant) -> Option<Arc<V>> {
        let mut kept = self.kept.lock();
        kept.forget(now);
        kept.clock += 1;
        let clock = kept.clock;
        let entry = kept.values.get_mut(key)?;
        entry.used = clock;
        Some(Arc::clone(&entry.value))
    }

    /// Keeps a value of so many bytes that was made at `now`, for as long as `ttl`. One that is too large is not kept.
    pub(crate) fn keep(&self, key: Key, value: V, n_bytes: usize, ttl: Duration, now: Instant) {
        if n_bytes > self.limits.n_bytes {
            return;
        }
        let mut kept = self.kept.lock();
        kept.forget(now);
        kept.remove(&key);
        kept.clock += 1;
        let used = kept.clock;
        kept.values.insert(key, Entry { value: Arc::new(value), n_bytes, made: now, ttl, used });
        kept.n_bytes += n_bytes;
        while kept.values.len() > self.limits.n_values || kept.n_bytes > self.limits.n_bytes {
            let oldest = kept.values.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| *key);
            let Some(oldest) = oldest else { return };
            kept.remove(&oldest);
        }
    }

    #[cfg(test)]
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let kept = self.kept.lock();
        (kept.values.len(), kept.n_bytes)
    }
}

impl<V> Kept<V> {
    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.values.remove(key) {
            self.n_bytes -= entry.n_bytes;
        }
    }

    /// Drops what is past its time.
    fn forget(&mut self, now: Instant) {
        let n_bytes = &mut self.n_bytes;
        self.values.retain(|_, entry| {
            let is_fresh = now.saturating_duration_since(entry.made) < entry.ttl;
            *n_bytes -= if is_fresh { 0 } else { entry.n_bytes };
            is_fresh
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(300);
    const LIMITS: Limits = Limits { n_values: 3, n_bytes: 100 };

    fn key(number: usize) -> Key {
        blake3::hash(&number.to_le_bytes())
    }

    #[test]
    fn what_is_kept_is_served_until_it_expires() {
        let (kept, made) = (Remembered::new(LIMITS), Instant::now());
        let at = |seconds| made + Duration::from_secs(seconds);
        kept.keep(key(0), "a", 10, TTL, made);
        assert_eq!(kept.find(&key(0), at(299)).as_deref(), Some(&"a"));
        assert_eq!(kept.find(&key(1), made), None);
        assert_eq!(kept.find(&key(0), at(300)), None, "a use does not make it younger");
        assert_eq!((kept.find(&key(0), made), kept.sizes()), (None, (0, 0)), "and it is gone");
        kept.keep(key(0), "a", 10, TTL, at(400));
        kept.keep(key(1), "b", 10, TTL, at(700));
        assert_eq!(kept.sizes(), (1, 10), "what is kept forgets what is old, whether it is asked for or not");
    }

    #[test]
    fn the_limits_hold_and_what_was_used_longest_ago_goes_first() {
        let (kept, now) = (Remembered::new(LIMITS), Instant::now());
        let has = |number: usize| kept.find(&key(number), now).is_some();
        let keep = |number: usize, n_bytes: usize| kept.keep(key(number), "", n_bytes, TTL, now);
        (0..3).for_each(|number| keep(number, 1));
        assert!(has(0));
        keep(3, 1);
        assert!(has(0) && !has(1) && has(2) && has(3) && kept.sizes() == (3, 3));
        keep(4, 60);
        keep(5, 60);
        assert!(!has(4) && has(5) && kept.sizes().1 <= 100);
        keep(5, 70);
        assert_eq!(kept.sizes().1, 70, "a value that comes again takes the place of the first");
        keep(6, 101);
        assert!(!has(6) && has(5), "what is too large is not kept, and drives nothing out");
    }
}
