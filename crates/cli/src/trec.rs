//! Topics in, TREC runs out.
//!
//! A run line is `topic Q0 document rank score tag`. trec_eval ignores the rank and sorts by score as a 32-bit float, ties
//! by document id descending; scores are therefore written as 32-bit floats that strictly decrease, one unit in the last place apart
//! where they would be equal, unless ties are to be kept.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::path::Path;

use anyhow::{Context as _, bail};
use cento_engine::DocumentRanking;

use crate::args::Ties;

/// A question with its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Topic {
    pub(crate) id: String,
    pub(crate) text: String,
}

/// Reads topics from a JSONL file, a BEIR folder (those of its queries that are judged) or stdin.
pub(crate) fn topics(path: &Path) -> anyhow::Result<Vec<Topic>> {
    let topics = if path == Path::new("-") {
        parse(io::stdin().lock(), "stdin")?
    } else if path.is_dir() {
        let queries = path.join("queries.jsonl");
        let mut topics = parse(open(&queries)?, &queries.display().to_string())?;
        let judged = judged(&path.join("qrels"))?;
        if !judged.is_empty() {
            topics.retain(|topic| judged.contains(&topic.id));
        }
        topics
    } else {
        parse(open(path)?, &path.display().to_string())?
    };
    if topics.is_empty() {
        bail!("{}: no topics", path.display());
    }
    Ok(topics)
}

fn open(path: &Path) -> anyhow::Result<io::BufReader<std::fs::File>> {
    Ok(io::BufReader::new(std::fs::File::open(path).with_context(|| path.display().to_string())?))
}

fn parse(reader: impl BufRead, name: &str) -> anyhow::Result<Vec<Topic>> {
    let mut topics = Vec::new();
    let mut seen = BTreeSet::new();
    for (n, line) in reader.lines().enumerate() {
        let at = || format!("{name}, line {}", n + 1);
        let line = line.with_context(at)?;
        if line.trim().is_empty() {
            continue;
        }
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&line).with_context(at)?;
        let field = |keys: &[&str]| {
            keys.iter()
                .find_map(|key| object.get(*key))
                .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        };
        let id = field(&["_id", "id", "qid", "query_id"])
            .with_context(|| format!("{}: no `_id`, `id`, `qid` or `query_id`", at()))?;
        let text =
            field(&["text", "query", "title"]).with_context(|| format!("{}: no `text`, `query` or `title`", at()))?;
        if id.is_empty() || id.contains(char::is_whitespace) {
            bail!("{}: topic id {id:?} is empty or has a blank, which a run file cannot hold", at());
        }
        if !seen.insert(id.clone()) {
            bail!("{}: topic {id:?} is there twice", at());
        }
        topics.push(Topic { id, text });
    }
    Ok(topics)
}

/// Ids of the topics that any qrels file of a BEIR folder judges.
fn judged(folder: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut ids = BTreeSet::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(ids) };
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "tsv") {
            for line in open(&path)?.lines().skip(1) {
                let line = line.with_context(|| path.display().to_string())?;
                ids.extend(line.split('\t').next().map(str::to_owned));
            }
        }
    }
    Ok(ids)
}

/// Writes one topic's ranking.
pub(crate) fn write(
    out: &mut impl Write,
    topic: &str,
    ranking: &DocumentRanking,
    tag: &str,
    ties: Ties,
) -> io::Result<()> {
    let mut above = f32::INFINITY;
    for (n, (document, score)) in ranking.iter().enumerate() {
        let mut score = *score as f32;
        if ties == Ties::Break && score >= above {
            score = above.next_down();
        }
        above = score;
        writeln!(out, "{topic} Q0 {} {} {score} {tag}", column(document), n + 1)?;
    }
    Ok(())
}

/// A document id as one column: blanks are percent-encoded, as in a URL.
fn column(id: &str) -> String {
    id.chars()
        .map(|c| {
            if c.is_whitespace() {
                c.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect()
            } else {
                c.to_string()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(scores: &[f64], ties: Ties) -> Vec<f32> {
        let ranking = scores.iter().enumerate().map(|(n, score)| (format!("d{n}"), *score)).collect();
        let mut out = Vec::new();
        write(&mut out, "q", &ranking, "t", ties).unwrap();
        String::from_utf8(out).unwrap().lines().map(|line| line.split(' ').nth(4).unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn written_scores_strictly_decrease_as_32_bit_floats() {
        for scores in [vec![0.5; 200], vec![1.0, 1.0 - 1e-12, 0.0, 0.0, 0.0], vec![0.1, 0.1, -0.0, -3.5, -3.5]] {
            let written = written(&scores, Ties::Break);
            assert!(written.windows(2).all(|pair| pair[0] > pair[1]), "{written:?}");
        }
        assert_eq!(written(&[0.5, 0.5], Ties::Keep), [0.5, 0.5]);
    }

    #[test]
    fn topics_take_the_usual_keys_and_refuse_doubles() {
        let read = |text: &str| parse(text.as_bytes(), "t");
        assert_eq!(
            read("{\"qid\": 7, \"query\": \"moon\"}\n\n").unwrap(),
            [Topic { id: "7".to_owned(), text: "moon".to_owned() }]
        );
        assert!(read("{\"_id\":\"a\",\"text\":\"x\"}\n{\"_id\":\"a\",\"text\":\"y\"}").is_err());
        assert!(read("{\"_id\":\"a b\",\"text\":\"x\"}").is_err());
    }

    #[test]
    fn a_document_id_is_one_column() {
        assert_eq!(column("docs/my file.md"), "docs/my%20file.md");
    }
}
