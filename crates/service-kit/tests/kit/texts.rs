//! The texts of the pages: each is there in every language, and each that a page names is there.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use fluent_bundle::FluentResource;
use service_kit::http::Language;

/// The crates with pages. The first has texts for the others.
const CRATES: [&str; 3] = ["service-kit", "booking-service", "portfolio-service"];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn source(name: &str, language: Language) -> String {
    fs::read_to_string(folder(name).join("locales").join(format!("{}.ftl", language.code()))).unwrap()
}

/// The keys of a file, each with the values in its text.
fn texts(source: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::new();
    let mut last = String::new();
    for line in source.lines().filter(|line| !line.starts_with('#')) {
        if let Some((key, _)) = line.split_once(" =").filter(|_| line.starts_with(|c: char| c.is_ascii_alphabetic())) {
            assert!(found.insert(key.to_owned(), BTreeSet::new()).is_none(), "{key} is there twice");
            key.clone_into(&mut last);
        }
        let names = line.split('$').skip(1);
        let names = names.map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next().unwrap().to_owned());
        found.entry(last.clone()).or_default().extend(names);
    }
    found.remove("");
    found
}

/// The code of a crate.
fn code(folder: &Path) -> String {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| match path.extension() {
        _ if path.is_dir() => code(&path),
        Some(extension) if extension == "rs" => fs::read_to_string(&path).unwrap(),
        _ => String::new(),
    };
    entries.map(read).collect()
}

#[test]
fn every_language_has_every_text_with_the_same_values() {
    for name in CRATES {
        let [first, others @ ..] = Language::ALL;
        let expected = texts(&source(name, first));
        assert!(expected.len() > 2, "{name}");
        for language in others {
            assert_eq!(texts(&source(name, language)), expected, "{name}, {language:?}");
        }
        for language in Language::ALL {
            let faults = FluentResource::try_new(source(name, language)).err().map(|(_, faults)| faults);
            assert_eq!(faults, None, "{name}, {language:?}");
        }
    }
}

#[test]
fn every_text_that_a_page_names_is_there() {
    let common = texts(&source(CRATES[0], Language::English));
    for name in CRATES {
        let mut known = common.clone();
        known.extend(texts(&source(name, Language::English)));
        let (code, mut named) = (code(&folder(name).join("src")), 0);
        // What has the texts, and the closures that give them.
        let calls = ["visit", "page", "context", "self"]
            .map(|of| ["text", "format", "count"].map(|call| format!("{of}.{call}(\"")));
        let closures = ["(text(\"", "&text(\""].map(str::to_owned);
        for call in calls.iter().flatten().chain(&closures) {
            for rest in code.split(call.as_str()).skip(1) {
                let key = rest.split('"').next().unwrap();
                // Other functions called `text` read columns and members.
                let is_plain = key.bytes().all(|c| c.is_ascii_lowercase() || c == b'-');
                let is_key = call.contains('.') || (is_plain && key.contains('-'));
                assert!(!is_key || known.contains_key(key), "{name} has no text {key:?}");
                named += usize::from(is_key);
            }
        }
        assert!(named > 0, "{name}");
    }
}
