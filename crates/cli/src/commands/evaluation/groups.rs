//! Groups of contexts, a strategy and a budget each: how their figures are shown, and the tokenizers that they need.

use std::cell::RefCell;
use std::collections::HashMap;

use cento_engine::BudgetTokenizer;
use cento_engine::embedder::Tokenizer;
use cento_engine::model::Models;
use cento_eval::context::{Group, Missing};
use cento_eval::contexts::Budget;
use serde_json::{Map, Value, json};

use crate::{options, output};

/// The part of a group's figures that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    Means,
    /// The figures of every question too.
    Queries,
}

/// A group as JSON.
pub(super) fn object(group: &Group, shown: &dyn Fn(&str) -> bool, detail: Detail) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("strategy".to_owned(), json!(group.strategy));
    match &group.budget {
        Budget::Tokens(tokens) => object.insert("budget_tokens".to_owned(), json!(tokens)),
        Budget::Each(asked) => object.insert("budget".to_owned(), json!(asked)), // no number is that of all questions
    };
    object.insert("tokenizer".to_owned(), json!(group.tokenizer));
    object.insert("n_contexts".to_owned(), json!(group.n_contexts));
    object.insert("n_missing".to_owned(), json!(group.n_missing));
    let figures = group.figures.iter().filter(|figure| shown(&figure.name));
    object.extend(figures.clone().map(|figure| (figure.name.clone(), json!(figure.mean))));
    if detail == Detail::Queries {
        let mut queries: Map<String, Value> = Map::new();
        for figure in figures {
            for (question, value) in &figure.values {
                let of_question = queries.entry(question.clone()).or_insert_with(|| json!({}));
                of_question[&figure.name] = json!(value);
            }
        }
        object.insert("queries".to_owned(), Value::Object(queries));
    }
    object
}

/// A budget as tables name it.
pub(super) fn short(budget: &Budget) -> String {
    match budget {
        Budget::Tokens(tokens) => tokens.to_string(),
        Budget::Each(asked) => asked.clone(),
    }
}

/// The part that questions without a context have in a mean, in words.
pub(super) fn without_context(missing: Missing) -> &'static str {
    match missing {
        Missing::Zero => "count as 0",
        Missing::Skip => "are left out",
    }
}

/// The tokenizers that the contexts were counted with, each loaded once.
pub(super) struct Tokenizers<'a> {
    model: Option<&'a str>,
    known: RefCell<HashMap<String, Loaded>>,
}

enum Loaded {
    Named(BudgetTokenizer<'static>),
    Model(Box<Tokenizer>),
}

type Fault = Box<dyn std::error::Error + Send + Sync>;

impl<'a> Tokenizers<'a> {
    /// Those of a model that the contexts do not name as it is known here, too.
    pub(super) fn new(model: Option<&'a str>) -> Self {
        Self { model, known: RefCell::default() }
    }

    pub(super) fn ends(&self, text: &str, name: &str) -> Result<Vec<u64>, Fault> {
        let mut known = self.known.borrow_mut();
        if !known.contains_key(name) {
            let loaded = match name.strip_prefix("model:") {
                Some(model) => {
                    let located = Models::from_env()?;
                    let located = located.resolve(self.model.unwrap_or(model))?;
                    Loaded::Model(Box::new(Tokenizer::load(&located.folder.join("tokenizer.json"))?))
                }
                None => Loaded::Named(BudgetTokenizer::named(name)?),
            };
            known.insert(name.to_owned(), loaded);
        }
        let ends = match &known[name] {
            Loaded::Named(tokenizer) => tokenizer.ends(text),
            Loaded::Model(tokenizer) => tokenizer.ends(text),
        };
        Ok(ends.into_iter().map(|end| end as u64).collect())
    }
}

/// A figure that no group has is a mistake, unless no question can have it.
pub(super) fn check_names(asked: &[String], groups: &[Group]) -> anyhow::Result<()> {
    for name in asked {
        if !groups.iter().any(|group| group.figure(name).is_some()) {
            let known = groups.iter().flat_map(|group| &group.figures).map(|figure| figure.name.as_str());
            let nearest = known.min_by_key(|known| strsim::damerau_levenshtein(known, name)).unwrap_or_default();
            return Err(options::usage(format!(
                "--figures {name}: these questions and contexts give no such figure; nearest: {nearest}"
            )));
        }
    }
    Ok(())
}

/// A row for each figure, a column for each strategy and budget.
pub(super) fn print(groups: &[Group], shown: &dyn Fn(&str) -> bool) {
    let heads: Vec<String> =
        groups.iter().map(|group| format!("{} {}", group.strategy, short(&group.budget))).collect();
    let mut names: Vec<&str> = Vec::new();
    for figure in groups.iter().flat_map(|group| &group.figures) {
        if shown(&figure.name) && !names.contains(&figure.name.as_str()) {
            names.push(&figure.name);
        }
    }
    let rows = names.iter().map(|name| {
        let of_group =
            |group: &Group| group.figure(name).map_or_else(|| "-".to_owned(), |figure| output::figure(figure.mean));
        [(*name).to_owned()].into_iter().chain(groups.iter().map(of_group)).collect()
    });
    let header: Vec<&str> = ["figure"].into_iter().chain(heads.iter().map(String::as_str)).collect();
    println!("{}", output::table(&header, rows));
}

/// Says how many contexts there are, of which tokens, and how many are missing.
pub(super) fn remark(groups: &[Group], missing: Missing) {
    let mut said: Vec<String> = Vec::new();
    for group in groups {
        let absent = match group.n_missing {
            0 => String::new(),
            n => format!(", {} without a context {}", output::counted(n as u64, "question"), without_context(missing)),
        };
        let contexts = output::counted(group.n_contexts as u64, "context");
        let line = format!("{contexts}, tokens of {}{absent}", group.tokenizer);
        if !said.contains(&line) {
            eprintln!("{line}");
            said.push(line);
        }
    }
}
