//! Cento: a corpus in, citable context out.

#[macro_use]
mod output;
mod args;
mod settings;
mod options;
mod policy_file;
mod commands;
mod judge;
mod interrupt;
mod exit_code;

fn main() -> std::process::ExitCode {
    let invocation = match settings::parse(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(stop) => return stop.report(),
    };
    exit_code::report(commands::execute(&invocation))
}
