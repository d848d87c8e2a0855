//! The examples for front-end teams compile and run against both services.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::{
    booking::{Booking, CORS_ORIGIN},
    harness::{BOB, Backend, Club},
    real_issuer::real::node_in,
};

fn docs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Runs a command that must succeed, and returns its output.
#[track_caller]
fn run(command: &mut Command) -> String {
    let done = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(done.stdout), text(done.stderr));
    assert!(done.status.success(), "{command:?}\n{out}\n{err}");
    out
}

/// Takes seconds: the TypeScript compiler checks all examples.
#[test]
fn the_examples_compile_and_run() {
    // Below the packages, where Node and TypeScript look for them.
    let node = || node_in("real-examples");
    let packages = node().get_current_dir().unwrap().to_owned();
    let folder = tempfile::Builder::new().prefix("run-").tempdir_in(&packages).unwrap();
    for file in fs::read_dir(docs().join("examples")).unwrap().map(Result::unwrap) {
        if file.file_type().unwrap().is_file() {
            fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
    }
    let node = || {
        let mut command = node();
        command.current_dir(folder.path());
        command
    };
    let program = |path: &str| packages.join("node_modules").join(path);
    // Runs in parallel, because it mostly waits.
    let mut unit = node();
    let unit = unit.args(["--test", "client.test.ts"]).stdout(Stdio::piped()).spawn().unwrap();
    for service in ["booking", "portfolio"] {
        let mut command = node();
        command.arg(program("openapi-typescript/bin/cli.js"));
        run(command
            .arg(docs().join(format!("openapi/{service}.json")))
            .args(["-o", &format!("generated/{service}.d.ts")]));
    }
    run(node().arg(program("typescript/bin/tsc")));
    let done = unit.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));

    let booking = Booking::start();
    // For the import of rooms.
    booking.run_command(&["user", "grant-privilege", BOB]);
    let mut tour = node();
    tour.env("ORIGIN", format!("http://{}", booking.address)).env("TOKEN", booking.bobs_token());
    let said = run(tour.arg("booking.ts"));
    assert!(said.contains(&format!("I am {BOB}\n")) && said.ends_with("and gave it all back\n"), "{said}");

    let club = Club::start(Backend::Sqlite);
    let mut vite = node();
    vite.env("BOOKING", format!("http://{}", booking.address)).env("CORS_ORIGIN", CORS_ORIGIN).env("USER_NAME", BOB);
    run(vite.env("PORTFOLIO", club.origin(0)).args(["--test", "vite.test.ts"]));

    let said = run(node().env("ORIGIN", club.origin(0)).env("USER_NAME", BOB).arg("portfolio.ts"));
    assert!(said.contains(&format!("I am {BOB}\n")) && said.ends_with("and deleted a project\n"), "{said}");
}
