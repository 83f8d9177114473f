import type { LoadedConfig } from "./load.ts";
import { envName, flagName, OTHER_VARIABLES, SETTING_KEYS, settingFor } from "./settings.ts";

/** One line of the configuration reference. */
export interface SettingRow {
  readonly key: string;
  readonly env: string;
  readonly flag: string;
  /** As one would write it; empty when unset by default. */
  readonly default: string;
  /** What `millwright dev` takes instead; empty when the same. */
  readonly dev: string;
  readonly rule: string;
  readonly takes: "switch" | "file" | "directory" | "value";
  /** The only values; empty for any. */
  readonly words: readonly string[];
  readonly doc: string;
}

export function describeConfig(): SettingRow[] {
  return SETTING_KEYS.map((key) => {
    const { kind, default: ordinary, defaultDoc, dev, doc } = settingFor(key);
    return {
      key,
      env: envName(key),
      flag: flagName(key),
      default: defaultDoc ?? (typeof ordinary === "function" ? "" : written(ordinary)),
      dev: dev === undefined ? "" : written(dev),
      rule: kind.rule,
      takes: kind.takes ?? "value",
      words: kind.words ?? [],
      doc,
    };
  });
}

/** The variables beside the settings: the config file's own path and those of the command line. */
export const describeOtherVariables = (): { name: string; doc: string }[] =>
  Object.entries(OTHER_VARIABLES).map(([name, doc]) => ({ name, doc }));

function written(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

const SEVERAL = "several.invalid";

/** `postgres://millwright:secret@db/millwright` without its password, also when it hides in the query. */
export function redactUrl(url: string): string {
  // Several hosts are no URL to the parser; they stand where one does.
  const [hosts = ""] = /(?<=^\w+:\/\/(?:[^/?#]*@)?)[^/?#@]*,[^/?#@]*/.exec(url) ?? [];
  if (hosts !== "" && URL.canParse(url.replace(hosts, SEVERAL)))
    return redactUrl(url.replace(hosts, SEVERAL)).replace(SEVERAL, hosts);
  if (!URL.canParse(url)) return "(hidden)";
  const parsed = new URL(url);
  if (parsed.password !== "") parsed.password = "***";
  for (const name of parsed.searchParams.keys()) {
    if (/password|secret|token|key/i.test(name)) parsed.searchParams.set(name, "***");
  }
  return parsed.toString();
}

/** The effective settings and where each comes from, ready to print; secrets are hidden. */
export function printConfig({ settings, warnings }: LoadedConfig): string {
  const rows = settings.map(({ key, raw, source }) => {
    const shown =
      raw === null
        ? "(unset)"
        : settingFor(key).secret && !source.startsWith("default")
          ? redactUrl(String(raw))
          : written(raw);
    return [key, shown === "" ? '""' : shown, source] as const;
  });
  const width = (column: 0 | 1) => Math.min(60, Math.max(...rows.map((row) => row[column].length)));
  const [keyWidth, valueWidth] = [width(0), width(1)];
  const lines = rows.map(([key, value, source]) => `${key.padEnd(keyWidth)}  ${value.padEnd(valueWidth)}  ${source}`);
  return [...lines, ...warnings.map((warning) => `warning: ${warning}`)].join("\n");
}
