//! Cento: a corpus in, citable context out.

#[macro_use]
mod output;
mod args;
mod settings;
mod options;
mod usage;
mod policy_file;
mod commands;
mod judge;
mod interrupt;
mod exit_code;

fn main() -> std::process::ExitCode {
    // A child looks at no settings and starts no thread; and it starts sooner than the command line is put together.
    if std::env::args_os().skip(1).eq([args::READ]) {
        return exit_code::report(commands::read());
    }
    let invocation = match settings::parse(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(stop) => return stop.report(),
    };
    exit_code::report(commands::execute(&invocation))
}
