//! The options of a program as documentation. The tests of both services include this file by its path.

/// The options of a service, or those that both services have alike, as a Markdown table: flag, default, meaning.
/// `docs/configuration.md` has these tables, and the tests of both services compare them.
pub fn options_table(program: &clap::Command, shared: bool) -> String {
    let mut table = String::from("| flag | default | meaning |\n| --- | --- | --- |\n");
    let mut heading = None;
    for option in program.get_arguments() {
        let (Some(flag), Some(variable)) = (option.get_long(), option.get_env().and_then(|name| name.to_str())) else {
            continue;
        };
        assert_eq!(variable, flag.to_uppercase().replace('-', "_"), "as the page says");
        let is_shared = matches!(
            option.get_help_heading(),
            Some("Key" | "Server" | "Pages" | "Database" | "Directory" | "Sign-in")
        );
        // The defaults of these two differ.
        if (is_shared && !matches!(flag, "bind" | "database-url")) != shared {
            continue;
        }
        if option.get_help_heading() != heading {
            heading = option.get_help_heading();
            table.extend(["| **", heading.unwrap_or_default(), "** | | |\n"]);
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
                let default = default.trim_end_matches(['.', ']']);
                let alone = default.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
                (help.to_owned(), alone.filter(|text| !text.contains('`')).unwrap_or(default).to_owned())
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
        table.extend(["| `", &flag, "` | ", &default, " | ", &help, " |\n"]);
    }
    table
}
