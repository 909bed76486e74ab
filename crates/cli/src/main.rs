//! Cento: a corpus in, citable context out.

mod args;
mod settings;
mod options;
mod commands;
mod judge;
mod reproduce;
mod machine;
mod output;
mod exit_code;

fn main() -> std::process::ExitCode {
    let invocation = match settings::parse(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(stop) => return stop.report(),
    };
    exit_code::report(commands::execute(&invocation))
}
