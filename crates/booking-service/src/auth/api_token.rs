//! API tokens.

use std::fmt;

use service_kit::{
    credentials::{hash, random_secret, same},
    error::Error,
};
use sha2::{Digest, Sha256};

/// An API token: `PREFIX_` + 43 random characters + `_` + 8 characters of checksum, so that secret scanners can find
/// it by its prefix and rule out false alarms by the checksum.
pub struct ApiToken(String);

impl ApiToken {
    /// A new token.
    pub fn generate(prefix: &str) -> Result<Self, Error> {
        let secret = random_secret()?;
        let checksum = checksum(prefix, &secret);
        Ok(Self(format!("{prefix}_{secret}_{checksum}")))
    }

    /// The token of this text, or `None` when prefix or checksum are wrong.
    pub fn parse(prefix: &str, text: &str) -> Option<Self> {
        let (secret, sum) = text.strip_prefix(prefix)?.strip_prefix('_')?.rsplit_once('_')?;
        same(&checksum(prefix, secret), sum).then(|| Self(text.to_owned()))
    }

    /// Its hash, which is stored.
    pub fn hash(&self) -> Vec<u8> {
        hash(&self.0)
    }

    /// The token itself, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiToken([hidden])")
    }
}

fn checksum(prefix: &str, secret: &str) -> String {
    let digest = Sha256::new().chain_update(prefix).chain_update("_").chain_update(secret).finalize();
    format!("{:08x}", u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_carry_prefix_and_checksum() {
        let token = ApiToken::generate("club").unwrap();
        let text = token.reveal().to_owned();
        assert_eq!(text.len(), "club_".len() + 43 + 9);
        assert_eq!(ApiToken::parse("club", &text).unwrap().hash(), token.hash());
        assert!(ApiToken::parse("other", &text).is_none());
        let damaged = text.replacen(|c: char| c.is_ascii_digit(), "x", 1);
        assert!(damaged == text || ApiToken::parse("club", &damaged).is_none());
        assert!(!format!("{token:?}").contains(&text));
    }
}
