import { type LoadedConfig, type LoadOptions, loadConfig } from "../../config.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";

/** Settings that hold as soon as the configuration is read again; all others hold from the next start on. */
const AT_ONCE: readonly string[] = ["log.level"];

/** Takes the log level over from the configuration as it is now, and names what has changed besides. Mistakes change nothing. */
export function reloadConfig(
  started: Pick<LoadOptions, "argv" | "profile"> & { readonly settings: LoadedConfig["settings"] },
  log: Log & { level: string },
  env: LoadOptions["env"] = process.env,
): void {
  const { argv, profile = "serve", settings: before } = started;
  let now: LoadedConfig;
  try {
    now = loadConfig({ env, argv, profile });
  } catch (error) {
    log.error({ error: messageOf(error) }, "the configuration cannot be used; nothing of it was taken over");
    return;
  }
  log.level = now.config.log.level;
  const earlier = new Map(before.map(({ key, value }) => [key, JSON.stringify(value)]));
  const changed = now.settings
    .filter(({ key, value }) => !AT_ONCE.includes(key) && earlier.get(key) !== JSON.stringify(value))
    .map(({ key }) => key);
  if (changed.length > 0) log.warn({ settings: changed }, "settings have changed that hold from the next start on");
}
