import { type LoadedConfig, type LoadOptions, loadConfig } from "../../config.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";

/** Settings that hold as soon as the configuration is read again; all others hold from the next start on. */
const AT_ONCE: readonly string[] = ["log.level"];

/** The configuration as it is now, for what holds at once; names what else has changed. Undefined where it has mistakes: nothing of it may be taken over. */
export function reloadConfig(
  started: Pick<LoadOptions, "argv" | "profile"> & { readonly settings: LoadedConfig["settings"] },
  log: Log,
  env: LoadOptions["env"] = process.env,
): LoadedConfig["config"] | undefined {
  const { argv, profile = "serve", settings: before } = started;
  let now: LoadedConfig;
  try {
    now = loadConfig({ env, argv, profile });
  } catch (error) {
    log.error({ error: messageOf(error) }, "the configuration cannot be used; nothing of it was taken over");
    return undefined;
  }
  const earlier = new Map(before.map(({ key, value }) => [key, JSON.stringify(value)]));
  const changed = now.settings
    .filter(({ key, value }) => !AT_ONCE.includes(key) && earlier.get(key) !== JSON.stringify(value))
    .map(({ key }) => key);
  if (changed.length > 0) log.warn({ settings: changed }, "settings have changed that hold from the next start on");
  return now.config;
}
