//! Webhooks as the reference libraries of Standard Webhooks and the receiver of docs/webhooks.md take them.
//! `scripts/real-components node python` has to have run before.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    builders::{merge, text},
    harness::{ALICE, Backend, Club},
    real_sign_in::real::node,
    receiver::{Arrived, Receiver},
    webhooks::body,
};

/// The headers of a delivery, as an object.
fn headers(arrived: &Arrived) -> Value {
    let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    names.iter().map(|name| ((*name).to_owned(), json!(arrived.header(name).unwrap()))).collect()
}

#[test]
fn the_reference_libraries_accept_the_signatures() {
    let (club, receiver) = (Club::start(Backend::Sqlite), Receiver::start());
    let made = club.by(ALICE).post("/api/webhooks", body(&receiver.address)).expect(201);
    let path = made.header("location").unwrap().to_owned();
    let first = text(&made.json()["secret"]);
    let second = text(&club.by(ALICE).post(&format!("{path}/secret"), json!({})).expect(200).json()["secret"]);
    club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
    let arrived = receiver.wait_for(1).remove(0);
    let python = "import os, json, standardwebhooks as s\n\
        s.Webhook(os.environ['SECRET']).verify(os.environ['BODY'], json.loads(os.environ['HEADERS']))";
    let javascript = "import { Webhook } from 'standardwebhooks';\n\
        new Webhook(process.env.SECRET).verify(process.env.BODY, JSON.parse(process.env.HEADERS));";
    let wrong = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    for (secret, is_right) in [(first.as_str(), true), (&second, true), (wrong, false)] {
        let packages = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("real-python");
        assert!(packages.exists(), "{} is not there: run scripts/real-components", packages.display());
        let mut by_python = Command::new("python3");
        by_python.args(["-c", python]).env("PYTHONPATH", packages);
        for command in [&mut by_python, &mut node(javascript)] {
            let command = command.env("SECRET", secret).env("BODY", &arrived.body);
            let done = command.env("HEADERS", headers(&arrived).to_string()).output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.success(), is_right, "{said}");
            assert!(is_right || said.contains("WebhookVerificationError"), "{said}");
        }
    }
}

#[test]
fn the_receiver_of_the_documentation_receives() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/webhooks.md")).unwrap();
    let program = page.split("```js\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(program.lines().count() <= 30, "{} lines", program.lines().count());
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let mut process = node(program).env("SECRET", secret).env("PORT", "0").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let ready = lines.next().unwrap();
    let address = format!("http://127.0.0.1:{}", ready.rsplit(' ').next().unwrap());
    let club = Club::start(Backend::Sqlite);
    let create = |more: Value| {
        let made = club.by(ALICE).post("/api/webhooks", merge([body(&address), more])).expect(201);
        let path = made.header("location").unwrap().to_owned();
        club.by(ALICE).post(&format!("{path}/test"), json!({})).expect(201);
        path
    };
    let path = create(json!({"secret": secret}));
    assert_eq!(lines.next().unwrap(), format!("test {}", path.rsplit('/').next().unwrap()));
    let delivery = |path: &str| club.by(ALICE).get(&format!("{path}/deliveries")).expect(200).json()[0].clone();
    crate::process::until("it is noted", || delivery(&path)["status"] == "delivered");
    let other = create(json!({"name": "with another secret"}));
    crate::process::until("it is refused", || delivery(&other)["answerStatus"] == 401);
    process.kill().unwrap();
    process.wait().unwrap();
}
