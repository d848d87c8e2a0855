//! The options of a program as documentation. The tests of both services include this file by its path.

/// The options of a program as a Markdown table: flag, environment variable, default, meaning. `docs/configuration.md`
/// has one for each service, and a test compares them.
pub fn options_table(program: &clap::Command) -> String {
    let mut table = String::from("| flag | environment | default | meaning |\n| --- | --- | --- | --- |\n");
    let mut heading = None;
    for option in program.get_arguments() {
        let (Some(flag), Some(variable)) = (option.get_long(), option.get_env().and_then(|name| name.to_str())) else {
            continue;
        };
        if option.get_help_heading() != heading {
            heading = option.get_help_heading();
            table.extend(["| **", heading.unwrap_or_default(), "** | | | |\n"]);
        }
        let is_flag = matches!(option.get_action(), clap::ArgAction::SetTrue);
        let mut flag = format!("--{flag}");
        if let Some([name, ..]) = option.get_value_names().filter(|_| !is_flag) {
            flag = format!("{flag} {name}");
        }
        let help = option.get_help().map(|help| help.to_string().replace('\n', " ")).unwrap_or_default();
        // Defaults that are not clap's are at the end of the help.
        let (mut help, default) = match help.split_once(" [default: ") {
            Some((help, default)) => {
                (help.to_owned(), default.trim_end_matches(['.', ']']).trim_matches('`').to_owned())
            }
            None if is_flag => (help, String::new()),
            None => (help, option.get_default_values().iter().filter_map(|value| value.to_str()).collect()),
        };
        let words: Vec<_> = option.get_possible_values().iter().map(|word| format!("`{}`", word.get_name())).collect();
        if !words.is_empty() && !is_flag {
            help = format!("{} ({})", help.trim_end_matches('.'), words.join(", "));
        }
        let default = if default.is_empty() || default.contains(' ') { default } else { format!("`{default}`") };
        let help = help.trim_end_matches('.').replace('|', "\\|");
        table.extend(["| `", &flag, "` | `", variable, "` | ", &default, " | ", &help, " |\n"]);
    }
    table
}
