//! What invitations look like on the wire.

use chrono_tz::Tz;
use common::{
    problem::{Problem, Rule, Violations},
    time::Zoned,
};
use deserr::Deserr;
use serde::Serialize;
use service_kit::database::types::DbUuid;
use utoipa::ToSchema;

use super::queries::Invitation;

/// The most people who may join by one invitation.
const MAX_USES: u16 = 1000;

/// The most days for which an invitation is good.
const MAX_DAYS: u16 = 90;

/// A new invitation.
#[derive(Debug, Deserr, ToSchema)]
#[deserr(error = Violations)]
#[schema(example = json!({"uses": 20, "days": 7}))]
pub struct RequestInvitation {
    /// How many people may join by it.
    #[deserr(default)]
    #[schema(minimum = 1, maximum = 1000, default = 1)]
    uses: Option<u16>,
    /// After how many days it ends.
    #[deserr(default)]
    #[schema(minimum = 1, maximum = 90, default = 7)]
    days: Option<u16>,
    /// Whether whoever joins by it is privileged.
    #[deserr(default)]
    #[schema(default = false)]
    privileged: Option<bool>,
}

/// The properties of a new invitation.
#[derive(Debug, Clone, Copy)]
pub struct NewInvitation {
    /// How many people may join by it.
    pub uses: u16,
    /// After how many days it ends.
    pub days: u16,
    /// Whether whoever joins by it is privileged.
    pub privileged: bool,
}

impl NewInvitation {
    /// Checks the numbers.
    ///
    /// # Errors
    /// 400 for one that is too small or too large.
    pub fn checked(self) -> Result<Self, Problem> {
        let mut violations = Violations::default();
        for (pointer, number, most) in [("/uses", self.uses, MAX_USES), ("/days", self.days, MAX_DAYS)] {
            if !(1..=most).contains(&number) {
                violations.push(pointer, Rule::Range, format!("must be a number from 1 to {most}"));
            }
        }
        violations.into_result()?;
        Ok(self)
    }
}

impl From<RequestInvitation> for NewInvitation {
    fn from(RequestInvitation { uses, days, privileged }: RequestInvitation) -> Self {
        Self { uses: uses.unwrap_or(1), days: days.unwrap_or(7), privileged: privileged.unwrap_or(false) }
    }
}

/// An invitation as listed. Its link is shown once, when it is created.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(example = json!({
    "invitationId": "0198c0de-0000-7000-8000-000000000031", "uses": 20, "used": 3, "privileged": false,
    "createdBy": "f4626cad-abe0-5cf0-9f8a-af69cd254c29", "createdAt": "2026-04-01T18:00:00+09:00",
    "expiresAt": "2026-04-08T18:00:00+09:00"
}))]
pub struct ResponseInvitation {
    invitation_id: DbUuid,
    /// How many people may join by it.
    uses: i32,
    /// How many have joined.
    used: i32,
    /// Whether whoever joins by it is privileged.
    privileged: bool,
    /// The nil UUID for one of the command line.
    created_by: DbUuid,
    created_at: Zoned,
    expires_at: Zoned,
}

impl ResponseInvitation {
    /// An invitation with times in `zone`.
    pub fn new(invitation: &Invitation, zone: Tz) -> Self {
        Self {
            invitation_id: invitation.id,
            uses: invitation.uses,
            used: invitation.used,
            privileged: invitation.privileged,
            created_by: invitation.created_by.unwrap_or_else(DbUuid::nil),
            created_at: invitation.created_at.in_zone(zone),
            expires_at: invitation.expires_at.in_zone(zone),
        }
    }
}

/// A new invitation, with its link.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "invitationId": "0198c0de-0000-7000-8000-000000000031", "uses": 20, "used": 0, "privileged": false,
    "createdBy": "f4626cad-abe0-5cf0-9f8a-af69cd254c29", "createdAt": "2026-04-01T18:00:00+09:00",
    "expiresAt": "2026-04-08T18:00:00+09:00", "url": "https://rooms.club.example/join/…"
}))]
pub struct InvitationWithLink {
    #[serde(flatten)]
    pub(super) invitation: ResponseInvitation,
    /// Where whoever has it joins. It is not shown again.
    pub(super) url: String,
}
