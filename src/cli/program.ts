import { Command, Option } from "commander";
import { exitCodes } from "./client/errors.ts";
import type { ServerVocabulary } from "./client/server-vocabulary.ts";
import type { Run, Sink } from "./client/session.ts";
import { addAgentCommands } from "./commands/agent/agent.ts";
import { addAuditCommands } from "./commands/audit/audit.ts";
import { addAuthCommands } from "./commands/auth/auth.ts";
import { addCatalogCommands } from "./commands/catalog/catalog.ts";
import { addCompletionCommand } from "./commands/completion/completion.ts";
import { addComponentCommands } from "./commands/component/component.ts";
import { addEventsCommand } from "./commands/event/events.ts";
import { addHistoryCommand } from "./commands/event/history.ts";
import { addReportCommand } from "./commands/event/report.ts";
import { addWatchCommand } from "./commands/event/watch.ts";
import { addExpectedPowerShelfCommands } from "./commands/expected-power-shelf/expected-power-shelf.ts";
import { addExpectedRackCommands } from "./commands/expected-rack/expected-rack.ts";
import { addExpectedSwitchCommands } from "./commands/expected-switch/expected-switch.ts";
import { addExplainCommand } from "./commands/explain/explain.ts";
import { addFleetCommands } from "./commands/fleet/fleet.ts";
import { addGroupCommands } from "./commands/group/group.ts";
import { addLifecycleCommands } from "./commands/lifecycle/lifecycle.ts";
import { addMachineCommands } from "./commands/machine/machine.ts";
import { addNetbootCommands } from "./commands/netboot/netboot.ts";
import { addNodeCommands } from "./commands/node/node.ts";
import { addPlanCommands } from "./commands/plan/plan.ts";
import { addPowerShelfCommands } from "./commands/power-shelf/power-shelf.ts";
import { addRackCommands } from "./commands/rack/rack.ts";
import { addRackFirmwareCommands } from "./commands/rack-firmware/rack-firmware.ts";
import { addReplicaCommands } from "./commands/replica/replica.ts";
import { addRestoreCommands } from "./commands/restore/restore.ts";
import { addRunCommands } from "./commands/run/run.ts";
import { addSearchCommand } from "./commands/search/search.ts";
import { addSecretsCommands } from "./commands/secrets/secrets.ts";
import { addServerCommands } from "./commands/server/server.ts";
import { addSiteCommands } from "./commands/site/site.ts";
import { addSwitchCommands } from "./commands/switch/switch.ts";
import { addSystemCommand } from "./commands/system/system.ts";
import { addTokenCommands } from "./commands/token/token.ts";
import { addTopCommands } from "./commands/top/top.ts";
import { addWorkflowCommands } from "./commands/workflow/workflow.ts";
import { SERVER_VOCABULARY } from "./generated/server-vocabulary.ts";
import { wrapWords } from "./terminal/wrap-words.ts";

export interface ProgramOptions {
  readonly version: string;
  readonly stdout: Pick<Sink, "write" | "columns">;
  readonly stderr: Pick<Sink, "write" | "columns">;
  readonly run: (program: Command) => Run;
  readonly vocabulary?: ServerVocabulary;
}

const EXAMPLES = `
Examples:
  millwright top
  millwright machine list --filter 'rack=rack-1 AND phase=READY'
  millwright run start --machine ID --type REPAVE --wait
  millwright explain machine ID
  millwright power-shelf list
  millwright power-shelf maintenance power-off --power-shelf-id ID1 ID2 --reference https://tracker/MAINT-123
  millwright watch power-shelf

${wrapWords(
  `Exit codes: ${exitCodes()
    .map((each) => each.join(" "))
    .join(", ")}.`,
  120,
).join("\n")}`;

/** The whole command tree. It never ends the process: help and errors are thrown to the caller. */
export function createProgram(options: ProgramOptions): Command {
  const { version, stdout, stderr, run: createRun, vocabulary = SERVER_VOCABULARY } = options;
  const program = new Command("millwright");
  program
    .description("Millwright, a control plane for fleets of bare metal")
    .version(version, "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      getOutHelpWidth: () => stdout.columns ?? 120,
      getErrHelpWidth: () => stderr.columns ?? 120,
    })
    .configureHelp({ showGlobalOptions: true })
    .showSuggestionAfterError()
    .addOption(
      new Option("-o, --output <format>", "how to print").choices(["table", "json", "yaml", "csv"]).default("table"),
    )
    .option("--no-color", "print without colours; so does NO_COLOR")
    .option("--server <url>", "the server's HTTP address; MILLWRIGHT_SERVER, or a local server when left out")
    .option("--token <token>", "bearer token; MILLWRIGHT_TOKEN, or a local server's own when left out")
    .option("--token-file <file>", "file with the bearer token in it")
    .option(
      "--data-dir <dir>",
      "data directory of a local server; MILLWRIGHT_DATA_DIR, or its usual place when left out",
    )
    .option("--ca-file <file>", "trust this CA too (PEM)")
    .option("--client-cert <file>", "client certificate for mutual TLS (PEM)")
    .option("--client-key <file>", "its key (PEM)")
    .addHelpText("after", EXAMPLES);
  const run = createRun(program);
  addTopCommands(program, run);
  addSearchCommand(program, run);
  addRackCommands(program, run);
  addSwitchCommands(program, run);
  addPowerShelfCommands(program, run);
  addSiteCommands(program, run);
  addExpectedRackCommands(program, run);
  addExpectedSwitchCommands(program, run);
  addExpectedPowerShelfCommands(program, run);
  addRackFirmwareCommands(program, run);
  addComponentCommands(program, run);
  addMachineCommands(program, run);
  addNodeCommands(program, run);
  addGroupCommands(program, run);
  addWorkflowCommands(program, run);
  addNetbootCommands(program, run);
  addPlanCommands(program, run);
  addRunCommands(program, run);
  addCatalogCommands(program, run);
  addFleetCommands(program, run);
  addAgentCommands(program, run);
  addLifecycleCommands(program, run);
  addExplainCommand(program, run);
  addHistoryCommand(program, run);
  addEventsCommand(program, run);
  addWatchCommand(program, run);
  addReportCommand(program, run);
  addTokenCommands(program, run, vocabulary);
  addAuthCommands(program, run);
  addAuditCommands(program, run);
  addSecretsCommands(program, run);
  addRestoreCommands(program, run);
  addReplicaCommands(program, run);
  addSystemCommand(program, run);
  addServerCommands(program, run, vocabulary);
  addCompletionCommand(program, run);
  return program;
}
