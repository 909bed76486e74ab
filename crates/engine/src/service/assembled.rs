//! Candidates that another engine found: their context, its trace, and the trace followed again; no collection is
//! asked.

use cento_assembly::Context;

use super::Service;
use crate::api::{self, AssembleRequest, AssembledTrace, ReassembleAnswer, ReassembleRequest, Request as _, Settled};
use crate::cancel::Cancel;
use crate::context::given::Given;
use crate::error::Result;
use crate::explain::trace::{Delivered, TRACE_FILE_VERSION};

/// A context of given candidates, with all that doors tell of it.
#[derive(Debug)]
pub struct Assembled<'r> {
    request: &'r AssembleRequest,
    given: Given<'r>,
    /// The context.
    pub context: Context,
    /// The tokens that its budget came to.
    pub settled: Settled,
}

impl Assembled<'_> {
    /// The context as doors answer it.
    #[must_use]
    pub fn answer(&self) -> api::AssembleAnswer {
        api::AssembleAnswer::new(self.request, &self.given, &self.context)
    }

    /// Its trace.
    #[must_use]
    pub fn trace(&self) -> AssembledTrace {
        let context = &self.context;
        AssembledTrace {
            version: TRACE_FILE_VERSION,
            cento: env!("CARGO_PKG_VERSION").to_owned(),
            request: self.request.clone(),
            chunks: self.given.chunks(),
            delivered: Delivered {
                n_tokens: context.n_tokens,
                n_bytes: context.text.len(),
                blake3: hash(context),
                citations: context.citations.clone(),
            },
            assembly: context.trace.clone(),
        }
    }
}

impl Service {
    /// The cited context of candidates that another engine found.
    ///
    /// # Errors
    /// [`Error::Setting`] for a value out of its range, and for candidates that are not as they must be or contradict
    /// each other; [`Error::Assembly`] for a budget that holds nothing; [`Error::Cancelled`].
    pub fn assemble(&self, request: &AssembleRequest, cancel: &Cancel) -> Result<api::AssembleAnswer> {
        Ok(self.assembled(request, cancel)?.answer())
    }

    /// The same, with its trace at hand.
    ///
    /// # Errors
    /// Those of [`Service::assemble`].
    pub fn assembled<'r>(&self, request: &'r AssembleRequest, cancel: &Cancel) -> Result<Assembled<'r>> {
        request.check()?;
        let tokenizer = self.named_tokenizer(&request.tokenizer, &[])?;
        let given = Given::new(&request.query, &request.candidates, request.language()?, cancel)?;
        let wanted = request.resolve(tokenizer.get());
        let of = |budget_tokens| crate::ContextSettings { budget_tokens, ..wanted };
        let settled = request.budget.settle_by(|most| given.budget_curve(&of(most), 0))?;
        let context = given.context(&of(settled.budget_tokens))?;
        cancel.check()?;
        Ok(Assembled { request, given, context, settled })
    }

    /// The context of a trace of given candidates once more, and whether it is the same.
    ///
    /// # Errors
    /// [`Error::Setting`] for a trace of another version; those of [`Service::assemble`].
    pub fn reassemble(&self, request: &ReassembleRequest, cancel: &Cancel) -> Result<(Context, ReassembleAnswer)> {
        request.check()?;
        let trace = &request.trace;
        let context = self.assembled(&trace.request, cancel)?.context;
        let same = hash(&context) == trace.delivered.blake3;
        let answer = ReassembleAnswer::new(same, &context);
        Ok((context, answer))
    }
}

fn hash(context: &Context) -> String {
    blake3::hash(context.text.as_bytes()).to_hex().to_string()
}
