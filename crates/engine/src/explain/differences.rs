//! Differences of two traces: in what was asked, in what was found, in what was decided, in what was delivered.

use std::collections::{BTreeMap, BTreeSet};

use cento_assembly::Why;
use cento_assembly::trace::{Decision, Reason, Record};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::explain::trace::ContextTrace;

/// Something that is not the same in two traces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// Its name.
    pub what: String,
    /// As it is in the first trace; `absent` where it has none.
    pub before: String,
    /// As it is in the second.
    pub after: String,
}

/// Comparison of two traces.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TraceComparison {
    /// Format of this answer.
    pub version: u32,
    /// The delivered texts are the same, byte for byte.
    pub same: bool,
    /// Settings: query, versions, collection, search, policy and config, key by key.
    pub settings: Vec<Difference>,
    /// Tokens, text tokens, value, bound and gap, those that differ.
    pub totals: Vec<Difference>,
    /// Candidates of the first trace alone.
    pub only_before: Vec<String>,
    /// Candidates of the second alone.
    pub only_after: Vec<String>,
    /// Chunks delivered by the first alone.
    pub delivered_before: Vec<String>,
    /// Chunks delivered by the second alone.
    pub delivered_after: Vec<String>,
    /// Candidates of both that were decided differently.
    pub decisions: Vec<Decided>,
}

/// A candidate that two traces decide differently.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Decided {
    /// Its id.
    pub chunk_id: String,
    /// The first decision.
    pub before: Why,
    /// The second.
    pub after: Why,
}

/// Config keys worked out from the candidates.
const DERIVED: [&str; 3] = ["config.theta", "config.n_candidates", "config.n_pool"];

/// A record's decision fields; the rest is what it was decided on.
const DECISION: [&str; 5] = ["final_decision", "final_reason", "stage", "step_decision", "step_details"];

impl ContextTrace {
    /// Differences in a trace of the same request, made now, in the order in which one thing follows from another:
    /// version, collection, model, chunking, settings, the first candidate whose scores differ, the first decision that
    /// differs, the bytes, and whatever else the trace says. This trace is as its file gave it.
    pub fn differences(&self, now: &Self) -> Vec<Difference> {
        let now = now.reread().as_far_as(self);
        let mut found = self.causes(&now);
        found.extend(self.effects(&now));
        found
    }

    /// True if this trace, as its file gave it, is of what `now` is of, made of the same request: the same bytes under
    /// the same citations; and, where everything that decides is the same, every other word of it. A trace that
    /// somebody changed does not hold, even if its bytes are delivered.
    pub fn holds(&self, now: &Self) -> bool {
        let now = now.reread().as_far_as(self);
        self.delivered == now.delivered && (!self.causes(&now).is_empty() || self.effects(&now).is_empty())
    }

    /// This trace without its repair, if an earlier one was written before traces had any.
    fn as_far_as(mut self, earlier: &Self) -> Self {
        if earlier.assembly.manifest.repair.is_none() {
            self.assembly.unrepaired();
        }
        self
    }

    /// Differences in what decides.
    fn causes(&self, now: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut compare = |what: &str, before: &dyn ToString, after: &dyn ToString| {
            let (before, after) = (before.to_string(), after.to_string());
            if before != after {
                found.push(Difference { what: what.to_owned(), before, after });
            }
        };
        compare("cento", &self.cento, &now.cento);
        let (one, other) = (&self.collection, &now.collection);
        compare("generation", &one.generation, &other.generation);
        compare("collection", &one.checksum, &other.checksum);
        compare("model", &one.config.model_fingerprint, &other.config.model_fingerprint);
        found.extend(changes(&self.chunking(), &now.chunking()));
        found.extend(changes(&self.settings(), &now.settings()));
        found
    }

    /// Differences in what follows.
    fn effects(&self, now: &Self) -> Vec<Difference> {
        let mut found: Vec<Difference> = self.first_candidate(now).into_iter().collect();
        found.extend(self.first_decision(now));
        found.extend(self.first_place(now));
        let bytes = |trace: &Self| format!("{} bytes, {}", trace.delivered.n_bytes, trace.delivered.blake3);
        let (before, after) = (bytes(self), bytes(now));
        if before != after {
            found.push(Difference { what: "delivered".to_owned(), before, after });
        }
        found.extend(changes(&self.rest(), &now.rest()));
        found
    }

    /// True if it delivered the same bytes.
    pub fn delivers_as(&self, other: &Self) -> bool {
        (self.delivered.n_bytes, &self.delivered.blake3) == (other.delivered.n_bytes, &other.delivered.blake3)
    }

    /// Compares two traces, whatever was asked of either.
    pub fn compare(&self, other: &Self) -> TraceComparison {
        let (before, after) = (by_chunk(self), by_chunk(other));
        let only = |one: &BTreeMap<&str, &Record>, other: &BTreeMap<&str, &Record>| {
            let missing = one.keys().filter(|id| !other.contains_key(*id));
            missing.map(|id| (*id).to_owned()).collect::<Vec<_>>()
        };
        let delivered = |trace: &Self| trace.assembly.manifest.selected.iter().cloned().collect::<BTreeSet<_>>();
        let (first, second) = (delivered(self), delivered(other));
        let verdict = |record: &Record| -> (Decision, Reason) { (record.final_decision, record.final_reason) };
        let decisions = self.assembly.records.iter().filter_map(|record| {
            let now = after.get(record.chunk_id.as_str())?;
            (verdict(record) != verdict(now)).then(|| Decided {
                chunk_id: record.chunk_id.clone(),
                before: Why::of(&self.assembly, record),
                after: Why::of(&other.assembly, now),
            })
        });
        let all = |trace: &Self| {
            let mut all = trace.settings();
            let collection = serde_json::to_value(&trace.collection).expect("a collection is always JSON");
            flatten("collection", &collection, &mut all);
            all.insert("cento".to_owned(), trace.cento.clone());
            all
        };
        TraceComparison {
            version: 1,
            same: self.delivers_as(other),
            settings: changes(&all(self), &all(other)),
            totals: changes(&self.totals(), &other.totals()),
            only_before: only(&before, &after),
            only_after: only(&after, &before),
            delivered_before: first.difference(&second).cloned().collect(),
            delivered_after: second.difference(&first).cloned().collect(),
            decisions: decisions.collect(),
        }
    }

    /// Settings of the rows, but for the model.
    fn chunking(&self) -> BTreeMap<String, String> {
        let config = serde_json::to_value(&self.collection.config).expect("a config is always JSON");
        let mut flat = flat("chunking", &config);
        flat.retain(|key, _| !key.starts_with("chunking.model"));
        flat
    }

    /// The request.
    fn settings(&self) -> BTreeMap<String, String> {
        let mut all = flat("search", &serde_json::to_value(&self.search).expect("a search is always JSON"));
        let config = serde_json::to_value(&self.assembly.config).expect("a config is always JSON");
        flatten("config", &config, &mut all);
        all.retain(|key, _| !DERIVED.contains(&key.as_str()));
        all.insert("query".to_owned(), self.assembly.query.clone());
        if let Some(endpoint) = &self.assembly.manifest.endpoint {
            all.insert("endpoint.host".to_owned(), endpoint.host.clone());
            all.insert("endpoint.model".to_owned(), endpoint.model.clone());
        }
        if let Some(rerank) = &self.assembly.manifest.rerank {
            all.insert("rerank.model".to_owned(), rerank.model.clone());
            all.insert("rerank.fingerprint".to_owned(), rerank.fingerprint.clone());
            all.insert("rerank.depth".to_owned(), rerank.depth.to_string());
        }
        all
    }

    /// All that is compared nowhere else: citations, counts, the manifest, warnings, what was worked out from the
    /// candidates. The folder of a collection may be another.
    fn rest(&self) -> BTreeMap<String, String> {
        let mut all = flat("", &serde_json::to_value(self).expect("a trace is always JSON"));
        let is_compared = |key: &str| {
            let config = key.strip_prefix("assembly.").filter(|key| key.starts_with("config."));
            ["cento", "collection.", "search.", "assembly.query", "assembly.records."]
                .iter()
                .any(|of| key.starts_with(of))
                || ["delivered.n_bytes", "delivered.blake3"].contains(&key)
                || config.is_some_and(|key| !DERIVED.contains(&key))
        };
        all.retain(|key, _| !is_compared(key));
        all
    }

    fn totals(&self) -> BTreeMap<String, String> {
        let manifest = &self.assembly.manifest;
        let mut totals = BTreeMap::from([
            ("tokens".to_owned(), manifest.tokens.to_string()),
            ("text_tokens".to_owned(), manifest.text_tokens.to_string()),
        ]);
        if let Some(certificate) = &manifest.certificate {
            let figures = [("value", certificate.value), ("bound", certificate.bound), ("gap", certificate.gap)];
            totals.extend(figures.map(|(name, figure)| (name.to_owned(), figure.to_string())));
        }
        totals
    }

    /// The first candidate, in the order of this trace, that is missing or found otherwise; else the first that is new.
    fn first_candidate(&self, now: &Self) -> Option<Difference> {
        let (before, after) = (by_chunk(self), by_chunk(now));
        let difference = |id: &str, before: String, after: String| {
            let what = format!("candidate {id}");
            Some(Difference { what, before, after })
        };
        for record in &self.assembly.records {
            let Some(other) = after.get(record.chunk_id.as_str()) else {
                return difference(&record.chunk_id, format!("place {}", record.rank), "no candidate".to_owned());
            };
            let is_said = |key: &str| record.span.is_some() || !key.starts_with("span."); // earlier traces have none
            if let Some(change) = first_change(record, other, |key| !is_decision(key) && key != "rank" && is_said(key))
            {
                return difference(&record.chunk_id, change.before, change.after);
            }
        }
        let new = now.assembly.records.iter().find(|record| !before.contains_key(record.chunk_id.as_str()))?;
        difference(&new.chunk_id, "no candidate".to_owned(), format!("place {}", new.rank))
    }

    /// The first record that stands elsewhere, or has another rank.
    fn first_place(&self, now: &Self) -> Option<Difference> {
        let places = |trace: &Self| -> Vec<String> {
            let place = |record: &Record| format!("{} at rank {}", record.chunk_id, record.rank);
            trace.assembly.records.iter().map(place).collect()
        };
        let (before, after) = (places(self), places(now));
        let n = before.iter().zip(&after).take_while(|(before, after)| before == after).count();
        let at = |places: &[String]| places.get(n).cloned().unwrap_or_else(|| "absent".to_owned());
        let is_whole = n == before.len() && n == after.len();
        (!is_whole).then(|| Difference { what: format!("record {}", n + 1), before: at(&before), after: at(&after) })
    }

    /// The first candidate of both, in the order of this trace, that was decided otherwise.
    fn first_decision(&self, now: &Self) -> Option<Difference> {
        let after = by_chunk(now);
        self.assembly.records.iter().find_map(|record| {
            let change = first_change(record, after.get(record.chunk_id.as_str())?, is_decision)?;
            Some(Difference { what: format!("decision {}", record.chunk_id), ..change })
        })
    }
}

/// The first figure, among those that count, that two records of a chunk differ in.
fn first_change(record: &Record, other: &Record, counts: impl Fn(&str) -> bool) -> Option<Difference> {
    let of = |record: &Record| {
        let mut figures = flat("", &serde_json::to_value(record).expect("a record is always JSON"));
        figures.retain(|key, _| counts(key));
        figures
    };
    let first = changes(&of(record), &of(other)).into_iter().next()?;
    let figure = |value: &str| format!("{} {value}", first.what);
    let (before, after) = (figure(&first.before), figure(&first.after));
    Some(Difference { what: first.what, before, after })
}

fn is_decision(key: &str) -> bool {
    DECISION.contains(&key.split('.').next().unwrap_or(key))
}

fn by_chunk(trace: &ContextTrace) -> BTreeMap<&str, &Record> {
    trace.assembly.records.iter().map(|record| (record.chunk_id.as_str(), record)).collect()
}

/// Keys of either whose values differ.
fn changes(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<Difference> {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let value =
        |of: &BTreeMap<String, String>, key: &String| of.get(key).cloned().unwrap_or_else(|| "absent".to_owned());
    let differ = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    differ.map(|key| Difference { what: key.clone(), before: value(before, key), after: value(after, key) }).collect()
}

fn flat(name: &str, value: &Value) -> BTreeMap<String, String> {
    let mut flat = BTreeMap::new();
    flatten(name, value, &mut flat);
    flat
}

/// Every value by its dotted key. Nulls are absent.
fn flatten(name: &str, value: &Value, flat: &mut BTreeMap<String, String>) {
    let key = |inner: &str| if name.is_empty() { inner.to_owned() } else { format!("{name}.{inner}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(inner, value)| flatten(&key(inner), value, flat)),
        Value::Array(list) => list.iter().enumerate().for_each(|(n, value)| flatten(&key(&n.to_string()), value, flat)),
        Value::Null => {}
        Value::String(text) => drop(flat.insert(name.to_owned(), text.clone())),
        other => drop(flat.insert(name.to_owned(), other.to_string())),
    }
}
