import type { LoadedConfig } from "./load.ts";
import type { SettingKey } from "./settings.ts";

/** Defaults that refuse what an earlier version admitted. Whoever sets one of these, to whatever value, has decided. */
const STRICTER: Partial<Record<SettingKey, string>> = {
  "bmc.plain_http":
    'BMCs and Ironic whose address on record is http:// are not called; "true" calls them as before, with their passwords unencrypted',
  "install.armed_for":
    'an approved node that boots later than that waits for "millwright node arm" or a power action; "3650d" lets it install whenever it boots',
  "install.token_binding":
    'tokens and seeds of a boot are good from the subnet of the address that asked for its script, and two addresses that ask make the boot contested; "off" takes them from anywhere',
  "limits.connections": "each listener takes no more connections at a time; a higher number admits more",
  "limits.connections_per_address":
    "one address has no more connections to a listener; a higher number admits more, and load balancers belong into trusted_proxies",
  "limits.headers_timeout":
    "handshakes and headers that take longer end their connection; a longer time waits for them",
  "limits.idle_session": "HTTP/2 connections without calls end after that; a longer time keeps them",
  "install.require_report_tokens":
    'reports of installers that show neither the token of their boot ("${token}" in a command line, "report_token" in a report) nor a bearer of role operator are refused; "false" takes them as before',
  "auth.token_max_age":
    'tokens made by "millwright token create" end at that age, the present ones counted from the upgrade ("millwright token list" shows when); "off" lets them last',
  "limits.requests_per_caller":
    "more requests a second of one caller are refused for a moment; a higher value admits programs that need more",
  "limits.requests_per_address":
    "more requests a second of one address without a sign-in are refused for a moment; list proxies in trusted_proxies, or set a higher value",
  "limits.calls_per_caller":
    "more calls of one caller at the same time, streams aside, are refused for a moment; a higher value admits them",
  "limits.streams_per_caller":
    "more watches and logs of one caller at the same time are refused; a higher value admits them",
  "limits.streams_per_address": "more streams of one address without a sign-in are refused; a higher value admits them",
  "limits.unread_bytes": "answers that nobody reads are broken off above it; a higher value lets more of them wait",
  "limits.failed_sign_ins":
    "after so many failed sign-ins a minute, more from the same address are refused; a higher value admits them",
};

/** What an upgrade may have changed for a site that has not set it. */
export function warnOfStricterDefaults({ settings }: Pick<LoadedConfig, "settings">): string[] {
  return settings.flatMap(({ key, raw, source }) => {
    const text = STRICTER[key];
    return text === undefined || source !== "default" ? [] : [`${key} is ${String(raw)} by default: ${text}`];
  });
}
