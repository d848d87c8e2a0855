//! Verification of signatures with `ring`, which TLS depends on anyway. The service signs no tokens.

use jsonwebtoken::{
    Algorithm, DecodingKey,
    crypto::{CryptoProvider, JwtVerifier, KeyUtils},
    errors::{Error, ErrorKind},
};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use signature::Verifier;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: |algorithm, key| Ok(Box::new(RingVerifier::new(*algorithm, key.clone())?)),
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes `jsonwebtoken` verify with `ring`. Another call in the same process changes nothing.
pub(crate) fn install() {
    let _ = PROVIDER.install_default();
}

enum Kind {
    Rsa(&'static RsaParameters),
    Other(&'static dyn VerificationAlgorithm),
}

struct RingVerifier {
    algorithm: Algorithm,
    kind: Kind,
    key: DecodingKey,
}

impl RingVerifier {
    fn new(algorithm: Algorithm, key: DecodingKey) -> Result<Self, Error> {
        let kind = match algorithm {
            Algorithm::RS256 => Kind::Rsa(&RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => Kind::Rsa(&RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => Kind::Rsa(&RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => Kind::Rsa(&RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => Kind::Rsa(&RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => Kind::Rsa(&RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => Kind::Other(&ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => Kind::Other(&ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDSA => Kind::Other(&ED25519),
            // Algorithms with a shared secret, and any new ones.
            _ => return Err(ErrorKind::UnsupportedAlgorithm.into()),
        };
        if key.family() != algorithm.family() {
            return Err(ErrorKind::InvalidKeyFormat.into());
        }
        Ok(Self { algorithm, kind, key })
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        use jsonwebtoken::DecodingKeyKind::{RsaModulusExponent, SecretOrDer};

        let result = match (&self.kind, self.key.kind()) {
            (Kind::Rsa(parameters), RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Kind::Other(algorithm), SecretOrDer(key)) => {
                UnparsedPublicKey::new(*algorithm, key).verify(message, signature)
            }
            _ => return Err(signature::Error::new()),
        };
        result.map_err(|_| signature::Error::new())
    }
}
