//! Cento: a corpus in, citable context out.

mod args;
mod commands;
mod exit_code;
mod options;
mod output;
mod settings;
mod trec;

fn main() -> std::process::ExitCode {
    let invocation = match settings::parse(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(stop) => return stop.report(),
    };
    exit_code::report(commands::execute(&invocation))
}
