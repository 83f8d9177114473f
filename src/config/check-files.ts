import { accessSync, constants, statSync } from "node:fs";
import { modeText, othersMayReach } from "../kernel/access/private-file.ts";
import type { EffectiveSetting, LoadedConfig } from "./load.ts";
import { settingFor } from "./settings.ts";
import { isPath } from "./value-kinds.ts";

/** Files that hold a secret. Those of the first sort are refused at the start when others may reach them. */
const PRIVATE = { secret_key_file: "refused", "tls.key_file": "risky" } as const;
/** Made at the first start. */
const MADE_BY_US = ["secret_key_file", "data_dir"];

/** Whether the files that the configuration names are there, can be read by this user, and by nobody else where that matters. */
export function checkFiles({ settings }: Pick<LoadedConfig, "settings">): { problems: string[]; warnings: string[] } {
  const problems: string[] = [];
  const warnings: string[] = [];
  for (const setting of settings) {
    if (!isPath(settingFor(setting.key).kind) || setting.value === null) continue;
    const fault = settingFor(setting.key).kind.takes === "directory" ? directoryFault(setting) : fileFault(setting);
    if (fault !== undefined) problems.push(fault);
    else
      warnings.push(
        ...openTo(setting)
          .filter(({ sort }) => sort === "risky")
          .map(({ text }) => text),
      );
    problems.push(
      ...openTo(setting)
        .filter(({ sort }) => sort === "refused")
        .map(({ text }) => text),
    );
  }
  return { problems, warnings };
}

const named = ({ key, source }: EffectiveSetting): string => `${key} (${source})`;

function fileFault(setting: EffectiveSetting): string | undefined {
  const path = String(setting.value);
  const found = statOf(path);
  if (found === "missing") {
    return MADE_BY_US.includes(setting.key) ? undefined : `${named(setting)}: there is no ${path}`;
  }
  if (found === "unreachable") return `${named(setting)}: ${path} cannot be reached by this user`;
  if (found.isDirectory()) return `${named(setting)}: ${path} is a directory, and a file is wanted`;
  return may(path, constants.R_OK) ? undefined : `${named(setting)}: ${path} cannot be read by this user`;
}

function directoryFault(setting: EffectiveSetting): string | undefined {
  const path = String(setting.value);
  const found = statOf(path);
  const isOurs = MADE_BY_US.includes(setting.key);
  if (found === "missing") return isOurs ? undefined : `${named(setting)}: there is no ${path}`;
  if (found === "unreachable") return `${named(setting)}: ${path} cannot be reached by this user`;
  if (!found.isDirectory()) return `${named(setting)}: ${path} is not a directory`;
  if (!may(path, constants.R_OK | constants.X_OK)) return `${named(setting)}: ${path} cannot be read by this user`;
  return !isOurs || may(path, constants.W_OK) ? undefined : `${named(setting)}: ${path} cannot be written by this user`;
}

function openTo(setting: EffectiveSetting): { sort: "refused" | "risky"; text: string }[] {
  const sort = Object.entries(PRIVATE).find(([key]) => key === setting.key)?.[1];
  const found = statOf(String(setting.value));
  if (sort === undefined || typeof found === "string" || !othersMayReach(found, process.getuid?.())) return [];
  const mode = modeText(found.mode);
  const path = String(setting.value);
  return [
    { sort, text: `${named(setting)}: ${path} has mode ${mode}, so that others may reach it; chmod 600 ${path}` },
  ];
}

function statOf(path: string) {
  try {
    return statSync(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    return code === "ENOENT" || code === "ENOTDIR" ? ("missing" as const) : ("unreachable" as const);
  }
}

function may(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}
