import { type Command, Option } from "commander";
import { UsageError } from "../../client/errors.ts";
import type { ServerSetting, ServerVocabulary } from "../../client/server-vocabulary.ts";
import type { Run } from "../../client/session.ts";

type Setting = ServerSetting & { readonly isDev: boolean };

interface Profile {
  /** Its defaults are those of `dev`. */
  readonly isDev: boolean;
  /** Settings that make a difference to it. */
  readonly isTaken: (setting: ServerSetting) => boolean;
}
const ORDINARY: Profile = { isDev: false, isTaken: () => true };

const CONFIG_FILE = new Option("--config <file>", "config file (YAML or JSON); MILLWRIGHT_CONFIG");

/** Those of the simulator alone; they are no settings. */
const SIMULATOR_OPTIONS = [
  new Option("--fault <rule>", "a fault that the simulated devices begin with; the option several times for several"),
  new Option("--redfish-port <port>", "where the simulated BMCs listen; a free port when left out"),
  new Option("--control-port <port>", "where the simulator is steered; a free port when left out"),
];

/**
 * The commands that are the server itself. `bin/millwright` starts them by their first word; here they are for help and completion,
 * with the flags of the settings table.
 */
export function addServerCommands(program: Command, run: Run, { settings }: ServerVocabulary): void {
  const add = (parent: Command, name: string, description: string, profile: Profile = ORDINARY) => {
    const { isDev, isTaken } = profile;
    const command = parent
      .command(name)
      .description(description)
      .configureHelp({ showGlobalOptions: false })
      .addHelpText("after", HOW_TO_SET);
    for (const setting of settings.filter(isTaken)) command.addOption(optionOf({ ...setting, isDev }));
    command.addOption(CONFIG_FILE);
    return command.action(() =>
      run(async () => {
        const words = parent === program ? name : `${parent.name()} ${name}`;
        throw new UsageError(`${words} comes first, and its options after it: millwright ${words} ...`);
      }),
    );
  };
  const dev = add(program, "dev", "a whole Millwright on this machine: database, simulated datacentre and server", {
    isDev: true,
    isTaken: () => true,
  });
  add(program, "serve", "the server alone, for production")
    .addOption(new Option("--cancel-runs", "short for --shutdown-runs cancel: a stop cancels all active runs"))
    .addOption(
      new Option(
        "--restored <name>",
        "short for --database-restored: the database was restored from a storage snapshot, and nothing goes on until a person has said so (millwright restore review)",
      ),
    );
  const sim = add(program, "sim", "the simulated datacentre alone", {
    isDev: true,
    isTaken: ({ flag }) => flag === "--data-dir" || flag.startsWith("--sim-"),
  });
  for (const command of [dev, sim]) for (const option of SIMULATOR_OPTIONS) command.addOption(option);
  const migrate = program.command("migrate").description("the schema of the database, before an upgrade");
  const ofDatabase: Profile = {
    isDev: false,
    isTaken: ({ flag }) => flag.startsWith("--database-") || flag.startsWith("--log-"),
  };
  add(migrate, "plan", "show the migrations that this version would apply; changes nothing", ofDatabase);
  add(migrate, "apply", "apply them, without starting a server", ofDatabase);
  const config = program.command("config").description("the server's configuration");
  add(
    config,
    "check",
    "report mistakes in the configuration, or show the values in effect and where each comes from",
  ).addOption(
    new Option("--profile <profile>", "the command whose defaults apply").choices(["serve", "dev"]).default("serve"),
  );
}

const HOW_TO_SET = `
Each setting can also be given as a variable (--http-listen is MILLWRIGHT_HTTP_LISTEN) or in the config file (http.listen).
A flag wins over a variable, and a variable over the file. All of them: docs/reference/configuration.md`;

const VALUE_NAMES = { switch: "[value]", file: "<file>", directory: "<dir>", value: "<value>" } as const;

/** Help wraps prose itself; backticks are for the reference. */
function optionOf({ flag, takes, words, doc, default: ordinary, dev, isDev }: Setting): Option {
  const value = isDev && dev !== "" ? dev : ordinary;
  const about = `${doc.replaceAll("`", "")}${value === "" ? "" : ` By default: ${value.replaceAll("`", "")}.`}`;
  const option = new Option(`${flag} ${VALUE_NAMES[takes]}`, about);
  return words.length === 0 ? option : option.choices([...words]);
}
