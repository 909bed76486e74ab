//! Batches: many questions, or many vectors, asked in one way.

use cento_collection::format::config::Distance;
use cento_collection::format::manifest::Manifest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parse::Request;
use super::search::{DEFAULT_RESULTS, SearchRequest};
use super::version::VERSION;
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::limits::{self, CANDIDATES_MAX, EF_MAX, IDS_MAX, NEIGHBORS_ANSWERED_MAX, TEXT_BYTES_MAX};
use crate::retrieve::dense::{NeighborSearch, VectorNeighbors};
use crate::retrieve::search::SearchResponse;
use crate::source::filter::{FILTER_BYTES_MAX, Filter};
use crate::source::seam::Scan;

/// Width of the beam that walks a graph for neighbours, unless another is asked for.
pub const DEFAULT_NEIGHBORS_EF: usize = 128;

/// Questions that are asked in one way.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchRequest {
    /// The questions.
    pub queries: Vec<BatchQuery>,
    /// The way they are asked; its own `query` is left out.
    #[serde(default)]
    pub search: SearchRequest,
}

/// A question of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchQuery {
    /// The name that its answer carries.
    pub id: String,
    /// The question, in plain words.
    pub query: String,
}

/// The answer to a question of a batch.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct BatchAnswer {
    /// The name of the question.
    pub id: String,
    /// The answer that the question alone has.
    pub answer: SearchResponse,
}

impl BatchRequest {
    /// A question of the batch as a request of its own.
    #[must_use]
    pub fn search(&self, query: &BatchQuery) -> SearchRequest {
        SearchRequest { query: query.query.clone(), ..self.search.clone() }
    }
}

impl Request for BatchRequest {
    fn check(&self) -> Result<()> {
        limits::within("queries", self.queries.len(), 1, IDS_MAX)?;
        self.queries.iter().try_for_each(|query| {
            limits::text("id", &query.id, TEXT_BYTES_MAX)?;
            self.search(query).check()
        })
    }
}

/// Vectors whose nearest neighbours are wanted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["vectors"]))]
pub struct NeighborsRequest {
    /// The vectors, each as long as the collection's.
    pub vectors: Vec<Vec<f32>>,
    /// Neighbours of each.
    pub k: usize,
    /// Width of the beam that walks a graph, at least `k`: wider is better and slower.
    pub ef: Option<usize>,
    /// The way vectors are scanned.
    pub scan: Scan,
    /// Ids of the documents that may answer; all, if there is none.
    pub within: Vec<String>,
    /// A filter that documents, or chunks of theirs, must pass.
    pub filter: Option<String>,
}

impl Default for NeighborsRequest {
    fn default() -> Self {
        Self {
            vectors: Vec::new(),
            k: DEFAULT_RESULTS,
            ef: None,
            scan: Scan::default(),
            within: Vec::new(),
            filter: None,
        }
    }
}

impl NeighborsRequest {
    /// The request as a searcher takes it.
    ///
    /// # Errors
    /// [`Error::Filter`] for a filter that is none.
    pub fn resolve(&self, cancel: &Cancel) -> Result<NeighborSearch> {
        Ok(NeighborSearch {
            k: self.k,
            ef: self.ef.unwrap_or(DEFAULT_NEIGHBORS_EF),
            scan: self.scan,
            scope: (!self.within.is_empty()).then(|| self.within.clone()),
            filter: self.filter.as_deref().map(Filter::parse).transpose()?,
            accelerator: None,
            cancel: cancel.clone(),
        })
    }
}

impl Request for NeighborsRequest {
    fn check(&self) -> Result<()> {
        limits::within("vectors", self.vectors.len(), 1, limits::VECTORS_MAX)?;
        limits::vectors("vectors", &self.vectors)?;
        limits::within("k", self.k, 1, CANDIDATES_MAX)?;
        if self.vectors.len() * self.k > NEIGHBORS_ANSWERED_MAX {
            let (n_vectors, value) = (self.vectors.len(), self.k.to_string());
            let reason =
                format!("for each of {n_vectors} vectors is more than the {NEIGHBORS_ANSWERED_MAX} of one answer");
            return Err(Error::Setting { setting: "k", value, reason });
        }
        self.ef.map_or(Ok(()), |ef| limits::within("ef", ef, self.k, EF_MAX))?;
        limits::ids("within", &self.within)?;
        self.filter.as_deref().map_or(Ok(()), |filter| limits::text("filter", filter, FILTER_BYTES_MAX))
    }
}

/// The nearest neighbours of vectors.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NeighborsAnswer {
    /// Format of this answer.
    pub version: u32,
    /// Generation of the collection.
    pub generation: u64,
    /// The order of neighbours, which says what scores are.
    pub distance: Distance,
    /// The way vectors were scanned: `exact`, `graph`, or `exact and graph`.
    pub scanned: &'static str,
    /// For each vector its neighbours, nearest first.
    pub neighbors: Vec<NeighborList>,
}

/// The neighbours of a vector.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NeighborList {
    /// Their ids: of chunks, or of documents where the collection was given its vectors.
    pub ids: Vec<String>,
    /// Their scores, larger is nearer: cosines, inner products, or Euclidean distances below 0.
    pub scores: Vec<f64>,
}

impl NeighborsAnswer {
    pub(crate) fn new(manifest: &Manifest, scanned: &'static str, found: Vec<VectorNeighbors>) -> Self {
        let list = |VectorNeighbors { ids, scores }| NeighborList { ids, scores };
        Self {
            version: VERSION,
            generation: manifest.generation,
            distance: manifest.config.distance(),
            scanned,
            neighbors: found.into_iter().map(list).collect(),
        }
    }
}
