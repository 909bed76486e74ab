//! eval-answers: stand-ins without a model; with a scripted endpoint what is asked, recorded, replayed, refused.

use serde_json::{Value, json};

use crate::support::{Place, Ran, Server, tiny_model};

const KEY: &str = "sk-hush-123456";

/// A chat completion.
fn says(message: impl ToString) -> (String, String) {
    let completion = json!({"choices": [{"message": {"content": message.to_string()}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10}});
    ("200 OK".to_owned(), completion.to_string())
}

/// The case of a request, without the words of its task.
fn case(asked: &Value) -> &str {
    asked["messages"][1]["content"].as_str().unwrap()
}

/// The task of a request.
fn task(asked: &Value) -> &'static str {
    let words = asked["messages"][0]["content"].as_str().unwrap();
    let tasks = [("You answer a question", "read"), ("You judge whether an answer", "correct")];
    tasks.into_iter().find(|(begins, _)| words.starts_with(begins)).map_or("support", |(_, task)| task)
}

/// A model that reads the moon out of its sources, and judges well.
fn reads_well(asked: &Value) -> (String, String) {
    match task(asked) {
        "read" if case(asked).contains("pulls the sea") => says("The moon [1]\nThe moon pulls the sea [1]."),
        "read" => says("unknown"),
        "correct" => says(json!({"correct": case(asked).contains("\nThe moon\nThe moon pulls the sea.\n")})),
        _ => says(json!({"statements": [{"n": 1, "supported": true, "useful": [1]}]})),
    }
}

/// Two questions, each with a context of two strategies.
fn place() -> Place {
    let place = Place::new();
    let question = |id: &str, question: &str, answer: &str| {
        json!({"id": id, "question": question, "answer": answer}).to_string() + "\n"
    };
    let questions =
        [question("tide", "What moves the sea?", "the moon"), question("loaf", "What is bread of?", "flour")];
    place.write("questions.jsonl", questions.concat());
    let contexts = ["long", "short"].map(|strategy| {
        let tide = if strategy == "long" { "The moon pulls the sea." } else { "The tide rises." };
        context("tide", strategy, tide) + &context("loaf", strategy, "The oven is hot.")
    });
    place.write("contexts", contexts.concat());
    place
}

fn context(query: &str, strategy: &str, text: &str) -> String {
    let citation = json!({"n": 1, "document": "notes/a.md", "path": ["Tides"], "span": {"start": 0, "end": text.len()},
        "source": "source", "anchor": "", "chunks": [], "cut": false, "text": text});
    let context = json!({"version": 1, "query_id": query, "query": "", "strategy": strategy, "budget_tokens": 100,
        "n_tokens": 9, "n_text_tokens": 6, "tokenizer": "o200k", "context": format!("[1] Tides\n{text}\n"),
        "documents": ["notes/a.md"], "sections": [], "redundancy_cosine": null, "citations": [citation]});
    format!("{context}\n")
}

/// Runs with a key in the environment, which is shown nowhere.
fn judge(place: &Place, arguments: &[&str]) -> Ran {
    let arguments = [&["eval-answers", "questions.jsonl", "contexts"], arguments].concat();
    let ran = Ran::new(&arguments, place.command(&arguments).env("CENTO_ENDPOINT_KEY", KEY).output().unwrap());
    assert!(!format!("{ran:?}").contains(KEY), "{ran:?}");
    ran
}

fn judge_at(place: &Place, server: &Server, more: &[&str]) -> Ran {
    let endpoint = ["--record", "record", "--endpoint", &server.url, "--endpoint-model", "small"];
    judge(place, &[&endpoint[..], more].concat())
}

#[track_caller]
fn json_of(ran: &Ran) -> Value {
    assert_eq!(ran.code, 0, "{ran:?}");
    serde_json::from_str(&ran.out).unwrap()
}

fn lines(place: &Place) -> Vec<Value> {
    let text = String::from_utf8(place.read("record")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn without_a_model_the_figures_of_contexts_stand_in() {
    let place = Place::new();
    let tides = "# Tides\n\nThe moon pulls the sea.\n\nThe tide rises twice a day.\n";
    place.write("set/docs/tides.md", tides);
    let start = tides.find("The moon").unwrap();
    let excerpt = json!({"doc": "tides", "start": start, "end": start + 23, "text": "The moon pulls the sea."});
    let question = json!({"id": "tide", "question": "What pulls the sea?", "answer": "the moon", "refs": [excerpt]});
    place.write("set/questions.jsonl", question.to_string());
    place.ok(&["index", "--model", &tiny_model(), "set/docs"]);
    place.ok(&["run", "--topics", "set", "--budget", "100", "--contexts", "contexts", "-o", "run"]);
    let answer = place.json(&["eval-answers", "set", "contexts", "--per-query"]);
    let judged = place.json(&["eval-context", "set", "contexts", "--per-query"]);
    let (group, of_context) = (&answer["groups"][0], &judged["groups"][0]);
    for name in ["answer_in_context", "title_precision", "title_recall", "evidence_precision", "evidence_recall"] {
        assert!(group[name].is_number() && group[name] == of_context[name], "{name}: {group} {of_context}");
        assert_eq!(group["queries"]["tide"][name], of_context["queries"]["tide"][name]);
    }
    assert_eq!((&group["answer_in_context"], &group["evidence_recall"]), (&json!(1.0), &json!(1.0)));
    assert!(answer["judged"].is_null() && group["correct"].is_null() && group["n_unjudged"].is_null(), "{answer}");
    let shown = place.ok(&["eval-answers", "set", "contexts", "-f", "answer_in_context"]);
    assert!(shown.out.contains("answer_in_context") && !shown.out.contains("title"), "{shown:?}");
    place.run(&["eval-answers", "set", "contexts", "-f", "correct"]).fails(2, &["--figures correct", "nearest"]);
}

#[test]
fn a_model_reads_and_judges_and_is_asked_nothing_twice() {
    let (place, server) = (place(), Server::replies(reads_well));
    let first = json_of(&judge_at(&place, &server, &["--json", "--per-query", "--judge-model", "large"]));
    let groups = first["groups"].as_array().unwrap();
    let figures = |group: &Value, query: &str| group["queries"][query].clone();
    let (long, short) = (&groups[0], &groups[1]);
    assert_eq!((&long["strategy"], &long["n_abstained"], &long["n_unjudged"]), (&json!("long"), &json!(1), &json!(0)));
    let tide = figures(long, "tide");
    for name in ["exact_match", "answer_f1", "correct", "citation_recall", "citation_precision", "answer_in_context"] {
        assert_eq!(tide[name], 1.0, "{name}: {tide}");
    }
    assert_eq!((&long["correct"], &short["correct"]), (&json!(0.5), &json!(0.0)));
    assert_eq!((&figures(short, "tide")["abstained"], &short["citation_recall"]), (&json!(1.0), &Value::Null));

    // Three contexts are not each other's equal; one reply is judged twice over.
    let heard = server.heard();
    assert_eq!((heard.len(), &first["judged"]["calls"]["n_calls"]), (5, &json!(5)));
    for request in &heard {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let asked: Value = serde_json::from_str(body).unwrap();
        assert!(head.to_lowercase().contains(&format!("authorization: bearer {KEY}")), "{head}");
        assert_eq!((&asked["seed"], &asked["temperature"]), (&json!(20_250_101), &json!(0)));
        let (model, form) =
            if task(&asked) == "read" { ("small", Value::Null) } else { ("large", json!("json_object")) };
        assert_eq!((&asked["model"], &asked["response_format"]["type"]), (&json!(model), &form));
        let fence = case(&asked).lines().find(|line| line.starts_with("data-")).unwrap();
        assert_eq!(case(&asked).matches(fence).count(), 2, "{asked}");
    }

    // Every call is in the record: what was asked, said and read, in what time and how many tokens.
    let lines = lines(&place);
    let head = &lines[0];
    assert_eq!(
        (&head["model"], &head["judge_model"], &head["seed"]),
        (&json!("small"), &json!("large"), &json!(20_250_101))
    );
    assert_eq!(head["prompts_blake3"], first["judged"]["prompts_blake3"]);
    assert!(head["prompts"]["support"].as_str().unwrap().starts_with("You judge whether statements"), "{head}");
    let calls = &lines[1..];
    assert_eq!(calls.len(), 5);
    for line in calls {
        assert!(line["said"].is_string() && line["ms"].is_u64() && line["verdict"].is_object(), "{line}");
        assert!(line["prompt"].as_str().unwrap().starts_with("Question: What "), "{line}");
        assert_eq!((&line["prompt_tokens"], &line["completion_tokens"]), (&json!(100), &json!(10)));
    }
    let support = calls.iter().find(|line| line["task"] == "support").unwrap();
    assert_eq!(support["verdict"], json!({"statements": [{"supported": true, "useful": [1]}]}));

    // Nothing is asked again, whatever the number of calls at a time; nor by a replay, which knows no address.
    let again =
        json_of(&judge_at(&place, &server, &["--json", "--per-query", "--judge-model", "large", "--at-once", "1"]));
    let replayed = json_of(&judge(&place, &["--json", "--per-query", "--record", "record"]));
    assert_eq!(server.heard().len(), 5);
    for other in [&again, &replayed] {
        assert_eq!(other["groups"], first["groups"]);
        assert_eq!(
            (&other["judged"]["calls"]["n_calls"], &other["judged"]["calls"]["n_recorded"]),
            (&json!(0), &json!(5))
        );
        assert_eq!(other["judged"]["judge_model"], "large");
    }
    let shown = judge(&place, &["--record", "record"]);
    assert!(shown.out.contains("citation_precision") && shown.err.contains("0 calls"), "{shown:?}");

    // Another seed, another model, another version of the words is another record; the file stays as it is.
    let before = place.read("record");
    judge_at(&place, &server, &["--judge-model", "large", "--seed", "1"]).fails(2, &["seed", "20250101", "\"1\""]);
    judge_at(&place, &server, &[]).fails(2, &["judge model", "large", "small"]);
    assert_eq!((place.read("record"), server.heard().len()), (before, 5));
}

#[test]
fn strategies_are_compared_by_their_answers() {
    let (place, server) = (place(), Server::replies(reads_well));
    let ran = judge_at(&place, &server, &["--json", "--per-query"]);
    place.write("judged.json", ran.out);
    let answer = place.json(&["compare", "judged.json", "judged.json", "--strategy", "short,long"]);
    let rows = answer["comparisons"].as_array().unwrap();
    let row = rows.iter().find(|row| row["measure"] == "100 tokens: correct").unwrap();
    assert_eq!((&row["difference"], &row["wins"], &row["ties"]), (&json!(0.5), &json!(1), &json!(1)), "{row}");
}

#[test]
fn a_judge_that_answers_nonsense_leaves_questions_unjudged() {
    let place = place();
    let server = Server::replies(|asked| match task(asked) {
        "read" => reads_well(asked),
        "correct" => says("I would give it 5 of 5, {\"correct\": \"very\"}."),
        _ => says(json!({"statements": [{"n": 1, "supported": true, "useful": [2]}]})),
    });
    let ran = judge_at(&place, &server, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("warning: long 100: 1 question without a verdict, which no figure counts"), "{ran:?}");
    assert!(ran.err.contains("nothing could be read from 6 answers"), "{ran:?}");
    let seeds = |wanted: &str| -> Vec<u64> {
        let calls = lines(&place).into_iter().skip(1).filter(|line| line["task"] == wanted);
        let mut seeds: Vec<u64> = calls.map(|line| line["seed"].as_u64().unwrap()).collect();
        seeds.sort_unstable();
        seeds
    };
    for task in ["correct", "support"] {
        assert_eq!(seeds(task), [20_250_101, 20_250_102, 20_250_103], "{task}");
    }
    let group = &json_of(&judge(&place, &["--json", "--per-query", "--record", "record"]))["groups"][0];
    let tide = &group["queries"]["tide"];
    assert_eq!((&tide["unjudged"], &tide["exact_match"]), (&json!(1.0), &json!(1.0)), "{group}");
    assert!(tide["correct"].is_null() && tide["citation_recall"].is_null() && group["n_unjudged"] == 1, "{group}");
    // What is left is the reader that found nothing: 0, of one question.
    assert_eq!(group["correct"], 0.0);
    assert_eq!(server.heard().len(), 3 + 6);
}

#[test]
fn calls_that_fail_are_named_and_made_again() {
    let place = place();
    let server = Server::replies(|asked| match case(asked).contains("bread") {
        true => ("500 Internal Server Error".to_owned(), format!("out of memory, {KEY}")),
        false => reads_well(asked),
    });
    let ran = judge_at(&place, &server, &[]);
    ran.fails(5, &["1 call failed", "500", "out of memory", "long 100: 1 question without a reply", "asks again"]);
    assert!(!String::from_utf8(place.read("record")).unwrap().contains(KEY), "a server repeats the key");
    let n_heard = server.heard().len();
    let server = Server::replies(reads_well);
    let ran = judge_at(&place, &server, &[]);
    assert_eq!((ran.code, server.heard().len()), (0, 1), "{ran:?} {n_heard}");

    // A refusal, without content, is an answer that says nothing.
    let silent = Server::answers("200 OK", "{\"choices\": [{\"message\": {\"content\": null, \"refusal\": \"no\"}}]}");
    std::fs::remove_file(place.path("record")).unwrap();
    let ran = judge_at(&place, &silent, &["--json"]);
    assert_eq!(json_of(&ran)["groups"][0]["n_unanswered"], 2, "{ran:?}");
    assert_eq!(silent.heard().len(), 3 * 3);

    // Nobody is there: three failures end it.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    place.write("none", "");
    std::fs::remove_file(place.path("record")).unwrap();
    let url = format!("http://{nobody}/v1");
    let ran = judge(&place, &["--record", "record", "--endpoint", &url, "--endpoint-model", "small"]);
    ran.fails(4, &["3 calls in a row failed", "cannot be reached", &nobody.to_string(), "goes on there"]);
    assert_eq!(ran.out, "");
}

#[test]
fn what_cannot_be_asked_is_said_before_anybody_is() {
    let (place, server) = (place(), Server::replies(reads_well));
    let endpoint = ["--endpoint", &server.url, "--endpoint-model", "small"];
    judge(&place, &endpoint).fails(2, &["--record FILE"]);
    judge(&place, &["--endpoint", &server.url, "--record", "record"]).fails(2, &["--endpoint-model"]);
    judge(&place, &["--judge-model", "large", "--record", "record"]).fails(2, &["--judge-model", "--endpoint URL"]);
    judge(&place, &["--record", "record"]).fails(2, &["--record record", "no such record", "--endpoint"]);
    judge_at(&place, &server, &["--at-once", "0"]).fails(2, &["--at-once", "1..=64"]);
    place.write("record", "precious\n");
    judge_at(&place, &server, &[]).fails(3, &["record, line 1", "found no JSON"]);
    assert_eq!(place.read("record"), b"precious\n");
    std::fs::remove_file(place.path("record")).unwrap();
    place.write("questions.jsonl", "{\"id\":\"tide\",\"question\":\"What moves the sea?\"}\n");
    judge_at(&place, &server, &[]).fails(3, &["questions.jsonl", "no questions with an answer"]);
    assert!(server.heard().is_empty(), "{:?}", server.heard());

    // A replay of contexts that were never read.
    let place = self::place();
    judge_at(&place, &server, &[]);
    place.write("contexts", context("tide", "other", "The sun pulls it too."));
    judge(&place, &["--record", "record"]).fails(4, &["no answer to the task Read of query tide", "--endpoint"]);
}

#[test]
fn texts_and_key_go_where_the_user_says_and_nowhere_a_found_file_does() {
    let (place, server) = (place(), Server::replies(reads_well));
    let planted =
        |more: &str| format!("[eval-answers]\nendpoint = {:?}\nendpoint-model = \"small\"\n{more}", server.url);
    place.write("cento.toml", planted(""));
    judge(&place, &["--record", "record"]).fails(2, &["cento.toml: eval-answers.endpoint", "`cento trust"]);
    for (key, value) in [("record", "\"precious\""), ("judge-model", "\"large\""), ("seed", "\"3\"")] {
        place.write("cento.toml", format!("[eval-answers]\n{key} = {value}\n"));
        judge(&place, &[]).fails(2, &[&format!("cento.toml: eval-answers.{key}")]);
    }
    // Trusted, it may name a public host, and no key goes there.
    place.write("cento.toml", planted(""));
    place.ok(&["trust", ".", "--yes"]);
    judge(&place, &["--record", "record"]).fails(2, &["127.0.0.1", "no public address"]);
    assert!(server.heard().is_empty(), "{:?}", server.heard());
    place.write("cento.toml", "");
    place.write_settings(planted("record = \"record\"\n"));
    assert_eq!(judge(&place, &[]).code, 0);
    assert_eq!(server.heard().len(), 5);
}
