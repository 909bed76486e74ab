//! `cento model`: encoders on this machine.

use cento_engine::OsFs;
use cento_engine::model::{FileState, Found, Known, Listed, Models, Presence, Progress, Use};

use crate::args::{Global, Model};
use crate::exit_code::Outcome;
use crate::output::{self, Bar, Beside};

#[derive(serde::Serialize)]
struct Answer<T> {
    version: u32,
    #[serde(flatten)]
    body: T,
}

pub(crate) fn execute(args: &Model, global: &Global) -> anyhow::Result<Outcome> {
    let models = Models::from_env().map_err(cento_engine::Error::from)?;
    match args {
        Model::Pull { name, offline: true } => pull(&models.offline(), name, global),
        Model::Pull { name, offline: false } => pull(&models, name, global),
        Model::List { all: true } => list_all(&models, global),
        Model::List { all: false } => list(&models, global),
        Model::Verify { name } => verify(&models, name, global),
        Model::Show { name } if models.show(name).is_err() && models.known_as(name).is_some() => {
            show_known(models.known_as(name).expect("looked up"), global)
        }
        Model::Show { name } => {
            let card = models.show(name).map_err(cento_engine::Error::from)?;
            if global.json {
                output::json(&Answer { version: output::JSON_VERSION, body: card })?;
            } else {
                print!("{}", toml::to_string(card)?);
            }
            Ok(Outcome::Done)
        }
    }
}

/// Says once which pulled model a command uses, where one is named.
pub(crate) fn say_chosen(name: &str, global: &Global) {
    // what cannot be resolved is the command's own error
    let Some(models) = Models::from_env().ok().filter(|_| !global.quiet) else { return };
    let Ok(Some(card)) = models.resolve(name).map(|located| located.card) else { return };
    if let Some(architecture) = &card.architecture {
        eprintln!(
            "model: {} at {} ({architecture}, {}, {} dimensions, window {} tokens)",
            card.repository, card.revision, card.pooling, card.dimensions, card.max_tokens
        );
    }
}

fn pull(models: &Models, name: &str, global: &Global) -> anyhow::Result<Outcome> {
    crate::interrupt::end_on_interrupt("the model is not there yet; run the same command again")?;
    let bar = Bar::new(global, Beside::Text);
    let pulled = models.pull(name, &cento_engine::look, &OsFs, &mut |progress| match progress {
        Progress::Waiting => bar.message(format!("another process is getting {name}; waiting")),
        Progress::Trying { source } => bar.message(format!("getting {name} from {source}")),
        Progress::Found(found) if global.quiet => bar.message(format!("getting {}", found.repository)),
        Progress::Found(found) => bar.note(&told(found)),
        Progress::Resting { seconds } => bar.message(format!("the hub asks to wait {seconds} s")),
        Progress::Bytes { done, total } => {
            bar.message(format!("getting {name}: {} of {}", output::bytes(done), output::bytes(total)))
        }
        Progress::Failed(attempt) => bar.message(format!("{} failed: {}", attempt.source, attempt.reason)),
    });
    bar.finish();
    let pulled = pulled.map_err(cento_engine::Error::from)?;
    if global.json {
        output::json(&Answer { version: output::JSON_VERSION, body: &pulled })?;
        return Ok(Outcome::Done);
    }
    if !global.quiet {
        pulled.attempts.iter().for_each(|attempt| eprintln!("tried {}: {}", attempt.source, attempt.reason));
    }
    match &pulled.source {
        Some(source) => println!("{name}: every checksum holds; from {source}, now in {}", pulled.folder.display()),
        None => println!("{name}: already in {}, every checksum holds", pulled.folder.display()),
    }
    Ok(Outcome::Done)
}

/// Tells of a model that is about to come: its licence, its size, and all that was read of it.
fn told(found: &Found) -> String {
    let Found { repository, revision, license, n_bytes, shape } = found;
    let kind = match shape.of_use {
        Use::Encoder => match shape.dimensions {
            Some(dimensions) => format!("{} pooling, {dimensions} dimensions", shape.pooling),
            None => format!("{} pooling", shape.pooling),
        },
        Use::Reranker => "reranker".to_owned(),
    };
    let prompt = |name: &str, prompt: &str| match prompt {
        "" => String::new(),
        words => format!(", {name} prompt {words:?}"),
    };
    let prompts = prompt("query", &shape.prompts.query) + &prompt("document", &shape.prompts.document);
    format!(
        "{repository} at {revision}: licence {license}, {}; {}, {kind}, window {} tokens{prompts}",
        output::bytes(*n_bytes),
        shape.architecture,
        shape.max_tokens,
    )
}

/// Why this version cannot run a model, if it cannot.
fn obstacle(known: &Known) -> Option<String> {
    if !cento_engine::embedder::knows_architecture(&known.architecture) {
        return Some(format!("architecture {:?}", known.architecture));
    }
    known.obstacle.clone()
}

/// A well-known model, as it is listed.
#[derive(serde::Serialize)]
struct KnownHere<'a> {
    #[serde(flatten)]
    known: &'a Known,
    /// Times that the default model is as fast.
    n_times_slower: f64,
    /// Absent if this version runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    obstacle: Option<String>,
}

fn known_here(known: &Known) -> KnownHere<'_> {
    KnownHere { known, n_times_slower: (known.n_times_slower() * 10.0).round() / 10.0, obstacle: obstacle(known) }
}

fn show_known(known: &Known, global: &Global) -> anyhow::Result<Outcome> {
    if global.json {
        output::json(&Answer { version: output::JSON_VERSION, body: known_here(known) })?;
    } else {
        println!("# not pulled: facts of its page, no checksums\n{}", toml::to_string(known)?.trim_end());
    }
    Ok(Outcome::Done)
}

fn list_all(models: &Models, global: &Global) -> anyhow::Result<Outcome> {
    #[derive(serde::Serialize)]
    struct Body<'a> {
        models: Vec<Listed<'a>>,
        known: Vec<KnownHere<'a>>,
    }
    let listed = models.list().map_err(cento_engine::Error::from)?;
    let is_new = |known: &&Known| !listed.iter().any(|listed| listed.card.repository == known.repository);
    let known: Vec<KnownHere<'_>> = models.known().iter().filter(is_new).map(known_here).collect();
    if global.json {
        output::json(&Answer { version: output::JSON_VERSION, body: Body { models: listed, known } })?;
        return Ok(Outcome::Done);
    }
    list(models, global)?;
    let rows = known.iter().map(|KnownHere { known, n_times_slower, obstacle }| {
        vec![
            known.name.clone(),
            known.repository.clone(),
            match known.of_use {
                Use::Encoder => "encoder".to_owned(),
                Use::Reranker => "reranker".to_owned(),
            },
            format!("{} M", known.n_parameters_m),
            known.languages.clone(),
            known.license.clone(),
            known.max_tokens.to_string(),
            known.dimensions.to_string(),
            match known.n_layers {
                0 => "table".to_owned(),
                _ => format!("1/{}", n_times_slower.round().max(1.0)),
            },
            obstacle.as_ref().map_or_else(|| "yes".to_owned(), |obstacle| format!("no: {obstacle}")),
        ]
    });
    let columns = [
        "model",
        "on the hub",
        "use",
        "parameters",
        "languages",
        "licence",
        "max tokens",
        "dimensions",
        "speed",
        "runs",
    ];
    println!("\n{}", output::table(&columns, rows));
    println!(
        "\nspeed: tokens/s beside the default model's, by the parameters that each token passes; \
         a table of static vectors has none, its tokenizer decides"
    );
    Ok(Outcome::Done)
}

fn list(models: &Models, global: &Global) -> anyhow::Result<Outcome> {
    #[derive(serde::Serialize)]
    struct Body<T> {
        models: T,
    }
    let listed = models.list().map_err(cento_engine::Error::from)?;
    if global.json {
        output::json(&Answer { version: output::JSON_VERSION, body: Body { models: &listed } })?;
        return Ok(Outcome::Done);
    }
    let rows = listed.iter().map(|listed| {
        let presence = match listed.presence {
            Presence::Absent => "not pulled",
            Presence::Complete => "pulled",
            Presence::Damaged => "damaged: pull again",
        };
        let card = listed.card;
        vec![
            card.name.clone(),
            presence.to_owned(),
            output::bytes(card.n_bytes()),
            card.dimensions.to_string(),
            card.max_tokens.to_string(),
            card.license.clone(),
            card.description.clone(),
        ]
    });
    println!(
        "{}",
        output::table(&["model", "here", "size", "dimensions", "max tokens", "licence", "description"], rows)
    );
    Ok(Outcome::Done)
}

fn verify(models: &Models, name: &str, global: &Global) -> anyhow::Result<Outcome> {
    #[derive(serde::Serialize)]
    struct Body<T> {
        files: T,
    }
    let checks = models.verify(name).map_err(cento_engine::Error::from)?;
    if global.json {
        output::json(&Answer { version: output::JSON_VERSION, body: Body { files: &checks } })?;
    } else {
        checks.iter().for_each(|check| println!("{check}"))
    }
    let is_whole = checks.iter().all(|check| check.state == FileState::Ok);
    Ok(if is_whole { Outcome::Done } else { Outcome::Nothing })
}
