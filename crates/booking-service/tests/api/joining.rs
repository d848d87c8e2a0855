//! Who becomes a member by signing in, and what they are called: the rules, and providers as their documentation
//! describes them.

use std::fs;

use booking_service::{config::Cli, schema::users};
use clap::Parser;
use club_sign_in::config::ProviderKind;
use diesel::prelude::*;
use serde_json::{Value, json};
use service_kit::database::types::DbUuid;

use crate::{
    harness::{ALICE, BOB, Backend, Club, id},
    issuer::{CLIENT, Fault, Issuer, PUBLIC, SECRET, TOKEN, USER, start},
    provider::signed_in,
    sign_in::{Browser, HTML, both, sign_in},
};

fn name_of(club: &Club, user: DbUuid) -> String {
    users::table.find(user).select(users::name).first(&mut club.connect()).unwrap()
}

fn refused(club: &Club, issuer: &Issuer) {
    let mut browser = Browser::new(club);
    sign_in(&mut browser, issuer).refused(403, "not-a-member");
    assert_eq!(browser.cookies(), [""; 0]);
}

/// The options of a named provider at the stub.
fn named(issuer: &Issuer, provider: &str, addresses: &[(&str, &str)]) -> Vec<String> {
    let mut options = vec!["--provider".to_owned(), provider.to_owned(), "--public-url".to_owned(), PUBLIC.to_owned()];
    options.extend(["--oauth-client-id", CLIENT, "--oauth-client-secret", SECRET].map(str::to_owned));
    options.extend(addresses.iter().flat_map(|(name, path)| [(*name).to_owned(), format!("{}{path}", issuer.address)]));
    options
}

fn open_id(issuer: &Issuer, provider: &str) -> Vec<String> {
    named(issuer, provider, &[("--oidc-issuer", "")])
}

fn plain(issuer: &Issuer, provider: &str) -> Vec<String> {
    let addresses = [("--oauth-authorize-url", "/authorize"), ("--oauth-token-url", TOKEN), ("--oauth-user-url", USER)];
    named(issuer, provider, &addresses)
}

#[test]
fn a_name_that_is_none_is_made_into_one() {
    both(|backend| {
        let issuer = Issuer::start();
        let club = issuer.club(backend);
        for (number, (name, expected)) in [
            (json!(null), "new-comer"),
            (json!(""), "new-comer"),
            (json!("  "), "member"),
            (json!("Zoé Q."), "zo--q"),
            (json!("x".repeat(33)), "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
            (json!("a\u{0}b"), "a-b"),
            (json!(5), "new-comer-"),
            (json!([BOB]), "new-comer-"),
            (json!({}), "new-comer-"),
        ]
        .into_iter()
        .enumerate()
        {
            let subject = format!("subject-{number}");
            issuer.set(|now| now.user = json!({"sub": subject, "preferred_username": name, "name": "New Comer"}));
            let user = signed_in(&club, &issuer);
            let made = name_of(&club, user);
            assert!(made.starts_with(expected) && made.len() <= 32, "{name}: {made}");
            assert_eq!(signed_in(&club, &issuer), user);
        }
        // A name to show that cannot be is no reason to refuse.
        issuer.set(|now| now.user = json!({"sub": "other", "preferred_username": "new", "name": "x\u{0}"}));
        assert_eq!(name_of(&club, signed_in(&club, &issuer)), "new");
    });
}

#[test]
fn an_id_is_made_of_issuer_and_subject() {
    let issuer = Issuer::start();
    let [one, other] = [(); 2].map(|()| issuer.club(Backend::Sqlite));
    issuer.set(|now| now.user = json!({"sub": "1234", "preferred_username": "new"}));
    let user = signed_in(&one, &issuer);
    assert_eq!(signed_in(&other, &issuer), user);
    assert_eq!(DbUuid(club_issuer::joining::id_of(&issuer.address, "1234")), user);
}

#[test]
fn a_made_name_is_no_proof() {
    // Whoever has an address that begins with a member's name is somebody else; so is whoever chooses it at a provider
    // where everybody may.
    both(|backend| {
        let issuer = Issuer::start();
        let club = issuer.club(backend);
        issuer.set(|now| now.user = json!({"sub": "evil", "email": "bob@evil.example", "email_verified": true}));
        let evil = signed_in(&club, &issuer);
        assert!(evil != id(BOB) && name_of(&club, evil).starts_with("bob-"));

        let issuer = Issuer::start();
        let club = start(backend, &plain(&issuer, "discord"), &["--sign-in", "anyone"]);
        issuer.set(|now| now.user = json!({"id": "80351110224678912", "username": BOB, "global_name": "Bob"}));
        let evil = signed_in(&club, &issuer);
        assert!(evil != id(BOB) && name_of(&club, evil).starts_with("bob-"));
    });
}

#[test]
fn the_directory_knows_people_by_verified_address() {
    both(|backend| {
        let issuer = Issuer::start();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("members.toml");
        let members = "[[users]]\nname = \"dora\"\nemail = \"Dora@Club.example\"\n[[users]]\nname = \"erik\"\n";
        fs::write(&file, members).unwrap();
        let club = start(backend, &open_id(&issuer, "google"), &["--directory-file", file.to_str().unwrap()]);
        // Google says no preferred_username.
        let google = |sub: &str, email: &str, verified: Value| {
            let user = json!({"sub": sub, "email": email, "email_verified": verified, "name": "Dora L."});
            issuer.set(|now| now.user = user);
        };
        for (email, verified) in [
            ("dora@club.example", json!(false)),
            ("dora@club.example", json!(null)),
            ("dora@club.example.evil", json!(true)),
            ("dora@other.example", json!(true)),
            ("erik@club.example", json!(true)),
        ] {
            google("1", email, verified);
            refused(&club, &issuer);
        }
        google("1", "DORA@club.example", json!(true));
        let dora = signed_in(&club, &issuer);
        assert_eq!(name_of(&club, dora), "dora");
        // The identity stays hers with another address, and nobody else gets it with this one.
        google("1", "dora@new.example", json!(true));
        assert_eq!(signed_in(&club, &issuer), dora);
        google("2", "dora@club.example", json!(true));
        sign_in(&mut Browser::new(&club), &issuer).refused(403, "name-taken");
    });
}

#[test]
fn with_a_directory_a_name_belongs_to_one_person() {
    let issuer = Issuer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("members.toml");
    fs::write(&file, "[[users]]\nname = \"dora\"\n").unwrap();
    let club = start(Backend::Sqlite, &issuer.options(), &["--directory-file", file.to_str().unwrap()]);
    issuer.is_now("subject-of-dora", "dora");
    assert_eq!(name_of(&club, signed_in(&club, &issuer)), "dora");
    issuer.is_now("another-subject", "dora");
    let mut other = Browser::new(&club);
    sign_in(&mut other, &issuer).refused(403, "name-taken");
    assert_eq!(other.cookies(), [""; 0]);
    let mut browser = Browser { accept: HTML, ..Browser::new(&club) };
    let page = sign_in(&mut browser, &issuer).expect(403).text();
    assert!(page.contains("belongs to another person") && page.contains("Sign in again"), "{page}");
    issuer.is_now("another-subject", "DORA");
    let problem = sign_in(&mut Browser::new(&club), &issuer).refused(403, "name-taken");
    assert!(problem["detail"].as_str().unwrap().contains("upper or lower case"), "{problem}");
}

#[test]
fn a_rule_makes_members_at_each_sign_in() {
    both(|backend| {
        let issuer = Issuer::start();
        let rules =
            ["--required-claim", "hd=club.example,groups=rooms", "--member-domains", "Clüb.example, uni.example"];
        let club = start(backend, &issuer.options(), &rules);
        let mut number = 0;
        let mut person = |claims: Value| {
            number += 1;
            issuer.is_now(&format!("subject-{number}"), &format!("name-{number}"));
            issuer.set(|now| now.claims = claims);
        };
        for claims in [
            json!({"hd": "club.example"}),
            json!({"groups": ["x", "rooms"]}),
            json!({"email": "a@xn--clb-ioa.example", "email_verified": true}),
            json!({"email": "b@UNI.example", "email_verified": true}),
        ] {
            person(claims);
            let user = signed_in(&club, &issuer);
            // Whoever no longer fulfils it is refused, and is the same person when it holds again.
            let claims = issuer.now.read().unwrap().claims.clone();
            issuer.set(|now| now.claims = json!({}));
            refused(&club, &issuer);
            issuer.set(|now| now.claims = claims);
            assert_eq!(signed_in(&club, &issuer), user);
        }
        for claims in [
            json!({}),
            json!({"hd": "club.example.evil"}),
            json!({"hd": {"club.example": false}}),
            json!({"groups": "x rooms"}),
            json!({"email": "a@uni.example"}),
            json!({"email": "a@uni.example", "email_verified": false}),
            json!({"email": "a@uni.example.evil", "email_verified": true}),
            json!({"email": "a@club.example", "email_verified": true}),
            json!({"email": "a@evil.example", "email_verified": true, "preferred_username": "a@uni.example"}),
        ] {
            person(claims);
            refused(&club, &issuer);
        }
    });
}

#[test]
fn discord_says_who_is_on_the_server_and_in_which_roles() {
    const MEMBER: &str = "/me/guilds/197038439483310086/member";
    both(|backend| {
        let issuer = Issuer::start();
        let rules = ["--discord-server", "197038439483310086", "--discord-roles", "41771983423143936,2"];
        let club = start(backend, &plain(&issuer, "discord"), &rules);
        issuer.set(|now| {
            now.user = json!({"id": "80351110224678912", "username": "nelly", "discriminator": "0",
                "global_name": "Nelly N.", "avatar": null, "email": "nelly@discord.example", "verified": true});
        });
        let member = |roles: Value| {
            issuer.set(|now| {
                now.more.insert(
                    MEMBER,
                    json!({"nick": "n", "roles": roles, "joined_at": "2026-04-26T06:26:56.936000+00:00"}),
                );
            });
        };
        refused(&club, &issuer);
        member(json!([]));
        refused(&club, &issuer);
        member(json!(["1", "41771983423143936"]));
        let user = signed_in(&club, &issuer);
        assert_eq!(name_of(&club, user), "nelly");
        let mut browser = Browser::new(&club);
        sign_in(&mut browser, &issuer).expect(302);
        assert_eq!(browser.get("/api/users/me").json()["displayName"], "Nelly N.");
        // Whoever loses the role loses access at the next sign-in.
        member(json!(["1"]));
        refused(&club, &issuer);
        // Whatever else the provider answers admits nobody.
        for fault in [
            Fault::Close,
            Fault::Html,
            Fault::Huge,
            Fault::Truncated,
            Fault::Redirect,
            Fault::Status(200, json!({})),
            Fault::Status(200, json!({"roles": "41771983423143936"})),
            Fault::Status(401, json!({"message": "401: Unauthorized", "code": 0})),
            Fault::Status(429, json!({"message": "You are being rate limited.", "retry_after": 64.57})),
            Fault::Status(500, json!({})),
        ] {
            issuer.set(|now| drop(now.faults.insert(MEMBER, fault.clone())));
            sign_in(&mut Browser::new(&club), &issuer).refused(503, "unavailable");
        }
        issuer.set(|now| drop(now.faults.insert(MEMBER, Fault::Status(403, json!({"message": "Missing Access"})))));
        refused(&club, &issuer);
    });
}

#[test]
fn github_has_members_of_organizations_and_private_addresses() {
    const MEMBERSHIP: &str = "/me/memberships/orgs/our-club";
    const EMAILS: &str = "/me/emails";
    both(|backend| {
        let issuer = Issuer::start();
        let rules = ["--github-organization", "our-club", "--member-domains", "club.example"];
        let club = start(backend, &plain(&issuer, "github"), &rules);
        issuer.set(|now| {
            now.user = json!({"login": "octocat", "id": 583_231, "name": "The Octocat", "email": "octo@club.example"});
            // The answer is a form, and the secret is in the body of the request.
            (now.answers_form, now.secret_in_body) = (true, true);
        });
        // The public address is no proof.
        refused(&club, &issuer);
        for (state, is_member) in [("pending", false), ("active", true)] {
            issuer.set(|now| drop(now.more.insert(MEMBERSHIP, json!({"state": state, "role": "member"}))));
            if is_member { assert_ne!(signed_in(&club, &issuer), id(ALICE)) } else { refused(&club, &issuer) }
        }
        issuer.set(|now| drop(now.more.remove(MEMBERSHIP)));
        refused(&club, &issuer);
        let emails = |primary: bool, verified: bool| {
            let own = json!({"email": "octo@club.example", "primary": primary, "verified": verified});
            json!([{"email": "octo@other.example", "primary": !primary, "verified": true}, own])
        };
        for (primary, verified, is_member) in [(false, true, false), (true, false, false), (true, true, true)] {
            issuer.set(|now| drop(now.more.insert(EMAILS, emails(primary, verified))));
            if is_member { assert_ne!(signed_in(&club, &issuer), id(ALICE)) } else { refused(&club, &issuer) }
        }
    });
}

#[test]
fn slack_microsoft_gitlab_and_line_sign_people_in() {
    for (provider, rules, is_plain, in_body, user, stranger, name) in [
        (
            "slack",
            vec!["--slack-workspace", "T0R7GR"],
            false,
            true,
            json!({"sub": "U0R7JM", "https://slack.com/team_id": "T0R7GR", "email": "krane@slack.example", "name": "krane"}),
            json!({"sub": "U0R7JN", "https://slack.com/team_id": "T0R7GX", "email": "krane@slack.example"}),
            "krane",
        ),
        (
            "microsoft",
            vec!["--microsoft-tenant", "9188040d-6c67-4c5b-b112-36a304b66dad"],
            false,
            false,
            json!({"sub": "AAAA", "tid": "9188040d-6c67-4c5b-b112-36a304b66dad", "preferred_username": "Abe@club.example"}),
            json!({"sub": "AAAB", "tid": "11111111-6c67-4c5b-b112-36a304b66dad", "preferred_username": "Abe@club.example"}),
            "abe",
        ),
        (
            "gitlab",
            vec!["--required-claim", "groups_direct=our-club"],
            false,
            false,
            json!({"sub": "1", "preferred_username": "tanuki", "groups_direct": ["our-club"]}),
            json!({"sub": "2", "preferred_username": "tanuki", "groups_direct": ["our-club/x"]}),
            "tanuki",
        ),
        (
            "line",
            vec!["--required-claim", "sub=U4af4980629"],
            true,
            true,
            json!({"sub": "U4af4980629", "name": "太郎"}),
            json!({"sub": "U4af4980620", "name": "太郎"}),
            "member",
        ),
    ] {
        let issuer = Issuer::start();
        let options = if is_plain { plain(&issuer, provider) } else { open_id(&issuer, provider) };
        let club = start(Backend::Sqlite, &options, &rules);
        issuer.set(|now| {
            now.secret_in_body = in_body;
            now.user = user;
        });
        let first = signed_in(&club, &issuer);
        assert_eq!(name_of(&club, first), name, "{provider}");
        issuer.set(|now| now.user = stranger);
        refused(&club, &issuer);
    }
}

#[test]
fn where_everybody_has_an_account_somebody_must_say_who_joins() {
    let faults = |options: &[&str]| {
        let given = ["booking-service", "--oauth-client-id", CLIENT, "--oauth-client-secret", SECRET];
        let more = ["--public-url", PUBLIC, "--secret-key", "a key of more than thirty-two characters"];
        let given = given.into_iter().chain(more).chain(options.iter().copied());
        Cli::try_parse_from(given).unwrap().config.faults().join("\n")
    };
    let microsoft = "9188040d-6c67-4c5b-b112-36a304b66dad";
    for (options, expected) in [
        (&["--provider", "google"][..], "everybody can have an account"),
        (&["--oidc-issuer", "https://accounts.google.com"], "everybody can have an account"),
        (&["--provider", "discord"], "--discord-server, --member-domains"),
        (&["--provider", "line"], "say --sign-in invited (people with an invitation) or --sign-in anyone"),
        (&["--provider", "microsoft"], "--provider microsoft needs --microsoft-tenant"),
        (&["--provider", "traq"], "--provider traq needs --traq-url"),
        (&["--provider", "google", "--discord-server", "1"], "--discord-server needs --provider discord"),
        (&["--provider", "discord", "--discord-roles", "1"], "--discord-roles needs --discord-server"),
        (&["--provider", "google", "--member-domains", "club"], "is no domain"),
        (&["--provider", "google", "--member-domains", "a.example", "--sign-in", "anyone"], "are both given"),
        (&["--provider", "google", "--sign-in", "directory"], "--sign-in directory needs"),
        (
            &["--oidc-issuer", "https://sso.example/.well-known/openid-configuration"],
            "the issuer is the address before",
        ),
        (&["--provider", "google", "--member-domains", "club.example"], ""),
        (&["--provider", "google", "--sign-in", "anyone"], ""),
        (&["--provider", "google", "--sign-in", "invited"], ""),
        (&["--provider", "discord", "--discord-server", "1", "--discord-roles", "2,3"], ""),
        (&["--provider", "microsoft", "--microsoft-tenant", microsoft], ""),
        (&["--oidc-issuer", "https://sso.example"], ""),
    ] {
        let found = faults(options);
        assert!(if expected.is_empty() { found.is_empty() } else { found.contains(expected) }, "{options:?}: {found}");
    }
}

#[test]
fn a_traq_server_has_its_addresses_below_its_api() {
    for url in ["https://traq.example/api/v3", "https://traq.example/api/v3/"] {
        let given = ["booking-service", "--provider", "traq", "--traq-url", url, "--traq-token", "a-token-of-traq"];
        let more = ["--oauth-client-id", CLIENT, "--public-url", PUBLIC, "--oauth-user-url", "https://traq.example/me"];
        let config = Cli::try_parse_from(given.into_iter().chain(more)).unwrap().config;
        let settings = config.provider().unwrap().unwrap();
        let ProviderKind::OAuth(addresses) = &settings.kind else { panic!("{settings:?}") };
        assert_eq!(addresses.authorize.as_str(), "https://traq.example/api/v3/oauth2/authorize");
        assert_eq!(addresses.token.as_str(), "https://traq.example/api/v3/oauth2/token");
        // A single option replaces a part.
        assert_eq!(addresses.user.as_str(), "https://traq.example/me");
        assert!(settings.trusts_names && settings.scopes == ["read"] && settings.id_claim == "id");
    }
}
