//! The commands that make the webhooks that the former system had in its environment.

use serde_json::json;
use url::Url;
use uuid::Uuid;

/// The traQ server of the former system.
const TRAQ: &str = "https://q.trap.jp/api/v3";

/// The lines to print: nothing if the environment has no such webhook. The secret stays where it is.
pub fn commands(traq: Option<&Url>, variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let id = |name: &str| variable(name)?.trim().parse::<Uuid>().ok();
    let Some(webhook) = id("WEBHOOK_ID") else { return Vec::new() };
    let base = traq.map_or(TRAQ, |url| url.as_str().trim_end_matches('/'));
    let channels = [
        ("announcements", "ACTIVITY_CHANNEL_ID", ["announcement"]),
        ("rooms and events of the day", "DAILY_CHANNEL_ID", ["digest"]),
    ];
    let command = |(name, channel, types): (&str, &str, [&str; 1])| {
        let body = json!({
            "name": name, "url": format!("{base}/webhooks/{webhook}"), "format": "traq", "channelId": id(channel)?,
            "types": types, "language": "ja",
        });
        // Neither ids nor an address contain a quotation mark.
        Some(format!("  booking-service webhook create '{body}'"))
    };
    let commands: Vec<_> = channels.into_iter().filter_map(command).collect();
    if commands.is_empty() {
        return commands;
    }
    let head = "webhooks: these commands, with WEBHOOK_SECRET in the environment, make those of the former system";
    [head.to_owned()].into_iter().chain(commands).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_the_former_system_become_commands() {
        let variables = |name: &str| {
            let number = match name {
                "WEBHOOK_ID" => 1,
                "ACTIVITY_CHANNEL_ID" => 2,
                "DAILY_CHANNEL_ID" => 3,
                _ => return None,
            };
            Some(format!("0198c0de-0000-7000-8000-00000000000{number}"))
        };
        let lines = commands(Some(&"https://traq.example/api/v3/".parse().unwrap()), variables);
        let [_, announcements, digest] = lines.as_slice() else { panic!("{lines:?}") };
        let expected = "  booking-service webhook create '{\"name\":\"announcements\",\"url\":\"https://traq.example/api/v3/\
                        webhooks/0198c0de-0000-7000-8000-000000000001\",\"format\":\"traq\",\"channelId\":\
                        \"0198c0de-0000-7000-8000-000000000002\",\"types\":[\"announcement\"],\"language\":\"ja\"}'";
        let json = |line: &str| {
            let body = line.trim().strip_prefix("booking-service webhook create '").unwrap();
            body.trim_end_matches('\'').parse::<serde_json::Value>().unwrap()
        };
        assert_eq!(json(announcements), json(expected));
        assert_eq!(json(digest)["types"], json!(["digest"]));
        assert!(commands(None, |name| variables(name).filter(|_| name != "WEBHOOK_ID")).is_empty());
        assert!(commands(None, |name| variables(name).filter(|_| name == "WEBHOOK_ID")).is_empty());
        assert!(commands(None, |_| Some("'; rm -rf x".to_owned())).is_empty());
    }
}
