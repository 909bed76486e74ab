//! What an encoder alone answers: vectors of texts, and texts ranked by them.

use cento_embedder::{Embedding, Kind};

use super::{Service, Which};
use crate::api::{self, EMBED_TEXTS_MAX, Request as _};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::limits::{self, TEXT_BYTES_MAX};
use crate::retrieve::request::Mode;

/// The vectors of texts, and what the encoder read of each.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// The encoder, as the collection names it.
    pub model: String,
    /// Its fingerprint.
    pub model_fingerprint: String,
    /// Length of the vectors.
    pub dimensions: usize,
    /// Tokens of a text that are read at most.
    pub max_tokens: usize,
    /// One for each text, in order.
    pub embeddings: Vec<Embedding>,
}

impl Service {
    /// The vectors that a collection's encoder gives to texts.
    ///
    /// # Errors
    /// Those of [`api::EmbedAnswer::new`], [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn embed<'w>(
        &self,
        which: impl Into<Which<'w>>,
        request: &api::EmbedRequest,
        cancel: &Cancel,
    ) -> Result<api::EmbedAnswer> {
        request.check()?;
        let searcher = self.searcher(which.into(), cancel)?;
        self.lend(&searcher, Mode::Dense)?;
        cancel.check()?;
        api::EmbedAnswer::new(&searcher, request, cancel)
    }

    /// The vectors that a collection's encoder gives to any number of texts, and how many tokens it read of each.
    ///
    /// # Errors
    /// [`Error::Setting`](crate::Error::Setting) for a text that is too long, those of loading the encoder and of
    /// embedding, [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn embeddings<'w>(
        &self,
        which: impl Into<Which<'w>>,
        texts: &[String],
        kind: api::TextKind,
        cancel: &Cancel,
    ) -> Result<Embeddings> {
        texts.iter().try_for_each(|text| limits::text("texts", text, TEXT_BYTES_MAX))?;
        let searcher = self.searcher(which.into(), cancel)?;
        self.lend(&searcher, Mode::Dense)?;
        let encoder = searcher.encoder()?;
        let kind = kind_of(kind);
        let mut embeddings = Vec::with_capacity(texts.len());
        for texts in texts.chunks(EMBED_TEXTS_MAX) {
            cancel.check()?;
            embeddings.extend(encoder.embed_unless(texts, kind, &|| cancel.is_cancelled())?);
        }
        let config = &searcher.manifest().config;
        Ok(Embeddings {
            model: config.model.clone(),
            model_fingerprint: config.model_fingerprint.clone(),
            dimensions: config.dimensions,
            max_tokens: encoder.max_tokens(),
            embeddings,
        })
    }

    /// Leaves of each text what a collection's encoder reads in so many tokens, its special ones and its prompt
    /// counted. The answer is how many were cut.
    ///
    /// # Errors
    /// [`Error::Setting`](crate::Error::Setting) for fewer tokens than one of a text needs, or more than the encoder
    /// reads; those of loading the encoder, [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn cut_texts<'w>(
        &self,
        which: impl Into<Which<'w>>,
        texts: &mut [String],
        kind: api::TextKind,
        tokens: usize,
        cancel: &Cancel,
    ) -> Result<usize> {
        texts.iter().try_for_each(|text| limits::text("texts", text, TEXT_BYTES_MAX))?;
        let searcher = self.searcher(which.into(), cancel)?;
        self.lend(&searcher, Mode::Dense)?;
        let encoder = searcher.encoder()?;
        let tokenizer = encoder.tokenizer();
        let beside = encoder.n_special() + tokenizer.count(encoder.prompt(kind_of(kind)));
        limits::within("tokens", tokens, beside + 1, encoder.max_tokens())?;
        let mut n_cut = 0;
        for text in texts {
            cancel.check()?;
            let ends = tokenizer.ends(text);
            if ends.len() > tokens - beside {
                text.truncate(ends[tokens - beside - 1]);
                n_cut += 1;
            }
        }
        Ok(n_cut)
    }

    /// Texts in the order in which they answer a question, by the cosine of the encoder's vectors.
    ///
    /// # Errors
    /// [`Error::Setting`](crate::Error::Setting) for a value out of its range, those of [`Service::embeddings`].
    pub fn rerank<'w>(
        &self,
        which: impl Into<Which<'w>>,
        request: &api::RerankRequest,
        cancel: &Cancel,
    ) -> Result<api::RerankAnswer> {
        request.check()?;
        let which = which.into();
        let query = self.embeddings(which, std::slice::from_ref(&request.query), api::TextKind::Query, cancel)?;
        let texts = self.embeddings(which, &request.texts, api::TextKind::Document, cancel)?;
        let read = |of: &[Embedding]| of.iter().map(|embedding| u64::from(embedding.n_tokens)).sum::<u64>();
        let n_tokens = read(&query.embeddings) + read(&texts.embeddings);
        let score = |(index, text): (usize, &Embedding)| {
            let pairs = query.embeddings[0].vector.iter().zip(&text.vector);
            let score = pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            api::Reranked { index, score, truncated: text.truncated }
        };
        let answer = api::RerankAnswer {
            version: api::VERSION,
            scored_by: api::COSINE.to_owned(),
            n_tokens,
            max_tokens: texts.max_tokens,
            results: texts.embeddings.iter().enumerate().map(score).collect(),
            model: texts.model,
            model_fingerprint: texts.model_fingerprint,
        };
        Ok(answer.ranked(request.k.unwrap_or(request.texts.len())))
    }
}

fn kind_of(kind: api::TextKind) -> Kind {
    match kind {
        api::TextKind::Query => Kind::Query,
        api::TextKind::Document => Kind::Document,
    }
}
