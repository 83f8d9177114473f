import { type Command, Option } from "commander";
import type { Run, Session } from "../../client/session.ts";
import type { AddReportOptions, DeviceReports } from "./reports.ts";

/** The devices whose reports a command is about. */
export interface ReportedDevices {
  /** "a power shelf". */
  readonly what: string;
  /** How one is named: "<id|name>". */
  readonly argument: string;
  /** Loaded when a command runs: what reads and writes the reports. */
  load(): Promise<DeviceReports>;
  /** The word of the command line, such as "power-shelf". */
  readonly command: string;
}

/** The same commands under every noun that has devices. */
export function addHealthReportCommands(parent: Command, run: Run, devices: ReportedDevices): void {
  const { what, argument } = devices;
  const reports = parent
    .command("health-report")
    .aliases(["hr", "health"])
    .description(`health reports that people and monitors put on ${what}`);
  const act = (body: (session: Session, lib: typeof import("./reports.ts"), of: DeviceReports) => Promise<undefined>) =>
    run(async (session) => body(session, await import("./reports.ts"), await devices.load()));
  reports
    .command("show")
    .argument(argument, what)
    .description("show the reports, one per source")
    .action((id: string) => act((session, lib, of) => lib.showHealthReports(session, of, id)));
  reports
    .command("add")
    .argument(argument, what)
    .description("add a report; it replaces the earlier report of the same source")
    .option("--health-report <json>", "the report: JSON, @FILE, or - for standard input")
    .addOption(
      new Option("--template <name>", "a ready-made report").choices([
        "internal-maintenance",
        "out-for-repair",
        "degraded",
        "mark-healthy",
      ]),
    )
    .option("--message <text>", "the message of its alerts")
    .option("--replace", "replace all other reports while this one is there")
    .option("--expires-after <duration>", "the report expires after this long, such as 1h")
    .option("--print-only", "print the report instead of adding it")
    .addHelpText(
      "after",
      `\nExample:\n  millwright ${devices.command} health-report add ID --template degraded --message "one fan is slow" --expires-after 2h`,
    )
    .action((id: string, options: AddReportOptions) =>
      act((session, lib, of) => lib.addHealthReport(session, of, id, options)),
    );
  reports
    .command("print-empty-template")
    .description("print a report to fill in")
    .action(() => act((session, lib) => lib.printEmptyTemplate(session)));
  reports
    .command("remove")
    .argument(argument, what)
    .argument("<source>", "whose report")
    .description("remove the report of one source")
    .action((id: string, source: string) => act((session, lib, of) => lib.removeHealthReport(session, of, id, source)));
}
