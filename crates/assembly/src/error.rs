//! What a caller can do about a fusion, a policy or an assembly that cannot go on.

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The failures between two rankings and a delivered context.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Error {
    /// Not even the shortest thing there is to say fits: ask for more tokens.
    #[error("a budget of {budget} tokens is too small: the shortest answer needs {needed}")]
    BudgetTooSmall {
        /// Tokens asked for.
        budget: usize,
        /// The least budget that would have been answered.
        needed: usize,
    },
    /// The context is not wanted any more, as the signal to stop said.
    #[error("stopped before the context was assembled")]
    Cancelled,
    /// Only some strategies know that.
    #[error("{what} is of the strategy cento: `{strategy}` knows no value of a token")]
    Strategy {
        /// The thing asked for.
        what: &'static str,
        /// Of which strategy.
        strategy: crate::Strategy,
    },
    /// A chunk cannot be included.
    #[error("{id} cannot be included: {reason}")]
    Include {
        /// Its id as given.
        id: String,
        /// Why not, and the way out.
        reason: &'static str,
    },
    /// The chunks to be included do not fit.
    #[error(
        "what must be included ({ids}) needs {needed} tokens, the budget is {budget}: include less, or raise the budget to {needed} or more"
    )]
    IncludeTooLong {
        /// Ids of the chunks.
        ids: String,
        /// Tokens of a context of them alone.
        needed: usize,
        /// Tokens asked for.
        budget: usize,
    },
    /// A candidate contradicts itself or another one; the caller built it wrongly.
    #[error("candidate {id}: {reason}")]
    Candidate {
        /// Public id of the candidate.
        id: String,
        /// The fault.
        reason: &'static str,
    },
    /// The policy is not TOML, or a value is of the wrong type.
    #[error("policy: {0}")]
    PolicySyntax(#[from] toml::de::Error),
    /// The policy has a key that means nothing.
    #[error("policy: unknown key `{key}`{}", nearest.map(|name| format!(", did you mean `{name}`?")).unwrap_or_default())]
    PolicyKey {
        /// The key as written.
        key: String,
        /// The known key nearest to it, where one is near.
        nearest: Option<&'static str>,
    },
    /// A value of the policy is outside its range.
    #[error("policy: `{key}` {reason}")]
    PolicyValue {
        /// The key, with its table: `rho.appendix`.
        key: String,
        /// The range it must keep.
        reason: &'static str,
    },
    /// Something is wrong on a line of a policy or of a pipeline's configuration.
    #[error("line {line}: {error}")]
    AtLine {
        /// The line, from 1.
        line: usize,
        /// The fault on that line.
        error: Box<Error>,
    },
    /// A pipeline's configuration is not YAML, or not of its form.
    #[error("{reason}")]
    PipelineSyntax {
        /// The difference to what is expected.
        reason: String,
    },
    /// A value of a pipeline's configuration is of another type or out of its range.
    #[error("`{key}` is {value}, it must be {expected}")]
    PipelineValue {
        /// The key, with its table: `local_expansion.radius`.
        key: &'static str,
        /// The value as written.
        value: String,
        /// The range it must keep.
        expected: &'static str,
    },
    /// A key stands twice in a pipeline's configuration.
    #[error("`{key}` is there twice, first on line {first}")]
    PipelineTwice {
        /// The key, with its table.
        key: &'static str,
        /// The line of the first.
        first: usize,
    },
    /// Two keys of a pipeline's configuration contradict each other.
    #[error("`{key}` is {value}, but `{other}` is {is}")]
    PipelineConflict {
        /// The key that wants something.
        key: &'static str,
        /// Its value.
        value: String,
        /// The key that does not give it.
        other: &'static str,
        /// Its value and line, or that it is not there.
        is: String,
    },
    /// A pipeline's configuration does not say what it is a configuration of.
    #[error("there is no `retrieval.strategy`: it is local_expansion, structural_resolution or hybrid")]
    PipelineStrategy,
    /// A name that is none of the choices.
    #[error("unknown {what} `{name}`: expected {expected}")]
    Name {
        /// The kind of thing named: a strategy, a format.
        what: &'static str,
        /// The name as written.
        name: String,
        /// The choices.
        expected: String,
    },
    /// Two arms of a fusion have the same name, so an explanation could not tell them apart.
    #[error("arm `{arm}` is there twice")]
    DuplicateArm {
        /// Name of the arm.
        arm: String,
    },
    /// One arm holds the same id twice, which would count it twice.
    #[error("arm `{arm}` holds the same id twice, the second time at rank {rank}")]
    DuplicateHit {
        /// Name of the arm.
        arm: String,
        /// 1-based rank of the second occurrence.
        rank: usize,
    },
    /// A score, weight or constant is NaN or infinite, or becomes so in the computation.
    #[error("{what} is not a finite number")]
    NotFinite {
        /// Where it was met.
        what: String,
    },
    /// A number is outside its range.
    #[error("{what} is {value}, it must be {expected}")]
    Range {
        /// The thing out of range.
        what: String,
        /// The value received.
        value: f64,
        /// The range it must keep.
        expected: &'static str,
    },
    /// Theoretical minima are given for another number of arms.
    #[error("{received} theoretical minima for {expected} arms")]
    Minima {
        /// Arms of the fusion.
        expected: usize,
        /// Minima given.
        received: usize,
    },
}

impl Error {
    /// A name of the kind of error that does not change; where a line is named, that of the fault in it.
    pub fn code(&self) -> &'static str {
        if let Self::AtLine { error, .. } = self { error.code() } else { self.into() }
    }

    /// A name that is none of `names`.
    pub(crate) fn unknown(what: &'static str, name: &str, names: &[&str]) -> Self {
        let expected = match names {
            [] => String::new(),
            [only] => (*only).to_owned(),
            [first @ .., last] => format!("{} or {last}", first.join(", ")),
        };
        Self::Name { what, name: name.to_owned(), expected }
    }

    /// A value of a policy that is not in its range, unless it `holds`.
    pub(crate) fn unless(holds: bool, key: &str, reason: &'static str) -> Result<()> {
        if holds { Ok(()) } else { Err(Self::PolicyValue { key: key.into(), reason }) }
    }
}
