import { describeConfig, describeOtherVariables, type SettingRow } from "../../src/config.ts";
import { code, page, pageHead, table } from "./markdown.ts";

/** Every setting of the server, in the order of its declaration. */
export function configurationPage(): string {
  const others = describeOtherVariables().map(({ name, doc }) => [code(name), doc]);
  return page(
    pageHead("Configuration", "`src/config/settings.ts`"),
    "Each setting can be given as a flag, as an environment variable, or as a key of the config file; a flag wins over a variable, and a variable over the file. `millwright config check` tells what is wrong and shows the values in effect with where each comes from.",
    "## Settings",
    describeConfig().map(section),
    "## Other variables",
    table(["Variable", "Meaning"], others),
  );
}

function section({ key, env, flag, default: ordinary, dev, rule, doc }: SettingRow): string {
  const lines = [
    `- Variable: ${code(env)}`,
    `- Flag: ${code(flag)}`,
    `- Value: ${rule}`,
    `- Default: ${ordinary === "" ? "unset" : asValue(ordinary)}`,
  ];
  if (dev !== "") lines.push(`- In \`millwright dev\`: ${asValue(dev)}`);
  return page(`### ${code(key)}`, doc, lines.join("\n"));
}

/** Some defaults are told in words, with code of their own. */
const asValue = (text: string): string => (text.includes("`") ? text : code(text));
