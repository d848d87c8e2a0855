//! The options of sign-in, and the provider that they describe.

mod options;
mod provider;
mod providers;
mod settings;

pub use self::{
    options::{SignInOptions, SignInPolicy},
    providers::ClientAuth,
    settings::{Addresses, GroupAtProvider, ProviderKind, ProviderSettings},
};
