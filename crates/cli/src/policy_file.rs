//! The file of `--policy`: settings, and of a pipeline's configuration the strategy and the budget, which flags must
//! not contradict.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use cento_engine::api::Budget;
use cento_engine::{Pipeline, Policy, Stated, Strategy};

use crate::options::usage;

/// Where the configuration of a pipeline says the budget.
const BUDGET_KEY: &str = "pipeline.token_budget";
/// A longer file is no policy.
const BYTES_MAX: u64 = 16 << 20;
const NO_BUDGET: &str = "--budget: is missing; say how many tokens a context may have";

/// Content of a `--policy` file: settings; of a pipeline's configuration a strategy and a budget too.
pub(crate) struct Asked {
    pub(crate) policy: Policy,
    path: PathBuf,
    strategy: Option<Stated<Strategy>>,
    budget_tokens: Option<Stated<usize>>,
}

/// Reads a policy, TOML or by its ending YAML; the default one where there is no file.
pub(crate) fn read(path: Option<&Path>) -> anyhow::Result<Asked> {
    let nothing = Asked { policy: Policy::default(), path: PathBuf::new(), strategy: None, budget_tokens: None };
    let Some(path) = path else { return Ok(nothing) };
    let wrong = |error: &dyn Display| usage(format!("--policy {}: {error}", path.display()));
    let bytes = cento_engine::read_bounded(path, BYTES_MAX).map_err(|error| wrong(&error))?;
    let text = String::from_utf8(bytes).map_err(|error| wrong(&error.utf8_error()))?;
    let is_yaml =
        path.extension().is_some_and(|ending| ["yaml", "yml"].iter().any(|yaml| ending.eq_ignore_ascii_case(yaml)));
    let nothing = Asked { path: path.to_owned(), ..nothing };
    let asked = if is_yaml {
        Pipeline::parse(&text).map(|Pipeline { policy, strategy, budget_tokens }| Asked {
            policy,
            strategy: Some(strategy),
            budget_tokens,
            ..nothing
        })
    } else {
        Policy::parse(&text).map(|policy| Asked { policy, ..nothing })
    };
    asked.map_err(|error| usage(format!("--policy {}: {}", path.display(), cento_engine::describe(&error))))
}

impl Asked {
    /// The strategies of `--strategy`, that of the file, or the default one.
    pub(crate) fn strategies(&self, flags: &[Strategy]) -> anyhow::Result<Vec<Strategy>> {
        let strategies = self.agreed("--strategy", flags, "retrieval.strategy", self.strategy)?;
        Ok(if strategies.is_empty() { vec![Strategy::default()] } else { strategies })
    }

    /// The budgets of `--budget`, or that of the file.
    pub(crate) fn budgets(&self, flags: &[Budget]) -> anyhow::Result<Vec<Budget>> {
        let budgets = self.agreed("--budget", flags, BUDGET_KEY, self.budget())?;
        if budgets.is_empty() { Err(usage(NO_BUDGET)) } else { Ok(budgets) }
    }

    /// The strategy and the budget of one command, where its flags or the file name them.
    pub(crate) fn only(
        &self,
        strategy: Option<Strategy>,
        budget: Option<Budget>,
    ) -> anyhow::Result<(Option<Strategy>, Option<Budget>)> {
        let budget = self.agreed("--budget", budget.as_slice(), BUDGET_KEY, self.budget())?;
        let strategy = self.agreed("--strategy", strategy.as_slice(), "retrieval.strategy", self.strategy)?;
        Ok((strategy.first().copied(), budget.first().copied()))
    }

    fn budget(&self) -> Option<Stated<Budget>> {
        self.budget_tokens.map(|Stated { value, line }| Stated { value: Budget::Tokens(value), line })
    }

    /// Takes what flags say if there are any, else what the file says; an error if they say something else.
    fn agreed<T>(&self, flag: &str, flags: &[T], key: &str, stated: Option<Stated<T>>) -> anyhow::Result<Vec<T>>
    where
        T: Copy + PartialEq + Display,
    {
        let Some(Stated { value, line }) = stated else { return Ok(flags.to_vec()) };
        match flags.iter().find(|&&other| other != value) {
            Some(other) => Err(usage(format!(
                "{flag} {other}: contradicts line {line} of {}, whose `{key}` asks for {value}; leave one of them out",
                self.path.display()
            ))),
            None => Ok(vec![value]),
        }
    }
}
