//! Rerankers: those that the service was given, and those that were pulled. No request has one downloaded, and none
//! names a folder or an address.

use std::sync::Arc;
use std::time::Duration;

use super::{Service, lock};
use crate::api::{self, Request as _};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::retrieve::rerank::allowed::Allowed;
use crate::retrieve::rerank::reading::Reranking;
use crate::retrieve::rerank::reranker::{Reranker, RerankerOptions};

impl Service {
    /// The reranking of a request that names no model: by the first reranker that the service was given.
    #[must_use]
    pub fn default_rerank(&self) -> Option<api::Rerank> {
        self.options.rerankers.first().map(|reranker| api::Rerank::new(reranker.name()))
    }

    /// Texts in the order in which a reranker finds that they answer a question: the one of the name, or where there is
    /// no name the first that the service was given. None if neither is there.
    ///
    /// # Errors
    /// [`Error::Setting`] for a value out of its range, those of the model, [`Error::Cancelled`].
    pub fn rerank_by(
        &self,
        name: Option<&str>,
        request: &api::RerankRequest,
        cancel: &Cancel,
    ) -> Result<Option<api::RerankAnswer>> {
        request.check()?;
        let reranker = match name {
            Some(name) => self.find_reranker(name)?,
            None => self.options.rerankers.first().cloned(),
        };
        let Some(reranker) = reranker else { return Ok(None) };
        let mut read = Vec::with_capacity(request.texts.len());
        for texts in request.texts.chunks(reranker.n_together()) {
            let pairs = reranker.pairs(&request.query, texts, &Allowed::all(), cancel)?;
            read.extend(pairs.ok_or(Error::Cancelled)?);
        }
        let result = |(index, pair): (usize, &cento_embedder::PairLogit)| api::Reranked {
            index,
            score: 1.0 / (1.0 + (-f64::from(pair.logit)).exp()),
            truncated: pair.truncated,
        };
        let answer = api::RerankAnswer {
            version: api::VERSION,
            model: reranker.name().to_owned(),
            model_fingerprint: reranker.fingerprint().to_owned(),
            scored_by: api::CROSS_ENCODER.to_owned(),
            n_tokens: read.iter().map(|pair| u64::from(pair.n_tokens)).sum(),
            max_tokens: reranker.max_tokens(),
            results: read.iter().enumerate().map(result).collect(),
        };
        Ok(Some(answer.ranked(request.k.unwrap_or(request.texts.len()))))
    }

    /// The reranking that a request asks for, if it asks for one.
    pub(super) fn reranking(&self, asked: Option<&api::Rerank>) -> Result<Option<Reranking>> {
        let Some(api::Rerank { model, depth, seconds }) = asked else { return Ok(None) };
        let reranker = self.find_reranker(model)?.ok_or_else(|| self.no_reranker(model))?;
        Ok(Some(Reranking::new(reranker, *depth, seconds.map(Duration::from_secs_f64))))
    }

    /// The same for documents, which are reranked all or not at all.
    pub(super) fn reranking_of_documents(&self, asked: Option<&api::Rerank>) -> Result<Option<Reranking>> {
        if let Some(seconds) = asked.and_then(|asked| asked.seconds) {
            let reason = "is a time, and a run has no place to say what was not read in it; leave it out".to_owned();
            return Err(Error::Setting { setting: "rerank-seconds", value: seconds.to_string(), reason });
        }
        self.reranking(asked)
    }

    /// The reranker that a request names: one that was given, or one that was pulled, which is loaded at its first
    /// request.
    fn find_reranker(&self, name: &str) -> Result<Option<Arc<Reranker>>> {
        if let Some(given) = self.options.rerankers.iter().find(|reranker| reranker.is_called(name)) {
            return Ok(Some(Arc::clone(given)));
        }
        let Some(name) = Reranker::pulled(name)? else { return Ok(None) };
        let mut pulled = lock(&self.rerankers); // held while one is loaded, so that it is loaded once
        if let Some(known) = pulled.get(&name) {
            return Ok(Some(Arc::clone(known)));
        }
        let options = RerankerOptions {
            device: self.options.device,
            threads: self.options.threads,
            ..RerankerOptions::default()
        };
        let found = Arc::new(Reranker::open(&name, &options)?);
        pulled.insert(name, Arc::clone(&found));
        Ok(Some(found))
    }

    fn no_reranker(&self, name: &str) -> Error {
        let known: Vec<&str> = self.options.rerankers.iter().map(|reranker| reranker.name()).collect();
        let reason = match known.as_slice() {
            [] => "is no reranker that was pulled, and none is served".to_owned(),
            known => format!("is no reranker that was pulled, and none of those served: {}", known.join(", ")),
        };
        Error::Setting { setting: "rerank", value: name.to_owned(), reason }
    }
}
