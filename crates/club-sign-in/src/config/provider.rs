//! The sign-in provider that the options describe.

use clap::ValueEnum;
use club_issuer::{
    ClaimValue,
    joining::{JoinRules, comparable_domain},
};
use common::address::is_safe;
use service_kit::config::{SecretOption, ServerOptions};
use url::Url;

use super::{
    options::{SignInOptions, SignInPolicy},
    providers::{OPEN_ID, PLAIN, Place, Preset, ProviderName, is_public},
    settings::{Addresses, GroupAtProvider, ProviderKind, ProviderSettings},
};

/// The path of an issuer's metadata (OpenID Connect Discovery 1.0, section 4).
const METADATA: &str = "/.well-known/openid-configuration";
impl SignInOptions {
    /// The options of the client secret.
    pub fn client_secret(&self) -> SecretOption<'_> {
        SecretOption("oauth-client-secret", self.oauth_client_secret.as_ref(), self.oauth_client_secret_file.as_deref())
    }

    /// The configured provider, if there is one. `traq` is the API of the club's traQ server, `callback` the path to which
    /// the provider redirects browsers.
    pub fn provider(
        &self,
        server: &ServerOptions,
        traq: Option<&Url>,
        callback: &str,
    ) -> Result<Option<ProviderSettings>, Vec<String>> {
        let mut faults = self.misplaced();
        let addresses = self.addresses(traq);
        let kind = self.kind(&addresses, &mut faults);
        if kind.is_none() && faults.is_empty() {
            return if self.has_client_options() {
                let fault = "the options of the provider need --provider, --oidc-issuer, or --oauth-authorize-url, \
                             --oauth-token-url and --oauth-user-url";
                Err(vec![fault.to_owned()])
            } else {
                Ok(None)
            };
        }
        let client_secret = self.client_secret().resolve().unwrap_or_else(|fault| {
            faults.push(fault);
            None
        });
        if self.oauth_client_auth.is_some() && client_secret.is_none() {
            faults.push("--oauth-client-auth needs a client secret".to_owned());
        }
        let is_open_id = matches!(kind, Some(ProviderKind::OpenId { .. }));
        if !is_open_id && !self.oidc_trusted_audiences.is_empty() {
            faults.push("--oidc-trusted-audiences needs --oidc-issuer".to_owned());
        }
        if self.oauth_client_id.is_none() {
            faults.push("--oauth-client-id is needed to sign in with a provider".to_owned());
        }
        let redirect_url = self.redirect(server, callback, &mut faults);
        let (preset, group, rules) = (self.preset(), self.group(), self.rules(&mut faults));
        let text = |option: &Option<String>, of_preset: &str| option.clone().unwrap_or_else(|| of_preset.to_owned());
        let scopes = text(&self.oauth_scopes, preset.scopes);
        let mut scopes: Vec<_> = scopes.split_whitespace().map(str::to_owned).collect();
        if is_open_id && !scopes.iter().any(|scope| scope == "openid") {
            faults.push("--oauth-scopes must contain openid with --oidc-issuer".to_owned());
        }
        if !rules.domains.is_empty() && is_open_id && !scopes.iter().any(|scope| scope == "email") {
            scopes.push("email".to_owned());
        }
        let for_group = group.as_ref().map(|group| match group {
            GroupAtProvider::DiscordServer(..) => "guilds.members.read".to_owned(),
            GroupAtProvider::GithubOrganization(_) => "read:org".to_owned(),
        });
        scopes.extend(for_group);
        match (kind, &self.oauth_client_id, redirect_url) {
            (Some(kind), Some(client_id), Some(redirect_url)) if faults.is_empty() => Ok(Some(ProviderSettings {
                kind,
                client_id: client_id.clone(),
                client_secret,
                client_auth: self.oauth_client_auth.or(preset.client_auth),
                trusted_audiences: self.oidc_trusted_audiences.clone(),
                privileged_claim: self.privileged_claim.clone(),
                scopes,
                name_claim: text(&self.oauth_name_claim, preset.name_claim),
                id_claim: text(&self.oauth_id_claim, preset.id_claim),
                verified_claim: preset.verified_claim.to_owned(),
                trusts_names: matches!(self.provider, None | Some(ProviderName::Traq)) && !self.is_public(&addresses),
                rules,
                group,
                has_addresses: self.provider == Some(ProviderName::Github),
                redirect_url,
            })),
            _ => Err(faults),
        }
    }

    /// Whether a rule says who is a member.
    pub fn has_rules(&self) -> bool {
        !self.required_claim.is_empty()
            || !self.member_domains.is_empty()
            || self.slack_workspace.is_some()
            || self.microsoft_tenant.is_some()
            || self.group().is_some()
    }

    /// Who becomes a member by signing in.
    pub fn policy(&self, has_directory: bool) -> SignInPolicy {
        let is_restricted = has_directory || self.has_rules();
        self.sign_in.unwrap_or(if is_restricted { SignInPolicy::Directory } else { SignInPolicy::Anyone })
    }

    /// The errors in the options that say who becomes a member, one line each.
    pub fn policy_faults(&self, has_directory: bool, traq: Option<&Url>) -> Vec<String> {
        let mut faults = Vec::new();
        if self.sign_in == Some(SignInPolicy::Directory) && !has_directory && !self.has_rules() {
            let fault = "--sign-in directory needs --directory-file or --traq-url; without either, --sign-in invited admits \
                         only people with an invitation";
            faults.push(fault.to_owned());
        }
        if self.sign_in == Some(SignInPolicy::Anyone) && self.has_rules() {
            faults.push("--sign-in anyone and a rule on who may become a member are both given".to_owned());
        }
        if self.sign_in.is_none() && self.policy(has_directory) == SignInPolicy::Anyone {
            faults.extend(self.unrestricted(traq));
        }
        faults
    }

    /// The warning that everybody with an account of the provider becomes a member, unless that was said.
    pub fn policy_warning(&self, has_directory: bool) -> Option<String> {
        let is_default = self.sign_in.is_none() && self.policy(has_directory) == SignInPolicy::Anyone;
        is_default.then(|| {
            "without a directory, everybody with an account of the provider becomes a member by signing in; \
             --sign-in anyone says that this is meant"
                .to_owned()
        })
    }

    /// The error of a policy that nobody has chosen knowingly: everybody in the world could become a member.
    fn unrestricted(&self, traq: Option<&Url>) -> Option<String> {
        self.is_public(&self.addresses(traq)).then(|| {
            let own = self.preset().restrictions.iter().map(|option| format!("{option}, "));
            format!(
                "everybody can have an account of this provider: say who may become a member by {}--member-domains, \
                 --required-claim or --directory-file, or say --sign-in invited (people with an invitation) or --sign-in \
                 anyone",
                own.collect::<String>()
            )
        })
    }

    /// The rules by claims.
    fn rules(&self, faults: &mut Vec<String>) -> JoinRules {
        let mut domains = Vec::new();
        for domain in &self.member_domains {
            match comparable_domain(domain.trim()) {
                Some(domain) => domains.push(domain),
                None => faults.push(format!("--member-domains: {domain:?} is no domain")),
            }
        }
        let of_workspace = self.slack_workspace.iter().map(|id| ClaimValue::new("https://slack.com/team_id", id));
        // The issuer is of this organization alone, and its tokens say so again.
        let of_tenant = self.microsoft_tenant.iter().map(|id| ClaimValue::new("tid", id));
        JoinRules {
            claims: self.required_claim.iter().cloned().chain(of_workspace).chain(of_tenant).collect(),
            domains,
        }
    }

    fn group(&self) -> Option<GroupAtProvider> {
        let discord =
            self.discord_server.clone().map(|id| GroupAtProvider::DiscordServer(id, self.discord_roles.clone()));
        discord.or_else(|| self.github_organization.clone().map(GroupAtProvider::GithubOrganization))
    }

    /// Options of a provider that is not the configured one, or that need another one.
    fn misplaced(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (option, is_given, name) in [
            ("--microsoft-tenant", self.microsoft_tenant.is_some(), ProviderName::Microsoft),
            ("--discord-server", self.discord_server.is_some(), ProviderName::Discord),
            ("--github-organization", self.github_organization.is_some(), ProviderName::Github),
            ("--slack-workspace", self.slack_workspace.is_some(), ProviderName::Slack),
        ] {
            if is_given && self.provider != Some(name) {
                let name = name.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
                faults.push(format!("{option} needs --provider {name}"));
            }
        }
        if !self.discord_roles.is_empty() && self.discord_server.is_none() {
            faults.push("--discord-roles needs --discord-server".to_owned());
        }
        if self.provider == Some(ProviderName::Microsoft) && self.issuer().is_none() {
            faults.push("--provider microsoft needs --microsoft-tenant".to_owned());
        }
        faults
    }

    fn kind(&self, addresses: &[Option<Url>; 3], faults: &mut Vec<String>) -> Option<ProviderKind> {
        const OPTIONS: [&str; 3] = ["--oauth-authorize-url", "--oauth-token-url", "--oauth-user-url"];
        for (option, address) in OPTIONS.iter().zip(addresses) {
            let fault = address.as_ref().and_then(|url| is_safe(url).err());
            faults.extend(fault.map(|fault| format!("{option}: {fault}")));
        }
        match (self.issuer(), addresses) {
            (None, [None, None, None]) if self.provider == Some(ProviderName::Traq) => {
                faults.push("--provider traq needs --traq-url".to_owned());
                None
            }
            (None, [None, None, None]) => None,
            (None, [Some(authorize), Some(token), Some(user)]) => {
                let addresses = Addresses { authorize: authorize.clone(), token: token.clone(), user: user.clone() };
                Some(ProviderKind::OAuth(Box::new(addresses)))
            }
            (None, _) => {
                let missing: Vec<_> =
                    OPTIONS.iter().zip(addresses).filter(|(_, url)| url.is_none()).map(|(name, _)| *name).collect();
                faults.push(format!("{} is missing: a plain OAuth 2.0 provider has all three", missing.join(", ")));
                None
            }
            (Some(issuer), [None, None, None]) => {
                let url = Url::parse(&issuer).map_err(|error| error.to_string());
                let result = url.and_then(|url| match (url.query(), url.fragment()) {
                    (None, None) if url.path().ends_with(METADATA) => {
                        Err(format!("the issuer is the address before {METADATA}"))
                    }
                    (None, None) => is_safe(&url),
                    _ => Err("an issuer has no query and no fragment".to_owned()),
                });
                faults.extend(result.err().map(|fault| format!("--oidc-issuer: {fault}")));
                Some(ProviderKind::OpenId { issuer })
            }
            (Some(_), _) => {
                let names: Vec<_> =
                    OPTIONS.iter().zip(addresses).filter(|(_, url)| url.is_some()).map(|(name, _)| *name).collect();
                faults.push(format!("--oidc-issuer and {} are both given", names.join(", ")));
                None
            }
        }
    }

    /// Whether an option says that people sign in with a provider. An issuer alone does not: it may be that of bearer
    /// tokens.
    pub fn is_wanted(&self) -> bool {
        let addresses = [&self.oauth_authorize_url, &self.oauth_token_url, &self.oauth_user_url];
        self.provider.is_some()
            || self.sign_in.is_some()
            || self.has_client_options()
            || addresses.iter().any(|address| address.is_some())
    }

    fn has_client_options(&self) -> bool {
        let texts = [&self.oauth_client_id, &self.oauth_scopes, &self.oauth_name_claim, &self.oauth_id_claim];
        texts.iter().any(|text| text.is_some())
            || self.oauth_client_secret.is_some()
            || self.oauth_client_secret_file.is_some()
            || self.oauth_redirect_url.is_some()
            || self.oauth_client_auth.is_some()
            || self.privileged_claim.is_some()
            || self.has_rules()
            || !self.oidc_trusted_audiences.is_empty()
    }

    fn redirect(&self, server: &ServerOptions, callback: &str, faults: &mut Vec<String>) -> Option<Url> {
        let origin = server.public_origin();
        let public = Url::parse(&origin).ok()?;
        if is_safe(&public).is_err() {
            // Over plain http, anybody on the network path could read codes and cookies.
            let fault = "--public-url must be an https address, or an http one of this machine, to sign in with a \
                         provider";
            faults.push(fault.to_owned());
        }
        let redirect = self.oauth_redirect_url.clone().map_or_else(|| public.join(callback).ok(), Some)?;
        let is_callback = redirect.origin() == public.origin()
            && redirect.path().ends_with(callback)
            && redirect.query().is_none()
            && redirect.fragment().is_none();
        if !is_callback {
            faults.push(format!("--oauth-redirect-url must begin with {origin}/ and end with {callback}"));
        }
        Some(redirect)
    }

    /// What the configured provider stands for.
    fn preset(&self) -> Preset {
        match self.provider {
            Some(name) => name.preset(),
            None if self.oidc_issuer.is_some() => OPEN_ID,
            None => PLAIN,
        }
    }

    /// The issuer: the one that is given, else that of the named provider.
    fn issuer(&self) -> Option<String> {
        let of_preset = match (self.preset().place, &self.microsoft_tenant) {
            (Place::Issuer(issuer), _) => Some(issuer.to_owned()),
            (_, Some(tenant)) if self.provider == Some(ProviderName::Microsoft) => {
                Some(format!("https://login.microsoftonline.com/{tenant}/v2.0"))
            }
            _ => None,
        };
        self.oidc_issuer.clone().or(of_preset)
    }

    /// The addresses of plain OAuth 2.0: those that are given, else those of the named provider. `traq` is the API of
    /// the traQ server.
    fn addresses(&self, traq: Option<&Url>) -> [Option<Url>; 3] {
        let given = [&self.oauth_authorize_url, &self.oauth_token_url, &self.oauth_user_url];
        let of_preset = match (self.preset().place, self.provider, traq) {
            (Place::Addresses(addresses), ..) => addresses.map(|address| Url::parse(address).ok()),
            (_, Some(ProviderName::Traq), Some(traq)) => {
                let traq = traq.as_str().trim_end_matches('/');
                ["/oauth2/authorize", "/oauth2/token", "/users/me"]
                    .map(|path| Url::parse(&format!("{traq}{path}")).ok())
            }
            _ => [None, None, None],
        };
        let mut of_preset = of_preset.into_iter();
        given.map(|url| url.clone().or(of_preset.next().flatten()))
    }

    /// Whether everybody in the world can have an account of the provider, also if it is not given by its name.
    fn is_public(&self, addresses: &[Option<Url>; 3]) -> bool {
        let issuer = self.issuer().and_then(|issuer| Url::parse(&issuer).ok());
        self.preset().is_public || is_public(issuer.iter().chain(&addresses[0]))
    }
}
