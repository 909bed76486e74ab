//! The guide: each command that a page of `docs/` shows is run, and prints what the page shows.

mod transcript;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Place, binary, default_model, root};
use transcript::{SHOWN, faults, renewed, run, shell, steps};

/// The home that pages show; where they are run, the folder of the test stands in its place.
const HOME: &str = "/home/ann";

/// The Markdown pages of `docs/`, sorted, as paths inside it.
fn pages() -> Vec<String> {
    fn collect(folder: &Path, pages: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, pages);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    let docs = root().join("docs");
    let mut pages = Vec::new();
    collect(&docs, &mut pages);
    let inside = |path: &PathBuf| path.strip_prefix(&docs).unwrap().to_str().unwrap().to_owned();
    let mut pages: Vec<String> = pages.iter().map(inside).filter(|page| !page.starts_with("example/")).collect();
    pages.sort();
    pages
}

fn read(page: &str) -> String {
    std::fs::read_to_string(root().join("docs").join(page)).unwrap()
}

/// A free address of this machine.
fn free_address() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Runs a page in a copy of the example, and tells what is not as it shows; `CENTO_GUIDE=write` writes it anew instead.
fn check(page: &str, model: &Path) -> Vec<String> {
    let text = read(page);
    let mut steps = steps(&text);
    if steps.is_empty() {
        return Vec::new();
    }
    let home = tempfile::tempdir().unwrap();
    let example = home.path().join("example");
    let copied = Command::new("cp").arg("-r").arg(root().join("docs/example")).arg(&example).status().unwrap();
    assert!(copied.success());
    let mut shell = shell(&example, &binary(), model.parent().unwrap());
    let address = free_address();
    if steps.iter().any(|step| step.command.starts_with("cento serve")) {
        shell.env("CENTO_LISTEN", &address);
    }
    for step in &mut steps {
        step.command = step.command.replace(SHOWN, &address);
    }
    let mut endings = run(&steps, shell);
    let home = home.path().to_str().unwrap();
    for line in endings.iter_mut().flat_map(|ending| &mut ending.output) {
        *line = line.replace(&address, SHOWN).replace(home, HOME);
    }
    if std::env::var_os("CENTO_GUIDE").is_some_and(|wish| wish == "write") {
        let renewed = renewed(&text, &steps, &endings);
        std::fs::write(root().join("docs").join(page), &renewed).unwrap();
        return faults(&renewed, &transcript::steps(&renewed), &endings);
    }
    faults(&text, &steps, &endings)
}

/// Holds the pages of a folder of the guide against what their commands print; the empty name is the guide's own folder.
#[track_caller]
fn hold(folder: &str, least_commands: usize) {
    let Some(model) = default_model() else { return };
    for program in ["bash", "curl", "jq", "awk"] {
        if Command::new(program).arg("--version").output().is_err() {
            eprintln!("skipped: there is no {program}");
            return;
        }
    }
    let (model, mut n_commands, mut wrong) = (PathBuf::from(model), 0, String::new());
    let is_inside = |page: &String| page.rsplit_once('/').map_or("", |(folder, _)| folder) == folder;
    let readme = folder.is_empty().then(|| "../README.md".to_owned());
    for page in pages().into_iter().filter(is_inside).chain(readme) {
        n_commands += steps(&read(&page)).len();
        let faults = check(&page, &model);
        if !faults.is_empty() {
            wrong += &format!("docs/{page}\n{}\n", faults.join("\n"));
        }
    }
    assert!(n_commands >= least_commands, "{n_commands} commands");
    assert!(wrong.is_empty(), "CENTO_GUIDE=write writes the pages anew; not as shown:\n{wrong}");
}

#[test]
fn the_first_pages_and_readme_show_what_happens() {
    hold("", 9);
}

#[test]
fn the_pages_of_tasks_show_what_happens() {
    hold("how-to", 60);
}

#[test]
fn the_pages_of_concepts_show_what_happens() {
    hold("concepts", 35);
}

#[test]
fn the_pages_for_users_of_other_tools_show_what_happens() {
    hold("coming-from", 15);
}

#[test]
fn the_reference_shows_what_happens() {
    hold("reference", 75);
}

#[test]
fn a_page_is_held_against_what_a_command_prints() {
    let page = "Text.\n\n```console\n$ printf 'a 1.2 s\\nb 0.50001\\nc\\nd\\n'\na 9 s\nb 0.5\n...\nd\n$ cat <<END\n> x\n> END\n?\n```\n";
    let steps = steps(page);
    assert_eq!(steps.iter().map(|step| step.shown.len()).collect::<Vec<_>>(), [4, 1]);
    let endings = run(&steps, Command::new("bash"));
    let told = faults(page, &steps, &endings);
    assert_eq!(told.iter().filter(|line| line.contains("is not what is shown")).count(), 1, "{told:?}");
    let page = renewed(page, &steps, &endings);
    assert!(page.contains("> END\nx\n```\n"), "{page}");
    assert!(faults(&page, &transcript::steps(&page), &endings).is_empty());

    let shown = |line: &str| {
        let page = format!("```console\n$ printf 'score 0.512, 3 of 10, %s\\n' ab12cd\n{line}\n```\n");
        let steps = transcript::steps(&page);
        faults(&page, &steps, &run(&steps, Command::new("bash"))).is_empty()
    };
    assert!(shown("score 0.5123, 3 of 10, ab12cd") && shown("score [..] 3 of [..], ab[..]cd"));
    assert!(!shown("score 0.52, 3 of 10, ab12cd") && !shown("score 0.512, 4 of 10, ab12cd"));
    assert!(!shown("score 0.512, 3 of 10") && !shown("[..] 4 of [..]"));

    let page = "```console\n$ false\n```\n";
    let steps = transcript::steps(page);
    assert_eq!(faults(page, &steps, &run(&steps, Command::new("bash"))).len(), 1, "a failure must be asked for");
}

#[test]
fn a_block_that_is_not_run_says_why_and_each_block_is_of_a_known_kind() {
    let run_elsewhere = |page: &str, kind: &str| match page {
        "serve.md" => ["sh", "python", "js", "python-clients"].contains(&kind),
        _ => kind.starts_with("python") && read_python_pages().contains(&format!("\"docs/{page}\"")),
    };
    for page in pages() {
        let text = read(&page);
        let mut before = "";
        let mut inside = false;
        for line in text.lines() {
            if let Some(kind) = line.strip_prefix("```") {
                inside = !inside;
                let is_known = ["console", "json", "toml"].contains(&kind) || run_elsewhere(&page, kind);
                assert!(!inside || is_known || before.starts_with("<!-- not run: "), "docs/{page}: {line} is not run");
            }
            before = line;
        }
        for (kind, is_read) in [("json", is_json as fn(&str) -> bool), ("toml", is_toml)] {
            for block in text.split(&format!("\n```{kind}\n")).skip(1) {
                let block = block.split("\n```").next().unwrap();
                assert!(is_read(block), "docs/{page}: {block}");
            }
        }
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok()
}

fn is_toml(text: &str) -> bool {
    text.parse::<toml::Table>().is_ok()
}

/// The test of the examples in Python, which names its pages.
fn read_python_pages() -> String {
    std::fs::read_to_string(root().join("python/tests/test_docs.py")).unwrap()
}

#[test]
fn links_of_the_guide_lead_to_files_and_headings() {
    for page in pages().into_iter().chain(["../README.md".to_owned()]) {
        let path = root().join("docs").join(&page);
        let text = std::fs::read_to_string(&path).unwrap();
        let of_text = text.split("```").step_by(2).collect::<String>();
        for link in of_text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            if link.starts_with("http") || link.is_empty() {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(target.exists(), "docs/{page}: {link} leads nowhere");
            let has = heading.is_empty() || anchors(&std::fs::read_to_string(&target).unwrap()).contains(heading);
            assert!(has, "docs/{page}: {link} leads to no heading");
        }
    }
}

/// The anchors that forges give the headings of a page.
fn anchors(page: &str) -> BTreeSet<String> {
    let of = |heading: &str| {
        let kept = heading
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c))
            .collect::<String>();
        kept.replace(' ', "-")
    };
    page.lines().filter_map(|line| Some(of(line.strip_prefix('#')?.trim_start_matches('#').trim()))).collect()
}

#[test]
fn the_summary_has_every_page_once() {
    let summary = read("SUMMARY.md");
    for page in pages().iter().filter(|page| *page != "SUMMARY.md") {
        assert_eq!(summary.matches(&format!("({page})")).count(), 1, "docs/SUMMARY.md: {page}");
    }
}

#[test]
fn the_reference_has_every_command() {
    let (reference, place) = (read("reference/cli.md"), Place::new());
    let first = place.ok(&["--help"]).out;
    let commands: Vec<&str> = first.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    let commands: Vec<&str> =
        commands.into_iter().filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase())).collect();
    assert!(commands.len() > 25, "{commands:?}");
    for command in commands.into_iter().filter(|command| *command != "help") {
        assert!(
            reference.contains(&format!("\n$ cento help {command}\n")),
            "docs/reference/cli.md: cento help {command}"
        );
    }
}

#[test]
fn options_of_commands_that_are_not_run_exist() {
    let place = Place::new();
    let mut helps = std::collections::BTreeMap::new();
    let mut n_options = 0;
    for page in pages().iter().filter(|page| *page != "reference/cli.md") {
        let text = read(page).replace("\\\n", " ");
        for line in text.lines().filter_map(|line| line.trim_start().strip_prefix("cento ")) {
            let words: Vec<&str> = line.split(" # ").next().unwrap().split([' ', '=']).collect();
            let verb = words.iter().take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
            let verb: Vec<&str> = verb
                .take(if ["model", "bench", "snapshot", "cache"].contains(&words[0]) { 2 } else { 1 })
                .copied()
                .collect();
            let help = helps.entry(verb.join(" ")).or_insert_with(|| place.run(&[&verb[..], &["--help"]].concat()).out);
            for option in words.iter().filter(|word| word.starts_with("--")) {
                assert!(help.contains(option), "docs/{page}: cento {line}: no {option}");
                n_options += 1;
            }
        }
    }
    assert!(n_options > 20, "{n_options} options");
}
