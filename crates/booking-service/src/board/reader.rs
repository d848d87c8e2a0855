//! Who may see the board: any signed-in user, and a screen with a kiosk token in the address.

use actix_web::HttpRequest;
use common::problem::{Problem, code};
use service_kit::{
    database::AnyConnection,
    error::Error,
    guard::{Access, Authenticator, Guard, Identified},
};

use crate::auth::{Caller, Credential, Scope, UserAuth, kiosk_token};

/// Guard: any signed-in user, and a token of scope `board`.
pub type BoardReader = Guard<BoardAuth>;

/// Authenticates readers of the board.
pub struct BoardAuth {
    user: UserAuth<false>,
    is_kiosk: bool,
}

impl Authenticator for BoardAuth {
    type Caller = Caller;

    async fn from_request(req: &HttpRequest) -> Result<Self, Problem> {
        let Some(token) = kiosk_token(req) else {
            return Ok(Self { user: UserAuth::from_request(req).await?, is_kiosk: false });
        };
        Ok(Self { user: UserAuth::new(req, Credential::Bearer(token))?, is_kiosk: true })
    }

    fn identify(&self, conn: &mut AnyConnection) -> Result<Identified<Caller>, Error> {
        self.user.identify(conn)
    }

    /// An address is stored and shown in many places, so no token that can do more works there.
    fn authorize(&self, conn: &mut AnyConnection, caller: &Caller, access: Access) -> Result<(), Error> {
        match (access, caller.scope, self.is_kiosk) {
            (Access::Read, Scope::Board, _) => Ok(()),
            (_, _, true) => Err(Problem::new(code::INSUFFICIENT_SCOPE)
                .detail("`kiosk` takes only a token of scope `board`.")
                .into()),
            _ => self.user.authorize(conn, caller, access),
        }
    }

    fn credential(&self) -> Option<&str> {
        self.user.credential()
    }

    fn record_use(&self, caller: &Caller) {
        self.user.record_use(caller);
    }
}
