//! The texts of pages, in each [`Language`]: one file of Project Fluent a language and crate.

use std::fmt;

use fluent_bundle::{FluentArgs, FluentResource, FluentValue, concurrent::FluentBundle};
use unic_langid::LanguageIdentifier;

use super::language::Language;

/// The texts of one crate, in the order of [`Language::ALL`].
pub type Sources = [&'static str; 2];

/// The texts of the pages that every service has.
pub const COMMON: Sources = [include_str!("../../locales/en.ftl"), include_str!("../../locales/ja.ftl")];

/// A value in a text.
pub type Argument<'a> = (&'static str, FluentValue<'a>);

/// All texts of a service.
pub struct Texts(Vec<FluentBundle<FluentResource>>);

impl Texts {
    /// The texts that every service has, and those of one service.
    pub fn new(own: &Sources) -> Self {
        Self(
            Language::ALL
                .iter()
                .zip(COMMON.iter().zip(own))
                .map(|(language, (common, own))| {
                    let identifier: LanguageIdentifier = language.code().parse().unwrap_or_default();
                    let mut bundle = FluentBundle::new_concurrent(vec![identifier]);
                    // They would surround each value, also in attributes and titles.
                    bundle.set_use_isolating(false);
                    for source in [*common, *own] {
                        // A test reads every file.
                        let resource =
                            FluentResource::try_new(source.to_owned()).unwrap_or_else(|(resource, _)| resource);
                        bundle.add_resource_overriding(resource);
                    }
                    bundle
                })
                .collect(),
        )
    }

    /// A text. One that is missing is shown as its key.
    pub fn get(&self, language: Language, key: &str, arguments: &[Argument<'_>]) -> String {
        self.find(language, key, arguments).unwrap_or_else(|| key.to_owned())
    }

    /// A text, if there is one.
    pub fn find(&self, language: Language, key: &str, arguments: &[Argument<'_>]) -> Option<String> {
        let bundle = self.0.get(language as usize)?;
        let pattern = bundle.get_message(key)?.value()?;
        let arguments: FluentArgs<'_> = arguments.iter().cloned().collect();
        Some(bundle.format_pattern(pattern, Some(&arguments), &mut Vec::new()).into_owned())
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Texts")
    }
}
