import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";
import type { HistoryOptions } from "./apply.ts";
import type { CreateOptions, ListFirmwareOptions } from "./manage.ts";

const ID = ["<id>", "the Id of its document"] as const;

/** The catalogue of rack firmware. */
export function addRackFirmwareCommands(program: Command, run: Run): void {
  const load = () => import("./manage.ts");
  const firmware = program
    .command("rack-firmware")
    .alias("rack-fw")
    .description("the catalogue of firmware for the devices of racks");
  firmware
    .command("create")
    .argument("<hardware-type>", "of the racks that it is for; any suits all")
    .argument("<file>", "the JSON document that describes it, or - for standard input")
    .argument("[token]", "what its files are asked for with; better in a file, see --artifact-token-file")
    .description("put a record into the catalogue and download its files")
    .option("--artifact-token-file <file>", "file with the token; left out: the files need none")
    .addHelpText(
      "after",
      "\nExample:\n  millwright rack-firmware create gb200_nvl72 fw-v2.1.json --artifact-token-file token",
    )
    .action((type: string, file: string, token: string | undefined, options: CreateOptions) =>
      run(async (session) =>
        (await load()).createFirmware(session, type, file, { ...options, ...(token && { token }) }),
      ),
    );
  firmware
    .command("list")
    .argument("[hardware-type]", "only records for racks of this type")
    .description("list records, the newest first")
    .option("--only-available", "only records whose files are all here")
    .addHelpText("after", "\nExample:\n  millwright rack-firmware list gb200_nvl72 --only-available")
    .action((type: string | undefined, options: ListFirmwareOptions) =>
      run(async (session) => (await load()).listFirmware(session, type, options)),
    );
  firmware
    .command("get")
    .alias("show")
    .argument(...ID)
    .description("show a record: its files, and how far their download has come")
    .addHelpText("after", "\nExample:\n  millwright rack-firmware get fw-v2.1")
    .action((id: string) => run(async (session) => (await load()).getFirmware(session, id)));
  firmware
    .command("set-default")
    .argument(...ID)
    .description("make a record what racks of its hardware type get where nobody names a version")
    .addHelpText("after", "\nExample:\n  millwright rack-firmware set-default fw-v2.1")
    .action((id: string) => run(async (session) => (await load()).setDefaultFirmware(session, id)));
  firmware
    .command("download")
    .argument(...ID)
    .description("download the files of a record again; it is not available meanwhile")
    .addHelpText("after", "\nExample:\n  millwright rack-firmware download fw-v2.1")
    .action((id: string) => run(async (session) => (await load()).downloadFirmware(session, id)));
  addApplying(firmware, run);
  firmware
    .command("delete")
    .argument(...ID)
    .description("remove a record that no run works with")
    .option(...YES_OPTION)
    .addHelpText("after", "\nExample:\n  millwright rack-firmware delete fw-v2.0 --yes")
    .action((id: string, options: ConfirmOptions) =>
      run(async (session) => (await load()).deleteFirmware(session, id, options)),
    );
}

/** What was written to which rack. */
function addApplying(firmware: Command, run: Run): void {
  const loadApply = () => import("./apply.ts");
  firmware
    .command("apply")
    .argument("<rack>", "a rack that is ready or in error")
    .argument("<id>", "an available record for its hardware type")
    .argument("<class>", "dev or prod: the class of the rack")
    .description("write a record to all devices of a rack, by a maintenance of the rack")
    .addHelpText("after", "\nExample:\n  millwright rack-firmware apply rack-42 fw-v2.1 prod")
    .action((rack: string, id: string, type: string) =>
      run(async (session) => (await loadApply()).applyFirmware(session, rack, id, type)),
    );
  firmware
    .command("status")
    .argument("<job>", "as apply prints it")
    .description("how far the firmware of one device is")
    .addHelpText(
      "after",
      "\nExample:\n  millwright rack-firmware status 0b7f0c52-6a4e-4d0e-9c1f-3f6d2a1b4c5d.machine-001",
    )
    .action((job: string) => run(async (session) => (await loadApply()).showJob(session, job)));
  firmware
    .command("history")
    .description("which records were requested of which racks")
    .option("--firmware-id <id>", "only this record")
    .option("--rack-id <ids...>", "only these racks")
    .addHelpText("after", "\nExample:\n  millwright rack-firmware history --rack-id rack-42")
    .action((options: HistoryOptions) => run(async (session) => (await loadApply()).listHistory(session, options)));
}
