//! The second search: what gives way where nothing passes the gates of a question.
//!
//! Source: "Small-to-Big RAG" (Codcompass), pitfall 5: where a context would be empty, "optionally trigger a secondary
//! search with relaxed constraints". It says neither when nor which: here nothing is delivered as no candidate passes,
//! and what gives way are the gates below, besides what the searcher relaxes. What the request names (budget, filter,
//! documents, chunks to leave out) never does.

use super::Policy;
use crate::select::gates::Relaxed;
use crate::strategies::Strategy;
use crate::strategies::parent::Fallback;

impl Policy {
    /// The policy of a second search for a strategy: without the gates that can keep out everything.
    #[must_use]
    pub fn relaxed(&self, strategy: Strategy) -> Self {
        let mut policy = self.clone();
        match strategy {
            Strategy::Cento => (policy.min_relevance, policy.cento.min_support) = (None, 0.0),
            Strategy::Bubble => policy.min_relevance = None,
            Strategy::Rse | Strategy::RseExact => policy.rse.minimum_value = self.rse.minimum_value.min(0.0),
            Strategy::RseKadane => {
                policy.kadane.relevance_threshold = self.kadane.relevance_threshold.min(0.0);
            }
            Strategy::Parent => policy.parent.fallback = Fallback::Window,
            // These keep out nothing that was found.
            Strategy::Flat
            | Strategy::Mmr
            | Strategy::Adaptive
            | Strategy::Window
            | Strategy::Automerge
            | Strategy::Seal => {}
        }
        policy
    }

    /// The settings in which a policy of a second search differs from this one.
    pub fn relaxed_in(&self, relaxed: &Self) -> Vec<Relaxed> {
        let keys = [
            "min_relevance",
            "cento.min_support",
            "rse.minimum_value",
            "kadane.relevance_threshold",
            "parent.fallback",
        ];
        let value = |policy: &Self, key: &'static str| policy.written(&key.into()).unwrap_or_else(|| "none".into());
        let changes = keys.map(|key| Relaxed { setting: key.into(), from: value(self, key), to: value(relaxed, key) });
        changes.into_iter().filter(|change| change.from != change.to).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gives_way_is_named_and_nothing_else_changes() {
        let policy =
            Policy::parse("min_relevance = 0.5\nsecond_search = \"relaxed\"\n[parent]\nfallback = \"none\"").unwrap();
        let named = |strategy| -> Vec<String> {
            let relaxed = policy.relaxed(strategy);
            assert!(relaxed.checked().is_ok());
            policy.relaxed_in(&relaxed).into_iter().map(|change| change.setting).collect()
        };
        assert_eq!(named(Strategy::Cento), ["min_relevance", "cento.min_support"]);
        assert_eq!(named(Strategy::Bubble), ["min_relevance"]);
        assert_eq!(named(Strategy::RseExact), ["rse.minimum_value"]);
        assert_eq!(named(Strategy::RseKadane), ["kadane.relevance_threshold"]);
        assert_eq!(named(Strategy::Parent), ["parent.fallback"]);
        assert_eq!(policy.relaxed(Strategy::Window), policy);
        let change = policy.relaxed_in(&policy.relaxed(Strategy::Bubble)).remove(0);
        assert_eq!((change.from.as_str(), change.to.as_str()), ("0.5", "none"));
    }
}
