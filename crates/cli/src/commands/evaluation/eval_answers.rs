//! `cento eval-answers`: whether a model answers rightly from the contexts of a batch and cites what bears it out, by
//! strategy and budget; without a model the figures that stand in.

use cento_engine::{Completion, Endpoint, Form, Prompt};
use cento_eval::answers::{self, Head, JudgeOptions, Model, Record, STAND_INS, Said, Tally, Task};
use cento_eval::context::{DOCUMENT_CUTOFFS, Group, MeasureOptions, Missing, measure};
use cento_eval::contexts;
use cento_eval::questions::Questions;
use serde_json::{Map, Value, json};

use super::groups::{self, Detail, Tokenizers};
use crate::args::{self, EvalAnswers};
use crate::exit_code::Outcome;
use crate::output::{self, Bar, Beside, counted};
use crate::settings::Invocation;
use crate::{interrupt, options};

pub(crate) fn execute(args: &EvalAnswers, invocation: &Invocation) -> anyhow::Result<Outcome> {
    let global = &invocation.cli.global;
    let judged = Judged::open(args, invocation)?;
    let questions = Questions::read_answered(&args.questions)?;
    let mut files = Vec::new();
    for path in &args.contexts {
        files.push(contexts::read(path)?);
    }
    let mut kept = Vec::new();
    let keep = |context: &cento_eval::Result<contexts::Context>| {
        if let (Ok(context), Some(_)) = (context, &judged) {
            kept.push(context.clone());
        }
    };
    let missing = if args.retrieved_only { Missing::Skip } else { Missing::Zero };
    let tokenizers = Tokenizers::new(args.model.as_deref());
    let tokens = |text: &str, name: &str| tokenizers.ends(text, name);
    let measured =
        MeasureOptions { tokens: &tokens, sentences: None, document_cutoffs: DOCUMENT_CUTOFFS.to_vec(), missing };
    let mut groups = measure(&questions, files.into_iter().flatten().inspect(keep), &measured)?;
    for group in &mut groups {
        group.figures.retain(|figure| STAND_INS.contains(&figure.name.as_str()));
    }
    let bar = Bar::new(global, Beside::AnyAnswer);
    let tally = judged.as_ref().map(|judged| {
        let options = JudgeOptions {
            model: judged.model.as_ref().map(|model| model as &dyn Model),
            sentences: &cento_engine::corpus::sentences,
            n_at_once: args.at_once,
            missing,
            progress: &|what, n_done, n_total| bar.count(n_done, n_total, what),
        };
        answers::judge(&questions, &kept, &mut groups, &judged.record, &options)
    });
    let tally = tally.transpose();
    bar.finish();
    let tally = tally?;
    groups::check_names(&args.figures, &groups)?;
    let shown = |name: &str| args.figures.is_empty() || args.figures.iter().any(|asked| asked == name);
    if global.json {
        output::json(&answer(args, missing, &groups, &shown, judged.as_ref().zip(tally.as_ref())))?;
    } else {
        groups::print(&groups, &shown);
        if !global.quiet {
            groups::remark(&groups, missing);
        }
    }
    if let (Some(tally), false) = (&tally, global.quiet) {
        remark(tally, &groups);
    }
    Ok(if tally.is_some_and(|tally| tally.n_failed > 0) { Outcome::Partial } else { Outcome::Done })
}

/// A record, and the model that is asked for what it lacks.
struct Judged {
    record: Record,
    model: Option<Line>,
}

impl Judged {
    /// Opens what the command names; nothing, if it names neither a model nor a record.
    fn open(args: &EvalAnswers, invocation: &Invocation) -> anyhow::Result<Option<Self>> {
        let EvalAnswers { endpoint, endpoint_model, judge_model, endpoint_timeout, record, .. } = args;
        let asked = args::Endpoint {
            endpoint: endpoint.clone(),
            endpoint_model: endpoint_model.clone(),
            endpoint_timeout: *endpoint_timeout,
            endpoint_fallback: false,
        };
        let endpoint = options::endpoint(&asked, invocation.endpoint_author)?;
        match (endpoint, endpoint_model, record) {
            (Some(_), _, None) => Err(options::usage(
                "--endpoint: say with --record FILE where the calls are written; what that file has is not asked again",
            )),
            (Some(endpoint), Some(model), Some(path)) => {
                let judge_model = judge_model.as_ref().unwrap_or(model).clone();
                let record = Record::go_on(path, Head::new(model, &judge_model, args.seed))?;
                interrupt::end_on_interrupt(
                    "the calls that were answered are in the record, the same command goes on there",
                )?;
                let model = Some(Line { endpoint, model: model.clone(), judge_model });
                Ok(Some(Self { record, model }))
            }
            (_, _, _) if judge_model.is_some() => {
                Err(options::usage("--judge-model: nobody to ask; say where it is with --endpoint URL"))
            }
            (_, _, Some(path)) if !path.exists() => Err(options::usage(format!(
                "--record {}: there is no such record; give --endpoint and --endpoint-model to make it",
                path.display()
            ))),
            (_, _, Some(path)) => Ok(Some(Self { record: Record::replay(path)?, model: None })),
            (_, _, None) => Ok(None),
        }
    }
}

/// An endpoint with the models that are asked there.
struct Line {
    endpoint: Endpoint,
    model: String,
    judge_model: String,
}

impl Model for Line {
    fn host(&self) -> String {
        self.endpoint.host().to_owned()
    }

    fn ask(&self, task: Task, prompt: &str, seed: u32) -> Result<Said, String> {
        let (model, form) = match task {
            Task::Read => (&self.model, Form::Text),
            Task::Correct | Task::Support => (&self.judge_model, Form::Json),
        };
        let prompt = Prompt { model, system: task.words(), user: prompt, seed, form };
        let Completion { message, n_prompt_tokens, n_completion_tokens } =
            self.endpoint.complete(&prompt).map_err(|error| error.to_string())?;
        Ok(Said { message, n_prompt_tokens, n_completion_tokens })
    }
}

fn answer(
    args: &EvalAnswers,
    missing: Missing,
    groups: &[Group],
    shown: &dyn Fn(&str) -> bool,
    judged: Option<(&Judged, &Tally)>,
) -> Value {
    let detail = if args.per_query { Detail::Queries } else { Detail::Means };
    let object = |group: &Group| {
        let mut object: Map<String, Value> = groups::object(group, shown, detail);
        for name in COUNTED {
            if let Some(n) = count(group, name) {
                object.insert(format!("n_{name}"), json!(n));
            }
        }
        Value::Object(object)
    };
    let mut answer = json!({
        "version": output::JSON_VERSION, "questions": args.questions.display().to_string(),
        "questions_without_context": groups::without_context(missing),
        "groups": groups.iter().map(object).collect::<Vec<_>>(),
    });
    if let Some((Judged { record, .. }, tally)) = judged {
        let Head { model, judge_model, seed, prompts_blake3, .. } = record.head();
        answer["judged"] = json!({
            "model": model, "judge_model": judge_model, "seed": seed, "prompts_blake3": prompts_blake3,
            "record": record.path().display().to_string(), "calls": tally,
        });
    }
    answer
}

/// Shares of questions that are also told as numbers.
const COUNTED: [&str; 3] = ["abstained", "unanswered", "unjudged"];

/// Number of questions of which a figure of 0 or 1 is 1.
fn count(group: &Group, name: &str) -> Option<usize> {
    let figure = group.figure(name)?;
    Some(figure.values.iter().filter(|(_, value)| *value > 0.0).count())
}

/// Says what was asked, and what there is no figure of.
fn remark(tally: &Tally, groups: &[Group]) {
    let Tally { n_calls, n_failed, failure, n_recorded, n_unreadable, n_prompt_tokens, n_completion_tokens } = tally;
    eprintln!(
        "{} ({n_prompt_tokens} tokens asked, {n_completion_tokens} answered), {} from the record",
        counted(*n_calls, "call"),
        counted(*n_recorded, "answer")
    );
    if *n_unreadable > 0 {
        eprintln!("warning: nothing could be read from {}", counted(*n_unreadable, "answer"));
    }
    for group in groups {
        for (name, words) in [("unanswered", "without a reply"), ("unjudged", "without a verdict")] {
            if let Some(n) = count(group, name).filter(|n| *n > 0) {
                let (strategy, budget) = (&group.strategy, groups::short(&group.budget));
                eprintln!(
                    "warning: {strategy} {budget}: {} {words}, which no figure counts",
                    counted(n as u64, "question")
                );
            }
        }
    }
    if let Some(failure) = failure {
        let calls = counted(*n_failed, "call");
        eprintln!("warning: {calls} failed, the last one so: {failure}; the same command asks again");
    }
}
