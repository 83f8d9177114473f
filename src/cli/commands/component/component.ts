import { type Command, Option } from "commander";
import type { Run } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";
import type { TargetOptions, UpdateOptions } from "./manage.ts";

const POWER_ACTIONS = ["on", "graceful-shutdown", "force-off", "graceful-restart", "force-restart", "ac-powercycle"];

const addDevices = (command: Command): Command =>
  command
    .option("--compute-trays <ids...>", "machines, separated by commas or spaces")
    .option("--switches <ids...>", "switches, by id or name")
    .option("--power-shelves <ids...>", "power shelves, by id or name");
const addTargets = (command: Command): Command => addDevices(command).option("--racks <ids...>", "whole racks");

/** Devices of racks as one sort of thing. */
export function addComponentCommands(program: Command, run: Run): void {
  const load = () => import("./manage.ts");
  const component = program
    .command("component")
    .alias("cm")
    .description("compute trays, switches and power shelves: firmware and power, with one result a device");
  const firmware = component.command("firmware").description("the firmware of devices and racks");
  addTargets(
    firmware.command("update").description("upgrade firmware: trays and switches through their rack, shelves directly"),
  )
    .option("--target-version <id>", "a record of rack firmware; left out: the default of the rack's hardware type")
    .option("--components <words...>", "only these, such as bmc bios; left out: all")
    .addHelpText(
      "after",
      "\nExample:\n  millwright component firmware update --compute-trays machine-001,machine-002 --target-version fw-v2.1",
    )
    .action((options: UpdateOptions) => run(async (session) => (await load()).updateFirmware(session, options)));
  addTargets(firmware.command("status").description("how far the last firmware upgrade of each device is"))
    .addHelpText("after", "\nExample:\n  millwright component firmware status --racks rack-42")
    .action((options: TargetOptions) => run(async (session) => (await load()).showStatus(session, options)));
  addTargets(firmware.command("versions").description("which firmware is available for each device"))
    .addHelpText("after", "\nExample:\n  millwright component firmware versions --switches sw-1,sw-2")
    .action((options: TargetOptions) => run(async (session) => (await load()).listVersions(session, options)));
  addDevices(component.command("power").description("switch devices on, off, or off and on"))
    .addOption(new Option("--action <action>", "what to do").choices(POWER_ACTIONS).makeOptionMandatory())
    .option(...YES_OPTION)
    .addHelpText("after", "\nExample:\n  millwright component power --action on --compute-trays machine-001")
    .action((options: TargetOptions & ConfirmOptions & { readonly action: string }) =>
      run(async (session) => (await load()).controlPower(session, options)),
    );
}
