//! `cento eval-context`: what the contexts of a batch are worth, by strategy and budget.

use std::cell::RefCell;
use std::collections::HashMap;

use cento_engine::BudgetTokenizer;
use cento_engine::embedder::Tokenizer;
use cento_engine::model::Models;
use cento_eval::context::{Group, MeasureOptions, Missing, measure};
use cento_eval::contexts;
use cento_eval::questions::Questions;
use serde_json::{Map, Value, json};

use crate::args::{EvalContext, Global};
use crate::exit_code::Outcome;
use crate::{options, output};

pub(crate) fn execute(args: &EvalContext, global: &Global) -> anyhow::Result<Outcome> {
    if args.cutoffs.contains(&0) {
        return Err(options::usage("--cutoffs: 0 documents are none; give at least 1"));
    }
    let questions = Questions::read(&args.questions)?;
    let mut files = Vec::new();
    for path in &args.contexts {
        files.push(contexts::read(path)?);
    }
    let tokenizers = Tokenizers { model: args.model.as_deref(), known: RefCell::default() };
    let ends = |text: &str, name: &str| tokenizers.ends(text, name);
    let groups = measure(
        &questions,
        files.into_iter().flatten(),
        &MeasureOptions {
            tokens: &ends,
            document_cutoffs: args.cutoffs.clone(),
            missing: if args.retrieved_only { Missing::Skip } else { Missing::Zero },
        },
    )?;
    check_names(&args.figures, &groups)?;
    let shown = |name: &str| args.figures.is_empty() || args.figures.iter().any(|asked| asked == name);
    if global.json {
        output::json(&answer(args, &groups, &shown))?;
    } else {
        print(&groups, &shown);
        if !global.quiet {
            remark(args, &groups);
        }
    }
    Ok(Outcome::Done)
}

/// The tokenizers that the contexts were counted with, each loaded once.
struct Tokenizers<'a> {
    model: Option<&'a str>,
    known: RefCell<HashMap<String, Loaded>>,
}

enum Loaded {
    Named(BudgetTokenizer<'static>),
    Model(Box<Tokenizer>),
}

type Fault = Box<dyn std::error::Error + Send + Sync>;

impl Tokenizers<'_> {
    fn ends(&self, text: &str, name: &str) -> Result<Vec<u64>, Fault> {
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
fn check_names(asked: &[String], groups: &[Group]) -> anyhow::Result<()> {
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

fn answer(args: &EvalContext, groups: &[Group], shown: &dyn Fn(&str) -> bool) -> Value {
    let object = |group: &Group| {
        let mut object = Map::new();
        object.insert("strategy".to_owned(), json!(group.strategy));
        object.insert("budget_tokens".to_owned(), json!(group.budget_tokens));
        object.insert("tokenizer".to_owned(), json!(group.tokenizer));
        object.insert("n_contexts".to_owned(), json!(group.n_contexts));
        object.insert("n_missing".to_owned(), json!(group.n_missing));
        let figures = group.figures.iter().filter(|figure| shown(&figure.name));
        object.extend(figures.clone().map(|figure| (figure.name.clone(), json!(figure.mean))));
        let by_label = group.tokens_by_label.iter().map(|(label, tokens)| (label.clone(), json!(tokens)));
        object.insert("tokens_by_label".to_owned(), Value::Object(by_label.collect()));
        if args.per_query {
            let mut queries: Map<String, Value> = Map::new();
            for figure in figures {
                for (question, value) in &figure.values {
                    let of_question = queries.entry(question.clone()).or_insert_with(|| json!({}));
                    of_question[&figure.name] = json!(value);
                }
            }
            object.insert("queries".to_owned(), Value::Object(queries));
        }
        Value::Object(object)
    };
    let missing = if args.retrieved_only { "are left out" } else { "count as 0" };
    json!({
        "version": output::JSON_VERSION, "questions": args.questions.display().to_string(),
        "questions_without_context": missing, "groups": groups.iter().map(object).collect::<Vec<_>>(),
    })
}

/// A row for each figure, a column for each strategy and budget.
fn print(groups: &[Group], shown: &dyn Fn(&str) -> bool) {
    let heads: Vec<String> = groups.iter().map(|group| format!("{} {}", group.strategy, group.budget_tokens)).collect();
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

fn remark(args: &EvalContext, groups: &[Group]) {
    let mut said: Vec<String> = Vec::new();
    for group in groups {
        let missing = match (group.n_missing, args.retrieved_only) {
            (0, _) => String::new(),
            (n, false) => format!(", {n} questions without a context count as 0"),
            (n, true) => format!(", {n} questions without a context are left out"),
        };
        let line = format!("{} contexts, tokens of {}{missing}", group.n_contexts, group.tokenizer);
        if !said.contains(&line) {
            eprintln!("{line}");
            said.push(line);
        }
    }
}
