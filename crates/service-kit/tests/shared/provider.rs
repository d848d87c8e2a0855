//! A real OpenID Connect provider, npm's `oidc-provider` (`tests/real/provider.mjs`), and a simple browser.
//! Tests include this file by its path, as a module of theirs. `scripts/real-components` has to have run before.

use std::{
    env,
    io::{self, BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use ureq::{Agent, http::Request};
use url::{Url, form_urlencoded};

/// The audience of the access tokens that are JSON Web Tokens.
pub const RESOURCE: &str = "https://portfolio.example";

/// A verifier and its challenge (RFC 7636, appendix B).
pub const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// Node, to run a program of `tests/real/` with the packages that `scripts/real-components` has installed.
pub fn node(program: &str) -> Command {
    let mut command = node_in("real");
    command.args(["--input-type=module", "--eval", program]);
    command
}

/// Node in a folder of packages.
pub fn node_in(folder: &str) -> Command {
    let beside = |name: &str| -> PathBuf { Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name(name) };
    let machine = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let node = beside("real").join(format!("node_modules/node-linux-{machine}/bin/node"));
    let folder = beside(folder);
    for needed in [&node, &folder] {
        assert!(needed.exists(), "{} is not there: run scripts/real-components, or scripts/test", needed.display());
    }
    let mut command = Command::new(node);
    command.current_dir(folder).env_clear();
    command
}

/// Node with a program of `tests/real/` that drives Chromium.
pub fn browser_node(program: &str) -> Command {
    node(&[include_str!("../real/chromium.mjs"), program].concat())
}

/// Runs a program of `tests/real/` that drives Chromium, and returns what it prints.
pub fn chromium(program: &str, variables: &[(&str, &str)]) -> Value {
    let home = tempfile::tempdir().unwrap();
    let mut program = browser_node(program);
    program.env("PATH", env::var("PATH").unwrap()).env("HOME", home.path()).envs(variables.iter().copied());
    let done = program.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

/// A provider with its own keys and clients, which stops when this is dropped.
pub struct Provider {
    pub issuer: String,
    agent: Agent,
    child: Child,
}

/// A registered client.
pub struct Registered {
    pub id: String,
    pub secret: Option<String>,
    pub redirect: String,
}

/// The tokens of a sign-in.
pub struct Tokens {
    pub id: String,
    pub access: String,
}

impl Provider {
    pub fn start() -> Self {
        let (child, issuer) = start("0");
        let agent = Agent::config_builder().proxy(None).http_status_as_error(false).max_redirects(0).build().into();
        Self { issuer, agent, child }
    }

    /// Restarts it at the same address, with new keys and without clients.
    pub fn restart(&mut self) {
        self.stop();
        let port = self.issuer.rsplit(':').next().unwrap().to_owned();
        (self.child, self.issuer) = start(&port);
    }

    fn stop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }

    /// Registers a client (RFC 7591) with this authentication method: `none`, `client_secret_basic` or
    /// `client_secret_post`. Its ID tokens are signed with `algorithm`.
    pub fn register(&self, redirect: &str, method: &str, algorithm: &str) -> Registered {
        let client = json!({
            "redirect_uris": [redirect], "token_endpoint_auth_method": method,
            "id_token_signed_response_alg": algorithm,
        });
        let request = Request::post(format!("{}/reg", self.issuer)).header("content-type", "application/json");
        let mut answer = self.agent.run(request.body(client.to_string()).unwrap()).unwrap();
        let made: Value = answer.body_mut().read_json().unwrap();
        assert_eq!(answer.status(), 201, "{made}");
        let text = |name: &str| made[name].as_str().map(str::to_owned);
        Registered { id: text("client_id").unwrap(), secret: text("client_secret"), redirect: redirect.to_owned() }
    }

    /// The address of the authorization endpoint with the common parameters and `more`.
    pub fn authorize(&self, client: &Registered, user: &str, more: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs([("client_id", client.id.as_str()), ("response_type", "code"), ("state", "s")]);
        query.extend_pairs([("scope", "openid profile edit"), ("login_hint", user)]);
        format!("{}/auth?{}", self.issuer, query.extend_pairs(more).finish())
    }

    /// Follows redirects like a browser, and returns the first address that is not the provider's.
    ///
    /// # Errors
    /// Status and text of a page without a redirect.
    pub fn visit(&self, jar: &mut Jar, address: &str) -> Result<Url, (u16, String)> {
        let mut address = Url::parse(address).unwrap();
        for _ in 0..10 {
            let request = Request::get(address.as_str()).header("cookie", jar.cookies(address.path()));
            let mut answer = self.agent.run(request.body(()).unwrap()).unwrap();
            jar.keep(answer.headers().get_all("set-cookie").iter().map(|value| value.to_str().unwrap()));
            let Some(location) = answer.headers().get("location") else {
                return Err((answer.status().as_u16(), answer.body_mut().read_to_string().unwrap()));
            };
            address = address.join(location.to_str().unwrap()).unwrap();
            if !address.as_str().starts_with(&self.issuer) {
                return Ok(address);
            }
        }
        panic!("redirected ten times");
    }

    /// Sends a request to the token endpoint.
    pub fn exchange(&self, client: &Registered, more: &[(&str, &str)]) -> (u16, Value) {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs([("grant_type", "authorization_code"), ("client_id", &client.id)]).extend_pairs(more);
        if let Some(secret) = &client.secret {
            form.append_pair("client_secret", secret);
        }
        let request = Request::post(format!("{}/token", self.issuer))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form.finish());
        let mut answer = self.agent.run(request.unwrap()).unwrap();
        (answer.status().as_u16(), answer.body_mut().read_json().unwrap())
    }

    /// The tokens that this client receives when this user signs in.
    pub fn tokens(&self, client: &Registered, user: &str) -> Tokens {
        let redirect = ("redirect_uri", client.redirect.as_str());
        let challenge = [("code_challenge", CHALLENGE), ("code_challenge_method", "S256")];
        let parameters = [&[redirect, ("resource", RESOURCE)], &challenge[..]].concat();
        let back = self.visit(&mut Jar::default(), &self.authorize(client, user, &parameters)).unwrap();
        let code = parameter(&back, "code").unwrap_or_else(|| panic!("{back}"));
        let (status, said) =
            self.exchange(client, &[redirect, ("code", &code), ("code_verifier", VERIFIER), ("resource", RESOURCE)]);
        assert_eq!(status, 200, "{said}");
        let text = |name: &str| said[name].as_str().unwrap().to_owned();
        Tokens { id: text("id_token"), access: text("access_token") }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts the program. It stops when its standard input is closed, at the latest when this process ends.
fn start(port: &str) -> (Child, String) {
    let mut command = node(include_str!("../real/provider.mjs"));
    command.env("PORT", port).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut issuer = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut issuer).unwrap();
    let mut log = child.stderr.take().unwrap();
    if issuer.is_empty() {
        let mut said = String::new();
        log.read_to_string(&mut said).unwrap();
        panic!("the provider does not start: {said}");
    }
    // A full pipe would block the process.
    std::thread::spawn(move || io::copy(&mut log, &mut io::sink()));
    (child, issuer.trim().to_owned())
}

/// A parameter of an address.
pub fn parameter(address: &Url, name: &str) -> Option<String> {
    address.query_pairs().find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
}

/// The cookies of a browser for one host. Cookies do not depend on the port (RFC 6265, section 8.5), so provider and
/// service receive each other's.
#[derive(Debug, Clone, Default)]
pub struct Jar(Vec<Cookie>);

#[derive(Debug, Clone)]
struct Cookie {
    name: String,
    path: String,
    value: String,
}

impl Jar {
    /// The `Cookie` header of a request for this path.
    pub fn cookies(&self, path: &str) -> String {
        let is_within = |folder: &str| match path.strip_prefix(folder) {
            Some(rest) => rest.is_empty() || rest.starts_with('/') || folder.ends_with('/'),
            None => false,
        };
        let sent = self.0.iter().filter(|cookie| is_within(&cookie.path));
        sent.map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect::<Vec<_>>().join("; ")
    }

    /// Applies the `Set-Cookie` headers of an answer.
    pub fn keep<'a>(&mut self, set: impl Iterator<Item = &'a str>) {
        for line in set {
            let mut parts = line.split(';').map(|part| part.trim().split_once('=').unwrap_or((part.trim(), "")));
            let (name, value) = parts.next().unwrap();
            let attributes: Vec<_> = parts.map(|(name, value)| (name.to_lowercase(), value)).collect();
            let attribute = |name: &str| attributes.iter().find(|(found, _)| found == name).map(|(_, value)| *value);
            let path = attribute("path").unwrap_or("/");
            self.0.retain(|cookie| (cookie.name.as_str(), cookie.path.as_str()) != (name, path));
            let is_over =
                attribute("max-age") == Some("0") || attribute("expires").is_some_and(|at| at.contains("1970"));
            if !is_over {
                self.0.push(Cookie { name: name.to_owned(), path: path.to_owned(), value: value.to_owned() });
            }
        }
    }
}
