//! README.md lists every option as it is.

use std::{fs, path::Path};

use booking_service::config::Cli;
use clap::{Arg, ArgAction, CommandFactory};

use crate::openapi::pinned;

/// The text of README.md.
pub fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap()
}

const BEGIN: &str = "<!-- options: begin -->\n";
const END: &str = "<!-- options: end -->\n";

fn row(option: &Arg) -> String {
    let mut flag = format!("--{}", option.get_long().unwrap());
    let is_flag = matches!(option.get_action(), ArgAction::SetTrue);
    if let Some([name, ..]) = option.get_value_names().filter(|_| !is_flag) {
        flag = format!("{flag} {name}");
    }
    let help = option.get_help().unwrap().to_string().replace('\n', " ");
    // Defaults that clap does not know stand at the end of the help.
    let (mut help, default) = match help.split_once(" [default: ") {
        Some((help, default)) => (help.to_owned(), default.trim_end_matches(['.', ']']).trim_matches('`').to_owned()),
        None if is_flag => (help, String::new()),
        None => (help, option.get_default_values().iter().map(|value| value.to_str().unwrap()).collect()),
    };
    let words: Vec<_> = option.get_possible_values().iter().map(|word| format!("`{}`", word.get_name())).collect();
    if !words.is_empty() && !is_flag {
        help = format!("{} ({})", help.trim_end_matches('.'), words.join(", "));
    }
    let default = if default.is_empty() || default.contains(' ') { default } else { format!("`{default}`") };
    let env = option.get_env().unwrap().to_str().unwrap();
    format!("| `{flag}` | `{env}` | {default} | {} |\n", help.trim_end_matches('.').replace('|', "\\|"))
}

fn table() -> String {
    let mut table = String::from("| flag | environment | default | meaning |\n| --- | --- | --- | --- |\n");
    let mut heading = None;
    for option in Cli::command().get_arguments().filter(|option| option.get_env().is_some()) {
        if option.get_help_heading() != heading.as_deref() {
            heading = option.get_help_heading().map(str::to_owned);
            table.extend(["| **", heading.as_deref().unwrap_or_default(), "** | | | |\n"]);
        }
        table += &row(option);
    }
    table
}

#[test]
fn the_table_of_options_is_the_command_line_s() {
    let readme = readme();
    let (before, rest) = readme.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    pinned("README.md", &format!("{before}{BEGIN}{}{END}{after}", table()));
}
