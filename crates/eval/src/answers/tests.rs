//! Judgements with a scripted model: figures by hand, nonsense, failures, and what is asked twice.

use std::path::PathBuf;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::context::{DOCUMENT_CUTOFFS, MeasureOptions, measure};
use crate::contexts::Citation;
use crate::error::Error;

const SEED: u32 = 7;

/// A model that answers by a script, and notes the tasks it was given with their seeds.
struct Script<F> {
    script: F,
    asked: Mutex<Vec<(Task, u32)>>,
}

impl<F: Fn(Task, &str, u32) -> std::result::Result<String, String> + Sync> Script<F> {
    fn new(script: F) -> Self {
        Self { script, asked: Mutex::default() }
    }

    fn asked(&self) -> Vec<(Task, u32)> {
        let mut asked = self.asked.lock().unwrap().clone();
        asked.sort_unstable();
        asked
    }
}

impl<F: Fn(Task, &str, u32) -> std::result::Result<String, String> + Sync> Model for Script<F> {
    fn host(&self) -> String {
        "script".to_owned()
    }

    fn ask(&self, task: Task, prompt: &str, seed: u32) -> std::result::Result<Said, String> {
        self.asked.lock().unwrap().push((task, seed));
        (self.script)(task, prompt, seed).map(|message| Said {
            message,
            n_prompt_tokens: Some(10),
            n_completion_tokens: Some(2),
        })
    }
}

/// A folder with questions of two bands, and where their record goes.
struct Place {
    folder: tempfile::TempDir,
    questions: Questions,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let line = |id: &str, question: &str, answer: Value| {
            json!({"_id": id, "text": question, "metadata": {"answer": answer}}).to_string() + "\n"
        };
        let queries = [
            line("band", "Which band made Counterparts?", json!("Rush")),
            line("year", "When was it made?", json!(["1993", "October 1993"])),
        ];
        fs_err::create_dir(folder.path().join("qrels")).unwrap();
        fs_err::write(folder.path().join("qrels/test.tsv"), "query-id\tcorpus-id\tscore\nband\ta\t1\nyear\tb\t1\n")
            .unwrap();
        fs_err::write(folder.path().join("queries.jsonl"), queries.concat()).unwrap();
        let questions = Questions::read_answered(folder.path()).unwrap();
        Self { folder, questions }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("record")
    }

    fn go_on(&self) -> Record {
        Record::go_on(&self.path(), Head::new("small", "large", SEED)).unwrap()
    }

    /// Measures and judges.
    fn judge(&self, contexts: &[Context], record: &Record, model: Option<&dyn Model>) -> Result<(Vec<Group>, Tally)> {
        let tokens = |_: &str, _: &str| Ok(Vec::new());
        let options = MeasureOptions {
            tokens: &tokens,
            sentences: None,
            document_cutoffs: DOCUMENT_CUTOFFS.to_vec(),
            missing: Missing::Zero,
        };
        let mut groups = measure(&self.questions, contexts.iter().cloned().map(Ok), &options).unwrap();
        let sentences = |text: &str| {
            let ends: Vec<usize> = text.match_indices(". ").map(|(at, _)| at + 2).chain([text.len()]).collect();
            let starts = [0].into_iter().chain(ends.clone());
            starts.zip(ends).map(|(start, end)| start..end).collect()
        };
        let options = JudgeOptions {
            model,
            sentences: &sentences,
            n_at_once: 3,
            missing: Missing::Zero,
            progress: &|_, _, _| {},
        };
        let tally = judge(&self.questions, contexts, &mut groups, record, &options)?;
        Ok((groups, tally))
    }
}

/// A context of two sources, `a` and `b`.
fn context(query: &str, strategy: &str, text: &str) -> Context {
    let citation = |n, document: &str, text: &str| Citation {
        n,
        document: document.to_owned(),
        path: Vec::new(),
        span: 0..text.len() as u64,
        source: "source".to_owned(),
        anchor: String::new(),
        chunks: Vec::new(),
        cut: false,
        text: text.to_owned(),
    };
    Context {
        version: crate::contexts::VERSION,
        query_id: query.to_owned(),
        strategy: strategy.to_owned(),
        budget_tokens: 100,
        tokenizer: "o200k".to_owned(),
        context: format!("[1] Rush\n{text}\n[2] Drums\nPeart drums.\n"),
        documents: vec!["a".to_owned(), "b".to_owned()],
        citations: vec![citation(1, "a", text), citation(2, "b", "Peart drums.")],
        ..Context::default()
    }
}

fn value(group: &Group, name: &str, query: &str) -> Option<f64> {
    let value = group.figure(name)?.values.iter().find(|(id, _)| id == query);
    value.map(|(_, value)| *value)
}

#[test]
fn figures_of_a_reply_are_those_of_the_definitions() {
    let place = Place::new();
    let model = Script::new(|task, prompt: &str, _| {
        Ok(match task {
            Task::Read => {
                assert!(prompt.contains("[1] Rush\nRush made it.") && prompt.contains("Which band"), "{prompt}");
                "Rush [1]\nRush made it in Canada [1]. Peart of Rush drums [1][2]. It sold well [9]. It is long."
                    .to_owned()
            }
            Task::Correct => {
                assert!(
                    prompt.contains("\nRush\n") && !prompt.contains("[1]") && !prompt.contains("Drums"),
                    "{prompt}"
                );
                json!({"correct": true}).to_string()
            }
            Task::Support => {
                // Statements without a citation, or with one that is not there, are not judged.
                assert!(
                    prompt.contains("Statement 2, which names 1, 2:") && !prompt.contains("Statement 3"),
                    "{prompt}"
                );
                assert!(prompt.contains("Source 2:\ndata-") && prompt.contains("Drums\nPeart drums."), "{prompt}");
                json!({"statements": [{"n": 1, "supported": false, "useful": []},
                    {"n": 2, "supported": true, "useful": [2]}]})
                .to_string()
            }
        })
    });
    let (groups, tally) =
        place.judge(&[context("band", "cento", "Rush made it.")], &place.go_on(), Some(&model)).unwrap();
    let figure = |name: &str| value(&groups[0], name, "band");
    assert_eq!(
        (figure("exact_match"), figure("answer_f1"), figure("answer_in_reply")),
        (Some(1.0), Some(1.0), Some(1.0))
    );
    assert_eq!(figure("correct"), Some(1.0));
    // One of four statements is supported; one of the citations 1, 1, 2, 9 is needed.
    assert_eq!((figure("citation_recall"), figure("citation_precision")), (Some(1.0 / 4.0), Some(1.0 / 4.0)));
    // Cited are a and b, gold is a.
    assert_eq!((figure("cited_gold_precision"), figure("cited_gold_recall")), (Some(1.0 / 2.0), Some(1.0)));
    assert_eq!((figure("abstained"), figure("unanswered"), figure("unjudged")), (Some(0.0), Some(0.0), Some(0.0)));
    assert_eq!((tally.n_calls, tally.n_prompt_tokens, tally.n_completion_tokens), (3, 30, 6));
    // The other question has no context: a wrong answer that cites nothing.
    assert_eq!((value(&groups[0], "correct", "year"), value(&groups[0], "citation_recall", "year")), (Some(0.0), None));
    assert_eq!((groups[0].figure("correct").unwrap().mean, groups[0].figure("correct").unwrap().n), (0.5, 2));
}

#[test]
fn a_reader_that_finds_nothing_is_not_correct_and_nobody_judges_it() {
    let place = Place::new();
    let model = Script::new(|task, _: &str, _| match task {
        Task::Read => Ok("unknown".to_owned()),
        Task::Correct | Task::Support => unreachable!("nothing is to be judged"),
    });
    let (groups, _) = place.judge(&[context("band", "cento", "Bread.")], &place.go_on(), Some(&model)).unwrap();
    let figure = |name: &str| value(&groups[0], name, "band");
    assert_eq!((figure("correct"), figure("abstained"), figure("unjudged")), (Some(0.0), Some(1.0), Some(0.0)));
    assert_eq!((figure("citation_recall"), figure("cited_gold_recall")), (None, None));
}

#[test]
fn an_answer_that_cites_nothing_has_no_support_and_needs_no_judge_of_it() {
    let place = Place::new();
    let model = Script::new(|task, _: &str, _| match task {
        Task::Read => Ok("Rush".to_owned()),
        Task::Correct => Ok("{\"correct\": true}".to_owned()),
        Task::Support => unreachable!("nothing is cited"),
    });
    let (groups, _) = place.judge(&[context("band", "cento", "Rush made it.")], &place.go_on(), Some(&model)).unwrap();
    let figure = |name: &str| value(&groups[0], name, "band");
    assert_eq!((figure("citation_recall"), figure("citation_precision")), (Some(0.0), Some(0.0)));
    assert_eq!((figure("correct"), figure("unjudged")), (Some(1.0), Some(0.0)));
}

#[test]
fn nonsense_of_a_judge_is_asked_again_within_bounds_recorded_and_never_a_figure() {
    let place = Place::new();
    let model = Script::new(|task, _: &str, seed| {
        Ok(match task {
            Task::Read => "Rush [1]".to_owned(),
            Task::Correct => "The answer deserves 5 of 5.".to_owned(),
            // Of use with the third seed alone.
            Task::Support if seed == SEED + 2 => {
                "{\"statements\": [{\"n\": 1, \"supported\": true, \"useful\": [1]}]}".to_owned()
            }
            Task::Support => "{\"statements\": true}".to_owned(),
        })
    });
    let contexts = [context("band", "cento", "Rush made it.")];
    let record = place.go_on();
    let (groups, tally) = place.judge(&contexts, &record, Some(&model)).unwrap();
    let of = |task| (0..ATTEMPTS).map(move |attempt| (task, SEED + attempt));
    let asked: Vec<(Task, u32)> =
        [(Task::Read, SEED)].into_iter().chain(of(Task::Correct)).chain(of(Task::Support)).collect();
    assert_eq!(model.asked(), asked);
    let figure = |name: &str| value(&groups[0], name, "band");
    assert_eq!((figure("correct"), figure("unjudged"), figure("exact_match")), (None, Some(1.0), Some(1.0)));
    assert_eq!((figure("citation_recall"), figure("citation_precision")), (Some(1.0), Some(1.0)));
    assert_eq!((tally.n_calls, tally.n_unreadable), (7, 5));
    // The mean is that of the other question alone, which has no context.
    let correct = groups[0].figure("correct").unwrap();
    assert_eq!((correct.n, correct.mean), (1, 0.0));
    drop(record);
    let text = fs_err::read_to_string(place.path()).unwrap();
    let lines: Vec<Value> = text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let nonsense: Vec<&Value> = lines.iter().filter(|line| line["verdict"].is_null()).collect();
    assert_eq!((lines.len(), nonsense.len()), (7, 5));
    assert!(nonsense.iter().all(|line| line["fault"].is_string() && line["said"].is_string()), "{text}");

    // A rerun asks nobody, nor does a replay, and both say the same.
    let again = place.judge(&contexts, &place.go_on(), Some(&model)).unwrap();
    let replayed = place.judge(&contexts, &Record::replay(&place.path()).unwrap(), None).unwrap();
    assert_eq!(model.asked().len(), 7);
    assert_eq!((&again.0, again.1.n_calls, again.1.n_recorded), (&groups, 0, 7));
    assert_eq!((&replayed.0, replayed.1), (&groups, again.1));
    assert_eq!(fs_err::read_to_string(place.path()).unwrap(), text);
}

#[test]
fn equal_contexts_are_read_once_and_other_ones_are_not_in_the_record() {
    let place = Place::new();
    let model = Script::new(|task, _: &str, _| {
        Ok(match task {
            Task::Read => "Rush".to_owned(),
            Task::Correct => "{\"correct\": true}".to_owned(),
            Task::Support => unreachable!("nothing is cited"),
        })
    });
    let contexts = [context("band", "cento", "Rush made it."), context("band", "flat", "Rush made it.")];
    let (groups, tally) = place.judge(&contexts, &place.go_on(), Some(&model)).unwrap();
    assert_eq!((groups.len(), tally.n_calls), (2, 2));
    assert!(groups.iter().all(|group| value(group, "correct", "band") == Some(1.0)));
    let other = [context("band", "cento", "Toto made it.")];
    let error = place.judge(&other, &Record::replay(&place.path()).unwrap(), None).unwrap_err();
    assert!(matches!(&error, Error::NotRecorded { query, task: Task::Read, .. } if query == "band"), "{error}");
}

#[test]
fn a_failed_call_is_no_figure_and_the_next_run_makes_it_again() {
    let place = Place::new();
    let contexts = [context("band", "cento", "Rush made it."), context("year", "cento", "It was 1993.")];
    let script = |failing: &'static str| {
        Script::new(move |task, prompt: &str, _| match task {
            Task::Read if prompt.contains(failing) => Err("answered 503".to_owned()),
            Task::Read => Ok(if prompt.contains("When") { "1993" } else { "Rush" }.to_owned()),
            Task::Correct => Ok("{\"correct\": true}".to_owned()),
            Task::Support => unreachable!("nothing is cited"),
        })
    };
    let (groups, tally) = place.judge(&contexts, &place.go_on(), Some(&script("When"))).unwrap();
    assert_eq!((tally.n_calls, tally.n_failed, tally.failure.as_deref()), (3, 1, Some("answered 503")));
    let of_year = |name: &str| value(&groups[0], name, "year");
    assert_eq!((of_year("unanswered"), of_year("correct"), of_year("unjudged")), (Some(1.0), None, None));
    assert_eq!((groups[0].figure("correct").unwrap().n, groups[0].figure("unanswered").unwrap().mean), (1, 0.5));
    let (groups, tally) = place.judge(&contexts, &place.go_on(), Some(&script("nothing"))).unwrap();
    assert_eq!((tally.n_calls, tally.n_recorded, tally.n_failed), (2, 2, 0));
    assert_eq!(groups[0].figure("correct").unwrap().mean, 1.0);
}

#[test]
fn an_endpoint_that_is_gone_ends_the_run() {
    let place = Place::new();
    let texts: Vec<String> = (0..40).map(|n| format!("Text {n}.")).collect();
    let strategies: Vec<String> = (0..40).map(|n| format!("s{n}")).collect();
    let contexts: Vec<Context> =
        texts.iter().zip(&strategies).map(|(text, strategy)| context("band", strategy, text)).collect();
    let model = Script::new(|_, _: &str, _| Err("cannot be reached".to_owned()));
    let error = place.judge(&contexts, &place.go_on(), Some(&model)).unwrap_err();
    assert!(matches!(error, Error::Asking { .. }) && error.to_string().contains("cannot be reached"), "{error}");
    assert!(model.asked().len() < 10, "{:?}", model.asked().len());
}

#[test]
fn a_reply_of_too_many_statements_is_unjudged() {
    let place = Place::new();
    let model = Script::new(|task, _: &str, _| {
        Ok(match task {
            Task::Read => format!("Rush\n{}", "It is so [1]. ".repeat(STATEMENTS_MAX + 1)),
            Task::Correct => "{\"correct\": true}".to_owned(),
            Task::Support => unreachable!("there are too many"),
        })
    });
    let (groups, _) = place.judge(&[context("band", "cento", "Rush.")], &place.go_on(), Some(&model)).unwrap();
    let figure = |name: &str| value(&groups[0], name, "band");
    assert_eq!((figure("citation_recall"), figure("unjudged"), figure("correct")), (None, Some(1.0), Some(1.0)));
}

#[test]
fn a_file_of_questions_alone_has_answers_and_no_figures_of_documents() {
    let place = Place::new();
    let path = place.folder.path().join("mine.jsonl");
    fs_err::write(
        &path,
        "{\"id\":\"2\",\"question\":\"Which band?\",\"answers\":[\"Rush\",\" \"]}\n{\"id\":\"1\",\"question\":\"Why?\"}\n\
         {\"query_id\":\"band\",\"query\":\"Which?\",\"answer\":\"Rush\"}\n",
    )
    .unwrap();
    let questions = Questions::read_answered(&path).unwrap();
    assert_eq!(questions.iter().map(|question| question.id.as_str()).collect::<Vec<_>>(), ["2", "band"]);
    assert_eq!(questions.of("2").unwrap().answers, ["Rush"]);
    let place = Place { questions, ..place };
    let model = Script::new(|task, _: &str, _| {
        Ok(match task {
            Task::Read => "Rush [1]".to_owned(),
            Task::Correct => "{\"correct\": true}".to_owned(),
            Task::Support => "{\"statements\": [{\"n\": 1, \"supported\": true, \"useful\": [1]}]}".to_owned(),
        })
    });
    let (groups, _) = place.judge(&[context("band", "cento", "Rush made it.")], &place.go_on(), Some(&model)).unwrap();
    for name in ["title_recall", "title_precision@1", "all_gold", "cited_gold_recall", "evidence_recall"] {
        assert!(groups[0].figure(name).is_none(), "{name}");
    }
    assert_eq!(value(&groups[0], "answer_in_context", "band"), Some(1.0));
    assert_eq!(value(&groups[0], "correct", "band"), Some(1.0));
    let fails = |text: &str, words: &[&str]| {
        fs_err::write(&path, text).unwrap();
        let error = Questions::read_answered(&path).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    fails("{\"id\":\"1\",\"question\":\"Why?\"}", &["no questions with an answer"]);
    fails("{\"id\":\"1\",\"answer\":\"x\"}", &["line 1", "missing field `question`"]);
    let line = "{\"id\":\"1\",\"question\":\"?\",\"answer\":\"x\"}\n";
    fails(&line.repeat(2), &["line 2", "question 1 is there twice"]);
}
