//! The likelihood of a hit: on a scale that means the same for every question, unlike the score, which ranks the chunks
//! of one question and is high for the best of them even where none is of any use.
//!
//! It is that of [`Evidence`]: how near the chunk is to the question, on the collection's calibrated scale, and how
//! much of what BM25 could give to the question's words it has. Both are measured for every hit, whichever retriever
//! found it.
//! Cost: a vector for each hit, and the postings of those that only vectors found; all postings of the question's terms
//! where its words were not ranked.

use std::fmt;

use cento_assembly::Evidence;
use cento_collection::format::calibration::{Calibration, Figures};
use cento_lexical::{Bm25, Statistics};

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::retrieve::request::ChunkSearch;
use crate::retrieve::searcher::Searcher;
use crate::source::refs::ChunkRef;
use crate::source::seam::Counted;

/// The beginning of the warning that hits have no likelihood.
pub const NO_LIKELIHOODS: &str = "no likelihoods";

/// The reason that hits have no likelihood, and the way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unlikely {
    /// No vector was asked.
    WordsAlone,
    /// The vectors were given, and no encoder tells what their cosines mean.
    GivenVectors,
    /// Nobody measured what cosines mean.
    NotCalibrated,
    /// It was measured, and they mean nothing, or there was too little to measure.
    NoScale,
}

impl fmt::Display for Unlikely {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WordsAlone => "a search by words alone has no likelihoods; search by vectors too",
            Self::GivenVectors => "the collection was given its vectors, and no encoder tells what their cosines mean",
            Self::NotCalibrated => {
                "the collection, or one of several, was indexed before likelihoods were measured; index it again"
            }
            Self::NoScale => {
                "the collection has too few sentences for likelihoods, or its encoder tells no text from another; \
                 index more documents, or with another encoder"
            }
        })
    }
}

/// The scale of one question.
pub(crate) struct Scale<'q> {
    query: &'q str,
    bm25: Bm25,
    /// \[D\], of unit length.
    vector: Vec<f32>,
    figures: Figures,
    words_most: f64,
    /// Those that the question's words were ranked under.
    statistics: Option<&'q Statistics>,
}

impl Searcher {
    /// The meaning of cosines in the collection, or the reason that they have none.
    pub(crate) fn figures(&self) -> std::result::Result<Figures, Unlikely> {
        if self.manifest().config.given.is_some() {
            return Err(Unlikely::GivenVectors);
        }
        let calibration = self.manifest().calibration.as_ref().ok_or(Unlikely::NotCalibrated)?;
        Calibration::figures(calibration).ok_or(Unlikely::NoScale)
    }

    /// The most that BM25 could give to the words of a question; 0 where the collection has none of them.
    pub(crate) fn words_most(&self, query: &str, cancel: &Cancel) -> Result<f64> {
        let terms = self.analyzer.terms(query);
        let statistics = self.source.statistics(Counted::Texts, &terms, cancel)?;
        Ok(terms.iter().map(|term| statistics.idf(term).unwrap_or_default()).sum())
    }

    /// The scale of a question that was embedded, or why it has none.
    pub(crate) fn scale<'q>(
        &self,
        request: &'q ChunkSearch,
        vector: Option<Vec<f32>>,
        statistics: Option<&'q Statistics>,
    ) -> Result<std::result::Result<Scale<'q>, Unlikely>> {
        let Some(vector) = vector else { return Ok(Err(Unlikely::WordsAlone)) };
        let figures = match self.figures() {
            Ok(figures) => figures,
            Err(unlikely) => return Ok(Err(unlikely)),
        };
        let words_most = self.words_most(&request.query, &request.cancel)?;
        let (query, bm25) = (&request.query, request.weights.bm25());
        Ok(Ok(Scale { query, bm25, vector, figures, words_most, statistics }))
    }

    /// The likelihood of each chunk, in (0, 1); its BM25 score comes along where it is known.
    pub(crate) fn likelihoods(&self, scale: &Scale<'_>, mut found: Vec<(ChunkRef, Option<f64>)>) -> Result<Vec<f64>> {
        let chunks: Vec<ChunkRef> = found.iter().map(|(chunk, _)| *chunk).collect();
        if scale.words_most > 0.0 {
            let unscored: Vec<&mut _> = found.iter_mut().filter(|(_, words)| words.is_none()).collect();
            let asked: Vec<ChunkRef> = unscored.iter().map(|(chunk, _)| *chunk).collect();
            let explained = self.source.explain(scale.query, &asked, scale.bm25, scale.statistics)?;
            for ((_, words), explanation) in unscored.into_iter().zip(explained) {
                *words = Some(explanation.score);
            }
        }
        let vectors = self.source.vectors(&chunks)?;
        Ok(vectors.iter().zip(found).map(|(vector, (_, words))| scale.evidence(vector, words).likelihood()).collect())
    }
}

impl Scale<'_> {
    fn evidence(&self, vector: &[f32], words: Option<f64>) -> Evidence {
        Evidence {
            cosine: self.vector.iter().zip(vector).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum(),
            cosine_typical: self.figures.cosine_typical,
            cosine_unrelated: self.figures.cosine_unrelated,
            words: words_share(words.unwrap_or(0.0), self.words_most),
        }
    }
}

/// A BM25 score as a share of the most that there could be, in [0, 1].
pub(crate) fn words_share(score: f64, most: f64) -> f64 {
    if most > 0.0 { (score / most).clamp(0.0, 1.0) } else { 0.0 }
}

pub(crate) fn refused(least: f64, reason: String) -> Error {
    Error::Setting { setting: "min-score", value: least.to_string(), reason }
}
