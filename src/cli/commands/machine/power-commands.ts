import { type Command, Option } from "commander";
import type { Run } from "../../client/session.ts";
import type { PowerOptions, PowerWord } from "./power.ts";

const load = () => import("./power.ts");

const addRunOptions = (command: Command): Command =>
  command
    .option("--wait", "follow the runs to their ends; exit code 1 unless each SUCCEEDED")
    .option("--request-id <id>", "makes the command safe to repeat; a new one when left out");

/** Short runs, one a machine. */
export function addPowerCommands(machine: Command, run: Run): void {
  const power = machine.command("power").description("the power of machines, at their BMCs");
  const add = (word: PowerWord, description: string) => {
    const command = addRunOptions(
      power.command(word).argument("<id...>", "machines; each gets a short run").description(description),
    );
    if (word !== "on")
      command.option(
        "-y, --yes",
        "do not ask before machines that serve a cluster lose power; required without a terminal",
      );
    command
      .addHelpText("after", `\nExample:\n  millwright machine power ${word} m-rack1-03 m-rack1-04 --wait`)
      .action((ids: string[], options: PowerOptions) =>
        run(async (session) => (await load()).setPower(session, word, ids, options)),
      );
  };
  add("on", "switch machines on; proved by reading the power back");
  add("off", "switch machines off at once, without shutting down their systems; they are then off on purpose");
  add("cycle", "switch machines off and, once off was read, on again");
  power
    .command("status")
    .argument("<id...>", "machines")
    .description("read the power of machines from their BMCs now")
    .addHelpText("after", "\nExample:\n  millwright machine power status m-rack1-03 -o json")
    .action((ids: string[]) => run(async (session) => (await load()).showPower(session, ids)));
  addRunOptions(
    machine
      .command("boot-device")
      .argument("<id...>", "machines; each gets a short run")
      .description("set what machines boot from next, or clear that; proved by reading it back")
      .addOption(
        new Option("--device <device>", "none clears it: the machine boots in its own order")
          .choices(["pxe", "http", "disk", "cd", "none"])
          .makeOptionMandatory(),
      ),
  )
    .addHelpText("after", "\nExample:\n  millwright machine boot-device m-rack1-03 --device pxe --wait")
    .action((ids: string[], options: PowerOptions & { readonly device: string }) =>
      run(async (session) => (await load()).setBootDevice(session, ids, options)),
    );
}
