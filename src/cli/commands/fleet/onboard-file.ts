import { randomUUID } from "node:crypto";
import { FleetNodeService } from "../../../../contract/millwright/v1/fleet_node_pb.js";
import { readTextFile } from "../../client/discover-server.ts";
import { UsageError } from "../../client/errors.ts";
import type { Session } from "../../client/session.ts";
import { printDone } from "../../terminal/printing.ts";
import { readCsv } from "../../terminal/read-csv.ts";
import { showStarted } from "../run/start.ts";
import { type OnboardOptions, readAccount } from "./nodes.ts";

const COLUMNS = ["site", "profile", "sku", "hostname", "ipmi_ip", "mode", "bmc_username", "bmc_password"] as const;

/** A file with a row a node. What every row would say may be an option instead. The server goes on with it, whatever becomes of us. */
export async function onboardFile(
  session: Session,
  file: string,
  options: OnboardOptions,
): Promise<number | undefined> {
  const text = file === "-" ? await session.terminal.stdin.readAll() : readTextFile(file);
  if (text === undefined) throw new UsageError(`--file: ${file} does not exist`);
  const { site = "", profile = "", sku = "", mode = "", requestId = randomUUID(), wait = false } = options;
  if (file === "-" && options.bmcPasswordStdin)
    throw new UsageError("--file - and --bmc-password-stdin both read standard input");
  if (options.hostname !== undefined || options.ipmiIp !== undefined)
    throw new UsageError("--hostname and --ipmi-ip are columns of the file");
  // A password takes no part in a preview, and is not asked for.
  const account = options.dryRun
    ? { bmcUsername: options.bmcUsername ?? "", bmcPassword: "" }
    : await readAccount(session, options);
  const nodes = readCsv(text, file, COLUMNS).map(({ line, cells }) => {
    const row = {
      site: cells.site || site,
      profile: cells.profile || profile,
      sku: cells.sku || sku,
      hostname: cells.hostname ?? "",
      ipmiIp: cells.ipmi_ip ?? "",
      mode: cells.mode || mode,
      // An account is taken whole from one place: a row's own name never goes with the password of the others.
      ...(cells.bmc_username || cells.bmc_password
        ? { bmcUsername: cells.bmc_username ?? "", bmcPassword: cells.bmc_password ?? "" }
        : account),
    };
    const missing = (["site", "profile", "sku", "hostname"] as const).find((name) => row[name] === "");
    if (missing !== undefined) throw new UsageError(`${file}, line ${line}: ${missing} is missing`);
    return row;
  });
  if (options.dryRun) return (await import("./onboarding-preview.ts")).previewOnboardings(session, nodes);
  const client = await session.client(FleetNodeService);
  const { runId } = await client.onboardNodes({ requestId, nodes }, { signal: session.signal });
  if (wait) return showStarted(session, { runId, wait });
  await printDone(session, `${nodes.length} nodes are onboarded by run ${runId}. Next: millwright run watch ${runId}`, {
    run: runId,
    nodes: nodes.length,
  });
  return undefined;
}
