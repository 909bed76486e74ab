//! Running a plan: its steps for every value of their variables, and the figures of their answers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process;
use std::time::Instant;

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::plan::{Plan, Take};
use super::report;

/// A command with every variable replaced.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    /// None is `cento`.
    pub(crate) program: Option<String>,
    pub(crate) arguments: Vec<String>,
    /// Gets the answer as JSON.
    pub(crate) save: Option<String>,
    pub(crate) take: Option<Take>,
}

/// The commands of a plan, in order. `folders` are the variables that every plan has.
pub(crate) fn commands(plan: &Plan, folders: &[(&str, String)]) -> anyhow::Result<Vec<Command>> {
    let mut commands = Vec::new();
    for picture in &plan.picture {
        in_folders(&picture.trace, folders)?; // said before anything is run
    }
    for step in &plan.step {
        let runs = step.run.iter().chain(&step.script);
        let take = step.figures.iter().flat_map(|take| [&take.row, &take.column]);
        let templates: Vec<&String> = runs.clone().chain(&step.save).chain(take).collect();
        let used = |name: &&String| templates.iter().any(|template| template.contains(&format!("{{{name}}}")));
        let names: Vec<&String> = plan.variables.keys().filter(used).collect();
        for values in product(&names.iter().map(|name| &plan.variables[*name][..]).collect::<Vec<_>>()) {
            let values = names.iter().zip(&values).map(|(name, value)| (name.as_str(), value.as_str()));
            let words = Words { values: values.collect(), folders };
            for run in runs.clone() {
                let mut arguments = words.of(run)?.into_iter();
                let program = if step.script.is_some() { arguments.next() } else { None };
                commands.push(Command { program, arguments: arguments.collect(), save: None, take: None });
            }
            if let (Some(last), Some(save)) = (commands.last_mut(), &step.save) {
                last.save = words.of(save)?.pop();
            }
            if let (Some(last), Some(take)) = (commands.last_mut(), &step.figures) {
                let (row, column) = (fill(&take.row, &words.values)?, fill(&take.column, &words.values)?);
                last.take = Some(Take { from: take.from.clone(), row, column });
            }
        }
    }
    Ok(commands)
}

/// What stands for the variables of a command.
struct Words<'a> {
    values: Vec<(&'a str, &'a str)>,
    folders: &'a [(&'a str, String)],
}

impl Words<'_> {
    /// The words of a command. A value may be several words, a folder's name is always one.
    fn of(&self, template: &str) -> anyhow::Result<Vec<String>> {
        let kept: Vec<(&str, String)> = self.folders.iter().map(|(name, _)| (*name, format!("{{{name}}}"))).collect();
        let kept = kept.iter().map(|(name, itself)| (*name, itself.as_str()));
        let command = fill(template, &self.values.iter().copied().chain(kept).collect::<Vec<_>>())?;
        split(&command)?.iter().map(|word| in_folders(word, self.folders)).collect()
    }
}

/// The words of a line: parted by white space outside single quotes, which are left out.
fn split(line: &str) -> anyhow::Result<Vec<String>> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), None::<String>, false);
    for c in line.chars() {
        if c == '\'' {
            is_quoted = !is_quoted;
            word.get_or_insert_default();
        } else if c.is_whitespace() && !is_quoted {
            words.extend(word.take());
        } else {
            word.get_or_insert_default().push(c);
        }
    }
    if is_quoted {
        bail!("{line:?}: a single quote is not closed");
    }
    words.extend(word);
    Ok(words)
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

impl Command {
    /// As a user would type it into a shell.
    pub(crate) fn shown(&self) -> String {
        let save = self.save.as_ref().map_or(String::new(), |file| format!(" --json > {}", quoted(file)));
        let program = self.program.as_deref().map_or_else(|| "cento".to_owned(), quoted);
        let words: Vec<String> = [program].into_iter().chain(self.arguments.iter().map(|word| quoted(word))).collect();
        format!("{}{save}", words.join(" "))
    }
}

/// Every combination, the last list turning fastest; one, empty, of no lists.
fn product<'v>(lists: &[&'v [String]]) -> Vec<Vec<&'v String>> {
    lists.iter().fold(vec![Vec::new()], |combinations, list| {
        let with = |combination: &Vec<&'v String>| {
            let combination = combination.clone();
            list.iter()
                .map(move |value| combination.iter().copied().chain([value]).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        combinations.iter().flat_map(with).collect()
    })
}

/// A path with its folders.
pub(super) fn in_folders(template: &str, folders: &[(&str, String)]) -> anyhow::Result<String> {
    fill(template, &folders.iter().map(|(name, path)| (*name, path.as_str())).collect::<Vec<_>>())
}

/// Replaces `{name}`; `{@key}` stays, for the answer to fill.
fn fill(template: &str, variables: &[(&str, &str)]) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { bail!("{template:?}: a brace is not closed") };
        text.push_str(before);
        match variables.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => text.push_str(value),
            None if name.starts_with('@') => text.push_str(&format!("{{{name}}}")),
            None => bail!("{template:?}: there is no variable {name:?}"),
        }
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

/// Figures by row, column and name. Rows and columns keep the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) rows: Vec<String>,
    pub(crate) columns: Vec<String>,
    values: BTreeMap<(String, String, String), f64>,
}

impl Figures {
    pub(crate) fn figure(&self, row: &str, column: &str, name: &str) -> Option<f64> {
        self.values.get(&(row.to_owned(), column.to_owned(), name.to_owned())).copied()
    }

    /// Keeps the figures of an answer.
    fn take(&mut self, take: &Take, answer: &Value) -> anyhow::Result<()> {
        let Some(found) = answer.pointer(&take.from) else { bail!("the answer has nothing at {:?}", take.from) };
        let objects = found.as_array().map_or_else(|| std::slice::from_ref(found), Vec::as_slice);
        for object in objects {
            let field = |name: &str| object[name].as_str().map_or_else(|| object[name].to_string(), str::to_owned);
            let label = |template: &str| label(template, &field);
            let (row, column) = (label(&take.row), label(&take.column));
            self.keep(&row, &column, "", object);
            for (known, name) in [(&mut self.rows, row), (&mut self.columns, column)] {
                if !known.contains(&name) {
                    known.push(name);
                }
            }
        }
        Ok(())
    }

    /// Numbers under their names; those of an object inside under `name/key`.
    fn keep(&mut self, row: &str, column: &str, prefix: &str, object: &Value) {
        for (name, value) in object.as_object().into_iter().flatten() {
            if let Some(number) = value.as_f64() {
                self.values.insert((row.to_owned(), column.to_owned(), format!("{prefix}{name}")), number);
            } else if value.is_object() && prefix.is_empty() && name != "queries" {
                self.keep(row, column, &format!("{name}/"), value);
            }
        }
    }
}

fn label(template: &str, field: &dyn Fn(&str) -> String) -> String {
    let mut text = template.to_owned();
    while let Some((before, after)) = text.split_once("{@") {
        let Some((name, after)) = after.split_once('}') else { break };
        text = format!("{before}{}{after}", field(name));
    }
    text
}

/// Runs commands as processes of their own, without settings of a user, so that nothing but the plan decides.
pub(crate) struct Runner {
    pub(crate) binary: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) threads: usize,
}

impl Runner {
    /// The version that the program says it has.
    pub(crate) fn version(&self) -> anyhow::Result<String> {
        let program = self.binary.display();
        let output = process::Command::new(&self.binary).arg("--version").output();
        let output = output.with_context(|| program.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout);
        let version = said.trim().strip_prefix("cento ").filter(|_| output.status.success());
        Ok(version.with_context(|| format!("{program}: is not `cento`: it does not say its version"))?.to_owned())
    }

    /// Runs one command, keeps its figures, and says how long it took.
    pub(crate) fn run(&self, command: &Command, figures: &mut Figures) -> anyhow::Result<report::Step> {
        let start = Instant::now();
        let shown = command.shown();
        let mut process =
            process::Command::new(command.program.as_ref().map_or(&*self.binary, |program| Path::new(program)));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CENTO_") && name != "CENTO_MODELS" {
                process.env_remove(name);
            }
        }
        process.env("CENTO_CACHE", self.folder.join(super::workplace::CACHE));
        process.env("CENTO_CONFIG", self.folder.join(super::workplace::SETTINGS));
        process.env("CENTO", &self.binary); // for scripts that run it
        process.args(&command.arguments);
        if command.program.is_none() {
            process.args(["--quiet", "--threads", &self.threads.to_string()]);
            process.args((command.take.is_some() || command.save.is_some()).then_some("--json"));
        }
        let output = process.current_dir(&self.folder).output().with_context(|| shown.clone())?;
        if !output.status.success() {
            bail!("{shown}\n{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        if let Some(path) = &command.save {
            std::fs::write(path, &output.stdout).with_context(|| path.clone())?;
        }
        if let Some(take) = &command.take {
            let answer = serde_json::from_slice(&output.stdout).with_context(|| shown.clone())?;
            figures.take(take, &answer).with_context(|| shown.clone())?;
        }
        Ok(report::Step { command: shown, seconds: start.elapsed().as_secs_f64() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn strings(values: &[&str]) -> Vec<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    #[test]
    fn a_step_is_run_for_every_value_of_the_variables_it_names() {
        let plan: Plan = toml::from_str(
            "title = ''\nsource = ''\ntext = ''\n[variables]\nset = ['a', 'b']\nmode = ['x', '-m y']\n[[step]]\nrun = 'index {data}/{set}'\n\
             [[step]]\nrun = 'eval {set} {mode}'\nfigures = { row = '{set}', column = '{mode} {@ef}' }\n[[step]]\nrun = 'status'",
        )
        .unwrap();
        let commands = commands(&plan, &[("data", "/my data".to_owned())]).unwrap();
        let words: Vec<_> = commands.iter().map(|command| command.arguments.clone()).collect();
        assert_eq!(words[..2], [strings(&["index", "/my data/a"]), strings(&["index", "/my data/b"])]);
        assert_eq!(
            words[2..6].iter().map(|words| words[1..].join("")).collect::<Vec<_>>(),
            ["ax", "bx", "a-my", "b-my"]
        );
        assert_eq!(words.len(), 7);
        assert_eq!(commands[2].take.as_ref().unwrap().column, "x {@ef}");
        let unknown: Plan = toml::from_str("title=''\nsource=''\ntext=''\n[[step]]\nrun='index {dta}'").unwrap();
        assert!(super::commands(&unknown, &[]).unwrap_err().to_string().contains("dta"));
    }

    #[test]
    fn words_in_single_quotes_are_one_and_are_shown_as_a_shell_reads_them() {
        let words = split("context 'who pays,  and when?' --trace {work}/one.json -m gate=\"none\" ''").unwrap();
        let expected = ["context", "who pays,  and when?", "--trace", "{work}/one.json", "-m", "gate=\"none\"", ""];
        assert_eq!(words, strings(&expected));
        let command = Command { program: None, arguments: words, save: Some("a b".to_owned()), take: None };
        assert_eq!(
            command.shown(),
            "cento context 'who pays,  and when?' --trace '{work}/one.json' -m 'gate=\"none\"' '' --json > 'a b'"
        );
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert!(split("context 'who pays").unwrap_err().to_string().contains("not closed"));
    }

    #[test]
    fn figures_are_the_numbers_of_the_answer() {
        let answer = json!({"groups": [{"budget": 200, "name": "flat", "recall": 0.5, "by": {"scope": 3}}, {"budget": 400, "name": "flat", "recall": 0.7}]});
        let mut figures = Figures::default();
        let take = Take { from: "/groups".to_owned(), row: "{@budget}".to_owned(), column: "{@name}".to_owned() };
        figures.take(&take, &answer).unwrap();
        assert_eq!((&figures.rows, &figures.columns), (&strings(&["200", "400"]), &strings(&["flat"])));
        assert_eq!(figures.figure("400", "flat", "recall"), Some(0.7));
        assert_eq!(figures.figure("200", "flat", "by/scope"), Some(3.0));
        let nowhere = Take { from: "/group".to_owned(), ..take };
        assert!(figures.take(&nowhere, &answer).is_err());
    }
}
