// The requests that chats take, of which `scripts/real-components` makes JSON schemas.
import type { IncomingWebhookSendArguments } from "@slack/webhook";
import type { RESTPostAPIWebhookWithTokenJSONBody } from "discord-api-types/v10";

export type Discord = RESTPostAPIWebhookWithTokenJSONBody;
// Without the options of Slack's client, which are not sent.
export type Slack = Omit<IncomingWebhookSendArguments, "fetch" | "retryConfig" | "timeout">;
