import type { LoadedConfig } from "./load.ts";
import type { SettingKey } from "./settings.ts";

/** Defaults that refuse what an earlier version admitted. Whoever sets one of these, to whatever value, has decided. */
const STRICTER: Partial<Record<SettingKey, string>> = {
  "auth.token_max_age":
    'tokens made by "millwright token create" end at that age, the present ones counted from the upgrade ("millwright token list" shows when); "off" lets them last',
};

/** What an upgrade may have changed for a site that has not set it. */
export function warnOfStricterDefaults({ settings }: Pick<LoadedConfig, "settings">): string[] {
  return settings.flatMap(({ key, raw, source }) => {
    const text = STRICTER[key];
    return text === undefined || source !== "default" ? [] : [`${key} is ${String(raw)} by default: ${text}`];
  });
}
