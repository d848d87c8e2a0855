//! The documentation: docs/configuration.md lists every option, docs/adding-an-endpoint.md shows a real handler, and no
//! link is broken.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use booking_service::config::Cli;
use clap::CommandFactory;

use crate::openapi::{pinned, pinned_part};

#[path = "../../../service-kit/tests/shared/options_table.rs"]
mod options_table;
use self::options_table::options_table;

/// The root folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The text of README.md.
pub fn readme() -> String {
    fs::read_to_string(root().join("README.md")).unwrap()
}

#[test]
fn the_table_of_options_is_the_command_line_s() {
    pinned_part("docs/configuration.md", "options of both services", &options_table(&Cli::command(), true));
    pinned_part("docs/configuration.md", "options of booking-service", &options_table(&Cli::command(), false));
}

/// README.md, deploy/README.md and every page below docs/.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md"), root().join("deploy/README.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() && !entry.ends_with("node_modules") {
                folders.push(entry);
            } else if entry.extension().is_some_and(|ending| ending == "md") {
                pages.push(entry);
            }
        }
    }
    pages
}

/// The lines of a page that are not in a code block.
fn prose(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let mut is_code = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push(line.to_owned());
        }
    }
    assert!(!is_code, "{}: a code block does not end", page.display());
    lines
}

/// A line's code spans, and the line without them.
fn code_spans(line: &str) -> (Vec<&str>, String) {
    let parts = || line.split('`').enumerate();
    let spans = parts().filter(|(n, _)| n % 2 == 1).map(|(_, span)| span).collect();
    (spans, parts().filter(|(n, _)| n % 2 == 0).map(|(_, text)| text).collect())
}

/// The fragments of links to the headings of a page, as GitHub generates them.
fn fragments(page: &Path) -> BTreeSet<String> {
    let headings = prose(page).into_iter().filter(|line| line.starts_with('#'));
    let fragment = |heading: String| {
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        text.chars().filter(kept).collect::<String>().replace(' ', "-")
    };
    headings.map(fragment).collect()
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let mut links = 0;
    let mut broken = Vec::new();
    for page in pages() {
        let text: String = prose(&page).iter().map(|line| code_spans(line).1 + "\n").collect();
        for target in text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            if target.contains("://") {
                continue;
            }
            links += 1;
            let (file, fragment) = target.split_once('#').map_or((target, None), |(file, name)| (file, Some(name)));
            let path = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            if !path.exists() || fragment.is_some_and(|name| !fragments(&path).contains(name)) {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(links > 40, "only {links} links were found");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_path_of_the_repository_that_a_page_names_exists() {
    let mut paths = 0;
    let mut missing = Vec::new();
    for page in pages() {
        for line in prose(&page) {
            for path in code_spans(&line).0.into_iter().filter_map(|span| span.split_whitespace().next()) {
                let folder = path.split('/').next().unwrap();
                if ["crates", "deploy", "docs", "scripts"].contains(&folder) && path.contains('/') {
                    paths += 1;
                    if !root().join(path).exists() {
                        missing.push(format!("{}: {path}", page.display()));
                    }
                }
            }
        }
    }
    assert!(paths > 20, "only {paths} paths were found");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// A function of a file with its attributes and documentation, indented as in the guide.
fn sample(file: &str, function: &str) -> String {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let name = text.find(&format!("fn {function}(")).unwrap_or_else(|| panic!("{file} has no {function}"));
    let begin = text[..name].rfind("\n\n").unwrap() + 2;
    let end = name + text[name..].find("\n}\n").unwrap() + 3;
    text[begin..end].lines().flat_map(|line| ["   ", line, "\n"]).collect()
}

#[test]
fn the_handlers_of_the_guide_are_real_ones() {
    const GUIDE: &str = "docs/adding-an-endpoint.md";
    const MARK: &str = "   <!-- from ";
    let page = fs::read_to_string(root().join(GUIDE)).unwrap();
    let mut parts = page.split(MARK);
    let mut expected = parts.next().unwrap().to_owned();
    for part in parts {
        let (source, rest) = part.split_once(" -->\n   ```rust\n").expect("a sample follows the mark");
        let (_, rest) = rest.split_once("   ```\n").unwrap();
        let (file, function) = source.split_once(": ").unwrap();
        expected.extend([MARK, source, " -->\n   ```rust\n", &sample(file, function), "   ```\n", rest]);
    }
    assert_eq!(page.matches("```rust\n").count(), page.matches(MARK).count(), "every sample says where it is from");
    pinned(GUIDE, &expected);
}
