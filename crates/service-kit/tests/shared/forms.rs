//! Forms of pages, as a browser sends them. Both services include this file in their tests, by its path, as a module of
//! theirs.

use url::form_urlencoded;

use super::page;
use crate::harness::{Answer, Club};

/// What a browser accepts.
pub const HTML: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// Fields and their values.
pub type Fields = Vec<(String, String)>;

/// The value of an attribute in the beginning of an element.
pub fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    element.split_once(&format!(" {name}=\""))?.1.split('"').next()
}

fn plain(text: &str) -> String {
    text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// What a browser would send with the first form that goes to this address: fields and their values.
#[track_caller]
pub fn fields(page: &str, action: &str) -> Fields {
    let form = page.split("<form").find(|form| form.contains(&format!(" action=\"{action}\"")));
    let form = form.unwrap_or_else(|| panic!("no form to {action} in {page}")).split("</form>").next().unwrap();
    let mut fields = Vec::new();
    for element in form.split('<') {
        let name = attribute(element, "name").map(str::to_owned);
        let value = || plain(attribute(element, "value").unwrap_or_default());
        match (element.split([' ', '>']).next().unwrap(), name) {
            ("input", Some(name)) => {
                let kind = attribute(element, "type").unwrap_or("text");
                if !["checkbox", "radio"].contains(&kind) || element.contains(" checked") {
                    fields.push((name, value()));
                }
            }
            ("textarea", Some(name)) => {
                let text = element.split_once('>').unwrap().1;
                fields.push((name, plain(text.strip_prefix('\n').unwrap_or(text))));
            }
            ("select", Some(name)) => {
                let options =
                    form.split_once(&format!("<select{}", element.strip_prefix("select").unwrap())).unwrap().1;
                let options: Vec<_> = options.split("</select>").next().unwrap().split("<option").skip(1).collect();
                let chosen = options.iter().find(|option| option.split('>').next().unwrap().contains(" selected"));
                let chosen = chosen.or(options.first()).copied().unwrap_or_default();
                fields.push((name, attribute(chosen, "value").unwrap_or_default().to_owned()));
            }
            _ => {}
        }
    }
    fields
}

/// Gives a field another value.
pub fn set(fields: &mut Fields, name: &str, value: &str) {
    fields.retain(|(other, _)| other != name);
    fields.push((name.to_owned(), value.to_owned()));
}

/// A page as a browser gets it.
#[track_caller]
pub fn open(club: &Club, by: &str, path: &str) -> String {
    page::check(&club.by(by).header("accept", HTML).get(path).expect(200))
}

/// Sends a form as a browser does.
pub fn send(club: &Club, by: &str, path: &str, fields: &Fields) -> Answer {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let client = club.by(by).header("accept", HTML).header("content-type", "application/x-www-form-urlencoded");
    client.send_bytes("POST", path, body.into_bytes())
}
