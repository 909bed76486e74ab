//! `cento tune`: settings of the ranking, chosen by judged questions.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use cento_engine::{Fusion, LexicalScore, Links, Mode, RankSettings, RunQuery, RunRequest, Scan, Searcher};
use cento_eval::compare::{Bootstrap, Paired};
use cento_eval::measure::{Graded, Measure};
use cento_eval::qrels::Qrels;
use cento_eval::run::Hit;
use cento_eval::topics::{self, Topic};
use cento_eval::tune::{Grid, QUESTIONS_MIN, Tuned, settings};
use serde_json::{Map, Value, json};

use crate::args::{Global, Tune};
use crate::exit_code::Outcome;
use crate::options;
use crate::output::{self, Bar, Beside};

/// Values that are tried beside those in force.
const LEXICAL_WEIGHTS: [f64; 6] = [0.1, 0.25, 0.55, 1.0, 2.0, 6.0];
const K1: [f64; 2] = [0.9, 1.5];
const B: [f64; 2] = [0.4, 0.75];
const TITLE_WEIGHTS: [f64; 2] = [0.0, 0.3];

/// Ranks that a measure sees: the rankings of some hundred settings are held at once.
const RANKS: usize = 100;

/// A setting and its values, the one in force first.
struct Axis {
    name: &'static str,
    values: Vec<Level>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Level {
    LexicalWeight(f64),
    K1(f64),
    B(f64),
    Score(LexicalScore),
    TitleWeight(f64),
    Links(Links),
}

impl Level {
    fn set(self, settings: &mut RankSettings) {
        match self {
            Self::LexicalWeight(weight) => settings.weights.lexical = weight,
            Self::K1(k1) => settings.weights.k1 = k1,
            Self::B(b) => settings.weights.b = b,
            Self::Score(score) => settings.lexical = score,
            Self::TitleWeight(weight) => settings.title_weight = weight,
            Self::Links(links) => settings.links = links,
        }
    }

    /// As a settings file has it.
    fn value(self) -> Value {
        match self {
            Self::LexicalWeight(number) | Self::K1(number) | Self::B(number) | Self::TitleWeight(number) => {
                json!(number)
            }
            Self::Score(score) => json!(score),
            Self::Links(links) => json!(links),
        }
    }
}

/// The settings that are tried: every combination of these.
fn axes(in_force: &RankSettings) -> Vec<Axis> {
    let axis = |name, first: Level, others: Vec<Level>| {
        let others = others.into_iter().filter(|other| *other != first);
        Axis { name, values: std::iter::once(first).chain(others).collect() }
    };
    let numbers = |of: fn(f64) -> Level, values: &[f64]| values.iter().map(|value| of(*value)).collect();
    let RankSettings { weights, lexical, title_weight, links } = *in_force;
    vec![
        axis("lexical-weight", Level::LexicalWeight(weights.lexical), numbers(Level::LexicalWeight, &LEXICAL_WEIGHTS)),
        axis("k1", Level::K1(weights.k1), numbers(Level::K1, &K1)),
        axis("b", Level::B(weights.b), numbers(Level::B, &B)),
        axis(
            "lexical-score",
            Level::Score(lexical),
            [LexicalScore::Document, LexicalScore::Mean].map(Level::Score).into(),
        ),
        axis("title-weight", Level::TitleWeight(title_weight), numbers(Level::TitleWeight, &TITLE_WEIGHTS)),
        axis("links", Level::Links(links), [Links::Named, Links::None].map(Level::Links).into()),
    ]
}

/// Judged questions: each has a relevant document in the collection.
struct Judged {
    topics: Vec<Topic>,
    qrels: Qrels,
    /// The judged names of records of JSONL, by the ids of their documents.
    own: HashMap<String, String>,
}

pub(crate) fn execute(args: &Tune, global: &Global) -> anyhow::Result<Outcome> {
    if global.json && args.output == Path::new("-") {
        return Err(options::usage("--json needs the settings in a file: -o FILE"));
    }
    let measure: Measure = args.measure.parse()?;
    let search = options::request(String::new(), 1, &args.retrieval, Scan::Exact)?;
    if (search.mode, search.fusion) != (Mode::Hybrid, Fusion::Adaptive) {
        return Err(options::usage("--mode, --fusion: settings are chosen for --mode hybrid with --fusion adaptive"));
    }
    let request = RunRequest {
        k: RANKS.min(search.candidates),
        lexical: options::lexical_score(args.lexical_score),
        title_weight: args.title_weight,
        ..options::run_request(&search)
    };
    let (topics, qrels) = read(args)?;
    let searcher = options::searcher(global, &args.retrieval)?;
    let judged = judged(args, topics, qrels, &searcher)?;
    let axes = axes(&request.settings());
    let tuned = tune(args, global, &searcher, &judged, &request, &axes, measure)?;
    options::remark_device(global, &searcher);
    let told = Told { args, axes: &axes, tuned: &tuned, measure, n_questions: judged.topics.len() };
    let mut out = output::file(&args.output)?;
    out.write_all(told.file().as_bytes())?;
    out.finish()?;
    if global.json {
        output::json(&told.answer())?;
    } else if !global.quiet {
        eprintln!("{}", told.advice());
    }
    Ok(if told.is_shown() { Outcome::Done } else { Outcome::Nothing })
}

fn read(args: &Tune) -> anyhow::Result<(Vec<Topic>, Qrels)> {
    let qrels = match &args.qrels {
        Some(qrels) => qrels,
        None if args.topics.join("questions.jsonl").is_file() => {
            return Err(options::usage(format!(
                "--topics {}: its questions are answered by excerpts; settings are chosen by judged documents, so name \
                 topics and --qrels FILE",
                args.topics.display()
            )));
        }
        None if args.topics.is_file() || args.topics == Path::new("-") => {
            return Err(options::usage(format!(
                "--topics {}: what answers them? name --qrels FILE",
                args.topics.display()
            )));
        }
        None => &args.topics, // a BEIR folder, or nothing
    };
    Ok((topics::read(&args.topics)?, Qrels::read(qrels)?))
}

/// The topics that have a relevant document in the collection.
fn judged(args: &Tune, mut topics: Vec<Topic>, qrels: Qrels, searcher: &Searcher) -> anyhow::Result<Judged> {
    let is_relevant = |topic: &Topic| qrels.of(&topic.id).is_some_and(|judgements| judgements.n_relevant(1) > 0);
    topics.retain(is_relevant);
    let place = args.qrels.as_ref().unwrap_or(&args.topics).display();
    let few = |n: usize, why: &str| {
        options::usage(format!("{place}: {n} {why}; at least {QUESTIONS_MIN} are needed to choose settings"))
    };
    if topics.len() < QUESTIONS_MIN {
        return Err(few(topics.len(), "topics have a relevant document there"));
    }
    let names = qrels.iter().flat_map(|(_, judgements)| judgements.iter().map(|(id, _)| id.to_owned()));
    let names: Vec<String> = names.collect();
    let own: HashMap<String, String> =
        searcher.of_records(&names)?.into_iter().map(|(own, document)| (document, own)).collect();
    let absent = searcher.absent(&names)?;
    let is_here = |topic: &Topic| {
        let mut relevant = qrels.of(&topic.id).into_iter().flat_map(|judgements| judgements.iter());
        relevant.any(|(id, grade)| grade > 0 && !absent.contains(id))
    };
    topics.retain(is_here);
    if topics.len() < QUESTIONS_MIN {
        return Err(few(
            topics.len(),
            "topics have a relevant document in this collection (are these judgements of another corpus?)",
        ));
    }
    Ok(Judged { topics, qrels, own })
}

fn tune(
    args: &Tune,
    global: &Global,
    searcher: &Searcher,
    judged: &Judged,
    request: &RunRequest,
    axes: &[Axis],
    measure: Measure,
) -> anyhow::Result<Tuned> {
    let levels: Vec<usize> = axes.iter().map(|axis| axis.values.len()).collect();
    let tried = settings(&levels).into_iter().map(|levels| {
        let mut settings = request.settings();
        axes.iter().zip(levels).for_each(|(axis, level)| axis.values[level].set(&mut settings));
        settings
    });
    let tried: Vec<RankSettings> = tried.collect();
    let within = (!args.retrieval.within.is_empty()).then(|| args.retrieval.within.clone());
    let query =
        |topic: &Topic| RunQuery { text: topic.text.clone(), scope: topic.scope.clone().or_else(|| within.clone()) };
    let queries: Vec<RunQuery> = judged.topics.iter().map(query).collect();
    let mut figures: Vec<Vec<f64>> = vec![Vec::with_capacity(queries.len()); tried.len()];
    let bar = Bar::new(global, Beside::AnyAnswer);
    let ranked = searcher.run_each(&queries, request, &tried, &mut |rankings| {
        let topic = &judged.topics[figures[0].len()];
        let judgements = judged.qrels.of(&topic.id).expect("topics without judgements were left out");
        for (figures, ranking) in figures.iter_mut().zip(rankings) {
            let hit = |(id, score): (String, f64)| Hit::new(judged.own.get(&id).cloned().unwrap_or(id), score);
            let hits: Vec<Hit> = ranking.into_iter().map(hit).collect();
            figures.push(measure.of(&Graded::from_hits(&hits, judgements)));
        }
        bar.count(figures[0].len(), queries.len(), "questions");
    });
    bar.finish();
    ranked?;
    let bootstrap = Bootstrap { seed: args.seed, ..Bootstrap::default() };
    Grid::new(levels, figures)?.tune(args.folds, &bootstrap).map_err(|error| options::usage(error.to_string()))
}

/// The choice, and all that is told of it.
struct Told<'t> {
    args: &'t Tune,
    axes: &'t [Axis],
    tuned: &'t Tuned,
    measure: Measure,
    n_questions: usize,
}

impl Told<'_> {
    /// True if questions that did not choose gain, too, by more than chance.
    fn is_shown(&self) -> bool {
        !self.tuned.moves.is_empty() && self.tuned.cross_validated.low > 0.0
    }

    /// The settings that differ from those in force: name, value in force, chosen value, and the folds that agree.
    fn chosen(&self) -> Vec<(&'static str, Value, Value, usize)> {
        let differ = self.axes.iter().zip(&self.tuned.levels).enumerate().filter(|(_, (_, level))| **level > 0);
        let told = |(at, (axis, &level)): (usize, (&Axis, &usize))| {
            let n_agree = self.tuned.of_folds.iter().filter(|levels| levels[at] == level).count();
            (axis.name, axis.values[0].value(), axis.values[level].value(), n_agree)
        };
        differ.map(told).collect()
    }

    fn figures(&self) -> String {
        let Paired { mean_a, mean_b, difference, low, high, .. } = self.tuned.cross_validated;
        format!("{} {mean_a:.4} to {mean_b:.4}, {difference:+.4} (95 %: {low:+.4} to {high:+.4})", self.measure)
    }

    fn advice(&self) -> String {
        match (self.is_shown(), self.tuned.moves.is_empty()) {
            (true, _) => {
                format!("use them: on questions that did not choose them, {}", self.figures())
            }
            (false, true) => "keep the settings in force: no other gains more than its error".to_owned(),
            (false, false) => {
                format!("do not use them: no gain is shown on questions that did not choose them, {}", self.figures())
            }
        }
    }

    /// The settings file.
    fn file(&self) -> String {
        let n_folds = self.tuned.of_folds.len();
        let n_tried: usize = self.axes.iter().map(|axis| axis.values.len()).product();
        let mut file = format!(
            "# Settings of the ranking: chosen among {n_tried} by {} judged questions, cross-validated in {n_folds} folds.\n# {}.\n",
            self.n_questions,
            capitalized(&self.advice())
        );
        if self.is_shown() {
            file += "# Give this file to `cento --config FILE`, or put its lines into your cento.toml.\n";
        }
        let comment = if self.is_shown() { "" } else { "# " };
        for (name, before, after, n_agree) in self.chosen() {
            let _ = writeln!(file, "{comment}{name} = {after}  # {before} before; {n_agree} of {n_folds} folds agree");
        }
        file
    }

    fn answer(&self) -> Value {
        let Paired { mean_a, mean_b, difference, low, high, p_bootstrap, .. } = self.tuned.cross_validated;
        let named = |levels: &[usize]| -> Map<String, Value> {
            let named = self.axes.iter().zip(levels);
            named.map(|(axis, &level)| (axis.name.to_owned(), axis.values[level].value())).collect()
        };
        let moves = self.tuned.moves.iter().map(|step| {
            let axis = &self.axes[step.axis];
            json!({"setting": axis.name, "value": axis.values[step.level].value(), "gain": step.gain})
        });
        let folds: Vec<_> = self.tuned.of_folds.iter().map(|levels| named(levels)).collect();
        json!({
            "version": output::JSON_VERSION, "topics": self.args.topics.display().to_string(),
            "measure": self.measure.to_string(), "n_questions": self.n_questions, "n_folds": folds.len(),
            "seed": self.args.seed, "n_settings": self.axes.iter().map(|axis| axis.values.len()).product::<usize>(),
            "in_force": named(&vec![0; self.axes.len()]), "chosen": named(&self.tuned.levels),
            "moves": moves.collect::<Vec<_>>(), "folds": folds,
            "cross_validated": {
                "before": mean_a, "after": mean_b, "gain": difference, "low": low, "high": high, "p": p_bootstrap,
            },
            "use": self.is_shown(),
        })
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
