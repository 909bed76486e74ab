//! Commands that read files of some extensions, as a settings file names them:
//!
//! ```toml
//! [read.command]
//! tiff = ["my-ocr", "--stdout"]
//! djvu = { run = ["djvutxt", "/dev/stdin"], as = "text", seconds = 300, memory = "4GiB" }
//! ```
//!
//! They stand in files alone: a list of arguments is nothing for a variable, and a program that is given what others
//! wrote is nothing that one says in passing.

use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use cento_engine::{Commands, Gives, ReadCommand};
use serde::Deserialize;

use crate::args::ByteCount;

/// The table of a file, and the table in it.
pub(super) const VERB: &str = "read";
pub(super) const TABLE: &str = "command";

/// A command as it is written.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Run(Vec<String>),
    Full(Full),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Full {
    run: Vec<String>,
    #[serde(default, rename = "as")]
    gives: WrittenAs,
    seconds: Option<u64>,
    memory: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenAs {
    #[default]
    Markdown,
    Text,
}

/// A command in one line.
pub(super) fn shown(command: &ReadCommand) -> String {
    command.run.join(" ")
}

/// Reads the commands of a file.
///
/// # Errors
/// One that is none, with its file and key.
pub(super) fn parse(path: &Path, table: toml::Value) -> anyhow::Result<Vec<(String, ReadCommand)>> {
    let toml::Value::Table(table) = table else {
        bail!("{}: {VERB}.{TABLE} is a {}; expected a table of extensions", path.display(), table.type_str());
    };
    let mut commands = Vec::new();
    for (extension, value) in table {
        let at = || format!("{}: {VERB}.{TABLE}.{extension}", path.display());
        let command = of_value(value).with_context(at)?;
        Commands::new([(extension.clone(), command.clone())]).map_err(|reason| anyhow!("{}: {reason}", at()))?;
        commands.push((extension.to_lowercase(), command));
    }
    Ok(commands)
}

fn of_value(value: toml::Value) -> anyhow::Result<ReadCommand> {
    const EXPECTED: &str =
        r#"expected a list of program and arguments, or { run = [...], as = "markdown" or "text", seconds, memory }"#;
    let Full { run, gives, seconds, memory } = match value.try_into().map_err(|_| anyhow!(EXPECTED))? {
        Written::Run(run) => Full { run, gives: WrittenAs::default(), seconds: None, memory: None },
        Written::Full(full) => full,
    };
    let memory = memory.map(|memory| memory.parse::<ByteCount>().map_err(|reason| anyhow!("memory: {reason}")));
    Ok(ReadCommand {
        run,
        gives: match gives {
            WrittenAs::Markdown => Gives::Markdown,
            WrittenAs::Text => Gives::Text,
        },
        memory_bytes: memory.transpose()?.map(|memory| memory.0),
        processor_seconds: seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Vec<(String, ReadCommand)>> {
        parse(Path::new("cento.toml"), toml::Value::Table(text.parse().unwrap()))
    }

    #[test]
    fn a_command_is_a_list_or_a_table() {
        let commands =
            read("TIFF = [\"ocr\", \"-\"]\n[djvu]\nrun = [\"x\"]\nas = \"text\"\nseconds = 9\nmemory = \"2GiB\"\n");
        let run = |run: &[&str]| run.iter().map(|part| (*part).to_owned()).collect();
        let plain = ReadCommand {
            run: run(&["ocr", "-"]),
            gives: Gives::Markdown,
            memory_bytes: None,
            processor_seconds: None,
        };
        let full = ReadCommand {
            run: run(&["x"]),
            gives: Gives::Text,
            memory_bytes: Some(2 << 30),
            processor_seconds: Some(9),
        };
        assert_eq!(commands.unwrap(), [("tiff".to_owned(), plain), ("djvu".to_owned(), full)]);
        for (text, words) in [
            ("tiff = \"ocr -\"", "expected a list"),
            ("tiff = [1]", "expected a list"),
            ("tiff = []", "no program"),
            ("tiff = { run = [\"x\"], shell = true }", "expected a list"),
            ("tiff = { run = [\"x\"], as = \"html\" }", "expected a list"),
            ("tiff = { run = [\"x\"], memory = \"much\" }", "number of bytes"),
            ("tiff = { run = [\"x\"], seconds = 0 }", "0 seconds"),
            ("\".tiff\" = [\"x\"]", "without a dot"),
        ] {
            let error = format!("{:#}", read(text).unwrap_err());
            assert!(error.contains(words) && error.contains("cento.toml: read.command."), "{text}: {error}");
        }
    }
}
