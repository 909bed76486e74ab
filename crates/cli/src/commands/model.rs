//! `cento model`: encoders on this machine.

use cento_engine::OsFs;
use cento_engine::model::{FileState, Models, Presence, Progress};

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
        Model::Pull { name } => pull(&models, name, global),
        Model::List => list(&models, global),
        Model::Verify { name } => verify(&models, name, global),
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

fn pull(models: &Models, name: &str, global: &Global) -> anyhow::Result<Outcome> {
    crate::interrupt::end_on_interrupt("nothing of the model was kept; run the same command again")?;
    let bar = Bar::new(global, Beside::Text);
    let pulled = models.pull(name, &OsFs, &mut |progress| match progress {
        Progress::Waiting => bar.message(format!("another process is getting {name}; waiting")),
        Progress::Trying { source } => bar.message(format!("getting {name} from {source}")),
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
