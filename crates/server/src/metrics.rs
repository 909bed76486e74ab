//! Metrics as Prometheus reads them: requests, latency by route and by stage, queues, tokens, generations.

use std::collections::BTreeMap;
use std::time::Duration;

use cento_engine::{ShardStatus, Timings};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Ends of the buckets of latencies, in seconds: from a query of a small collection to the deadline.
const SECONDS: [f64; 14] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// The type of the text that [`Metrics::text`] writes.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRoute {
    route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfStage {
    stage: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfLane {
    lane: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCollection {
    collection: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfReplica {
    collection: String,
    replica: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCalls {
    collection: String,
    replica: String,
    /// `answered`, `failed` or `overtaken`.
    end: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfShard {
    collection: String,
    shard: String,
}

/// Histograms of one kind, by label.
type Latencies<L> = Family<L, Histogram, fn() -> Histogram>;

/// Everything that is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    latency: Latencies<OfRoute>,
    stages: Latencies<OfStage>,
    tokens: Counter,
    waiting: Family<OfLane, Gauge>,
    generations: Family<OfCollection, Gauge>,
    pub(crate) connections: Gauge,
}

fn histogram() -> Histogram {
    Histogram::new(SECONDS)
}

/// The stages of a search and the time of each; that of a reranker only where one read.
pub(crate) fn stages(timings: &Timings) -> impl Iterator<Item = (&'static str, Duration)> + use<> {
    let Timings { embed, dense, lexical, fuse, rerank, texts } = *timings;
    let stages = [("embed", embed), ("dense", dense), ("lexical", lexical), ("fuse", fuse), ("texts", texts)];
    stages.into_iter().chain(Some(("rerank", rerank)).filter(|_| !rerank.is_zero()))
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("cento");
        let requests = Family::default();
        let latency = Latencies::new_with_constructor(histogram as fn() -> Histogram);
        let stages = Latencies::new_with_constructor(histogram as fn() -> Histogram);
        let (tokens, waiting, generations) = (Counter::default(), Family::default(), Family::default());
        let connections = Gauge::default();
        registry.register("requests", "Requests answered, by route and status", requests.clone());
        registry.register("request_seconds", "Time to answer a request, queue included", latency.clone());
        registry.register("stage_seconds", "Time of a stage of a search", stages.clone());
        registry.register("embedded_tokens", "Tokens that encoders read for requests to embed", tokens.clone());
        registry.register("queue_waiting", "Requests that wait for an engine thread", waiting.clone());
        registry.register("generation", "Generation of a collection that answered last", generations.clone());
        registry.register("connections", "Connections that are open", connections.clone());
        Self { registry, requests, latency, stages, tokens, waiting, generations, connections }
    }

    pub(crate) fn answered(&self, route: &str, status: u16, time: Duration) {
        self.requests.get_or_create(&Answered { route: route.to_owned(), status }).inc();
        self.latency.get_or_create(&OfRoute { route: route.to_owned() }).observe(time.as_secs_f64());
    }

    pub(crate) fn searched(&self, timings: &Timings) {
        for (stage, time) in stages(timings) {
            self.stages.get_or_create(&OfStage { stage }).observe(time.as_secs_f64());
        }
    }

    pub(crate) fn embedded(&self, n_tokens: u64) {
        self.tokens.inc_by(n_tokens);
    }

    pub(crate) fn generation(&self, collection: &str, generation: u64) {
        let of = OfCollection { collection: collection.to_owned() };
        self.generations.get_or_create(&of).set(i64::try_from(generation).unwrap_or(i64::MAX));
    }

    pub(crate) fn waiting(&self, lane: &'static str, n: usize) {
        self.waiting.get_or_create(&OfLane { lane }).set(i64::try_from(n).unwrap_or(i64::MAX));
    }

    /// Everything in the text format of OpenMetrics, which Prometheus reads; `shards` are those of each collection.
    pub(crate) fn text(&self, shards: &BTreeMap<String, Vec<ShardStatus>>) -> String {
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = encode_registry(&mut text, &self.registry);
        let _ = encode_registry(&mut text, &of_shards(shards));
        let _ = encode_eof(&mut text);
        text
    }
}

/// The servers of shards as they are known, who count themselves; those that are named no more are left out.
fn of_shards(shards: &BTreeMap<String, Vec<ShardStatus>>) -> Registry {
    let (up, calls) = (Family::<OfReplica, Gauge>::default(), Family::<OfCalls, Counter>::default());
    let [hedged, won] = [(); 2].map(|()| Family::<OfShard, Counter>::default());
    for (collection, shard) in shards.iter().flat_map(|(name, shards)| shards.iter().map(move |of| (name, of))) {
        let of = OfShard { collection: collection.clone(), shard: shard.shard.clone() };
        hedged.get_or_create(&of).inc_by(shard.n_hedged);
        won.get_or_create(&of).inc_by(shard.n_hedges_won);
        for replica in &shard.replicas {
            let of = OfReplica { collection: collection.clone(), replica: replica.address.clone() };
            up.get_or_create(&of).set(i64::from(replica.down.is_none()));
            let [answered, failed, overtaken] = [replica.n_answers, replica.n_failures, replica.n_overtaken];
            for (end, n) in [("answered", answered), ("failed", failed), ("overtaken", overtaken)] {
                let OfReplica { collection, replica } = of.clone();
                calls.get_or_create(&OfCalls { collection, replica, end }).inc_by(n);
            }
        }
    }
    let mut registry = Registry::with_prefix("cento");
    if !shards.is_empty() {
        registry.register("replica_up", "1 for a server of a shard that answered last, 0 for one at rest", up);
        registry.register("replica_calls", "Calls to a server of a shard, by their end", calls);
        registry.register("shard_hedged_calls", "Calls made to a second server, the first being late", hedged);
        registry.register("shard_hedges_won", "Calls that the second server answered first", won);
    }
    registry
}
