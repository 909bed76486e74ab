//! `cento eval-context`: what the contexts of a batch are worth, by strategy and budget.

use cento_eval::context::{Group, MeasureOptions, Missing, measure};
use cento_eval::contexts;
use cento_eval::questions::Questions;
use serde_json::{Value, json};

use super::groups::{self, Detail, Tokenizers};
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
    let tokenizers = Tokenizers::new(args.model.as_deref());
    let ends = |text: &str, name: &str| tokenizers.ends(text, name);
    let groups = measure(
        &questions,
        files.into_iter().flatten(),
        &MeasureOptions {
            tokens: &ends,
            sentences: Some(&cento_engine::corpus::sentences),
            document_cutoffs: args.cutoffs.clone(),
            missing: missing(args),
        },
    )?;
    groups::check_names(&args.figures, &groups)?;
    let shown = |name: &str| args.figures.is_empty() || args.figures.iter().any(|asked| asked == name);
    if global.json {
        output::json(&answer(args, &groups, &shown))?;
    } else {
        groups::print(&groups, &shown);
        if !global.quiet {
            groups::remark(&groups, missing(args));
        }
    }
    Ok(Outcome::Done)
}

fn missing(args: &EvalContext) -> Missing {
    if args.retrieved_only { Missing::Skip } else { Missing::Zero }
}

fn answer(args: &EvalContext, groups: &[Group], shown: &dyn Fn(&str) -> bool) -> Value {
    let detail = if args.per_query { Detail::Queries } else { Detail::Means };
    let object = |group: &Group| {
        let mut object = groups::object(group, shown, detail);
        let by_label = group.tokens_by_label.iter().map(|(label, tokens)| (label.clone(), json!(tokens)));
        object.insert("tokens_by_label".to_owned(), Value::Object(by_label.collect()));
        Value::Object(object)
    };
    json!({
        "version": output::JSON_VERSION, "questions": args.questions.display().to_string(),
        "questions_without_context": groups::without_context(missing(args)), "groups": groups.iter().map(object).collect::<Vec<_>>(),
    })
}
