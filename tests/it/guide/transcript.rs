//! Console blocks of a Markdown page: run in one shell, and held against what the page shows.
//!
//! A block is fenced as `console`. A line that begins with `$ ` is a command, one with `> ` goes on with it, all others are
//! the output, stdout and stderr as they came. `...` stands for any lines, `[..]` for any characters of a line (the
//! wildcards of trycmd). A command that fails must be followed by `echo $?`. Times are not compared: `1.2 s` is any number of seconds. Decimals may differ by a thousandth, for processors round
//! differently.

use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

/// The line that a page has where its output is still to be written.
const UNWRITTEN: &str = "?";

/// A command of a page, and the output that the page shows.
#[derive(Debug)]
pub(crate) struct Step {
    /// The command, of one or several lines.
    pub(crate) command: String,
    /// The lines of the page that show its output.
    pub(crate) shown: Range<usize>,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) output: Vec<String>,
    pub(crate) code: i32,
}

/// The commands of a page in their order.
pub(crate) fn steps(page: &str) -> Vec<Step> {
    let (mut steps, mut inside): (Vec<Step>, bool) = (Vec::new(), false);
    for (number, line) in page.lines().enumerate() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if !inside {
        } else if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), shown: number + 1..number + 1 });
        } else {
            let step = steps.last_mut().unwrap_or_else(|| panic!("line {}: output before a command", number + 1));
            match line.strip_prefix("> ") {
                Some(more) if step.shown.is_empty() => {
                    step.command += &format!("\n{more}");
                    step.shown = number + 1..number + 1;
                }
                _ => step.shown.end = number + 1,
            }
        }
    }
    steps
}

/// Runs the commands one after another in one shell, so that folders, variables and programs behind `&` last.
pub(crate) fn run(steps: &[Step], mut shell: Command) -> Vec<Ending> {
    const MARK: &str = "--- end of a command of the page, code ";
    let mut script = String::from("exec 2>&1\n");
    for step in steps {
        script += &format!("{}\n__code=$?; printf '\\n{MARK}%d\\n' $__code; (exit $__code)\n", step.command);
    }
    script += "for job in $(jobs -p); do kill $job; done\nwait\n";
    let ran = shell.arg("-c").arg(script).stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8_lossy(&ran.stdout).into_owned();
    let mut endings = Vec::new();
    let mut output: Vec<String> = Vec::new();
    for line in told.lines() {
        if let Some(code) = line.strip_prefix(MARK) {
            output.truncate(output.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1));
            endings.push(Ending { output: std::mem::take(&mut output), code: code.parse().unwrap() });
        } else {
            output.push(line.trim_end().to_owned());
        }
    }
    assert_eq!(endings.len(), steps.len(), "the shell of the page ended early: {told}");
    endings
}

/// What is wrong with each command of a page, as its line and a sentence.
pub(crate) fn faults(page: &str, steps: &[Step], endings: &[Ending]) -> Vec<String> {
    let lines: Vec<&str> = page.lines().collect();
    let mut faults = Vec::new();
    for (number, (step, ending)) in steps.iter().zip(endings).enumerate() {
        let shown = &lines[step.shown.clone()];
        let is_asked = steps.get(number + 1).is_some_and(|next| next.command.starts_with("echo $?"));
        let output: Vec<&str> = ending.output.iter().map(String::as_str).collect();
        if ending.code != 0 && !is_asked {
            faults.push(format!("line {}: `{}` ends with {}", step.shown.start, step.command, ending.code));
        } else if is_shown(shown, &output) {
            continue;
        } else {
            faults.push(format!("line {}: `{}` is not what is shown", step.shown.start, step.command));
        }
        faults.extend(output.iter().map(|line| format!("    {line}")));
    }
    faults
}

/// The page with the output that came, where another is shown; output with wildcards stays for a person to mend.
pub(crate) fn renewed(page: &str, steps: &[Step], endings: &[Ending]) -> String {
    let mut lines: Vec<&str> = page.lines().collect();
    for (step, ending) in steps.iter().zip(endings).rev() {
        let shown = &lines[step.shown.clone()];
        let output: Vec<&str> = ending.output.iter().map(String::as_str).collect();
        let has_wildcards = shown.iter().any(|line| *line == "..." || line.contains("[..]"));
        if !has_wildcards && !is_shown(shown, &output) {
            lines.splice(step.shown.clone(), output);
        }
    }
    lines.join("\n") + "\n"
}

/// The truth of a page about an output.
fn is_shown(shown: &[&str], output: &[&str]) -> bool {
    match (shown.split_first(), output) {
        (None, _) => output.is_empty(),
        (Some((&"...", rest)), _) => (0..=output.len()).any(|skipped| is_shown(rest, &output[skipped..])),
        (Some((&UNWRITTEN, _)) | Some(_), []) => false,
        (Some((line, rest)), [first, others @ ..]) => is_line(line, first) && is_shown(rest, others),
    }
}

/// The same of one line.
fn is_line(shown: &str, told: &str) -> bool {
    let (shown, told) = (timeless(shown.trim_end()), timeless(told));
    let Some((start, rest)) = shown.split_once("[..]") else { return is_about(&shown, &told) };
    let Some(mut told) = told.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split("[..]").collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = told.find(part) else { return false };
        told = &told[at + part.len()..];
    }
    told.ends_with(end)
}

/// Equal texts with about equal decimals between them.
fn is_about(shown: &str, told: &str) -> bool {
    let is_same = |(shown, told): (&&str, &&str)| match (shown.parse::<f64>(), told.parse::<f64>()) {
        (Ok(a), Ok(b)) if shown.contains('.') && told.contains('.') => (a - b).abs() <= 1e-3 * a.abs().max(1.0),
        _ => shown == told,
    };
    let (shown, told) = (pieces(shown), pieces(told));
    shown.len() == told.len() && shown.iter().zip(&told).all(is_same)
}

/// The numbers of a line and what stands between them.
fn pieces(line: &str) -> Vec<&str> {
    let of_number = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    line.as_bytes()
        .chunk_by(|a, b| of_number(*a) == of_number(*b))
        .scan(0, |at, piece| {
            *at += piece.len();
            line.get(*at - piece.len()..*at)
        })
        .collect()
}

/// A line with `0 s` for every time.
fn timeless(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let unit = |word: &str| matches!(word.trim_end_matches([',', ';', '.', ')']), "s" | "ms");
    let is_number = |word: &str| word.trim_start_matches('(').parse::<f64>().is_ok();
    let of = |at: usize| match words.get(at + 1) {
        Some(next) if unit(next) && is_number(words[at]) => "0",
        _ if unit(words[at]) && at > 0 && is_number(words[at - 1]) => "s",
        _ => words[at],
    };
    (0..words.len()).map(of).collect::<Vec<_>>().join(" ")
}

/// A shell in a folder, with nothing of the user's but the path of programs and encoders.
pub(crate) fn shell(folder: &Path, program: &Path, models: &Path) -> Command {
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("bash");
    shell
        .env_clear()
        .env("PATH", path)
        .env("HOME", folder.parent().unwrap())
        .env("CENTO_MODELS", models)
        .current_dir(folder);
    shell
}

/// The address that pages show; where they are run, a free one stands in its place.
pub(crate) const SHOWN: &str = "127.0.0.1:8181";
