//! Runs the tour of README.md and the examples of docs/api.md.

use std::{fs, path::Path, process::Command};

use crate::{
    process::{Process, program},
    readme::readme,
};

/// The separator between the output of two blocks.
const MARK: &str = "--- next ---";

/// The code blocks of a page, and the expected last line of output of each, if there is one.
fn blocks(text: &str) -> Vec<(String, Option<String>)> {
    let blocks = text.split("\n```sh tour\n").skip(1).map(|rest| rest.split("\n```").next().unwrap().to_owned());
    blocks
        .map(|block| {
            let printed = block.lines().last().unwrap().strip_prefix("# prints ").map(str::to_owned);
            (block, printed)
        })
        .collect()
}

#[test]
fn the_tour_of_the_readme_goes_as_it_says() {
    let out = run(&readme());
    assert!(out.contains(r#""name":"alice""#) && out.contains(r#""place":"S517""#), "{out}");
    assert!(out.contains(r#""code":"room-conflict""#), "{out}");
}

/// Takes seconds: bash and curl run all examples of the page.
#[test]
fn the_examples_of_the_api_page_do_as_they_say() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api.md");
    run(&fs::read_to_string(page).unwrap());
}

/// Runs the code blocks of a page, and returns their output.
fn run(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    let url = format!("sqlite://{}", data.join("booking.sqlite3").display());
    let service = Process::start(&["--demo", "--database-url", &url]);
    let token = ["--database-url", &url, "token", "create", "--user", "alice", "--name", "tour", "--scope", "write"];
    let token = program(&token).output().unwrap();
    assert!(token.status.success(), "{token:?}");
    fs::write(data.join("tour.token"), token.stdout).unwrap();

    let blocks = blocks(text);
    assert!(blocks.len() >= 7, "the tour has {} stations", blocks.len());
    let mut all = String::new();
    // Twice, because the page says that it can be repeated.
    for _ in 0..2 {
        let blocks_alone: Vec<_> = blocks.iter().map(|(block, _)| block.as_str()).collect();
        let script = blocks_alone.join(&format!("\necho '{MARK}'\n"));
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &script])
            .current_dir(folder.path())
            .env("BOOKING", format!("http://{}", service.address))
            .env_remove("http_proxy")
            .output()
            .unwrap();
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success() && err.is_empty(), "{out}\n{err}");
        let printed: Vec<_> = out.split(MARK).collect();
        for ((block, expected), printed) in blocks.iter().zip(&printed) {
            assert!(!printed.trim().is_empty(), "prints nothing: {block}");
            if let Some(expected) = expected {
                assert_eq!(printed.trim().lines().last().unwrap(), expected, "{block}\nprinted {printed}");
            }
        }
        all.push_str(&out);
    }
    all
}
