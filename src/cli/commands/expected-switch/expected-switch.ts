import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";

/** Rows are added and changed by `site apply`; here they are read and removed. */
export function addExpectedSwitchCommands(program: Command, run: Run): void {
  const load = () => import("./manage.ts");
  const row = program
    .command("expected-switch")
    .alias("esw")
    .description("switches that the site says it has; `site apply` adds and changes them");
  row
    .command("list")
    .description("list expected switches, and the switch that each became")
    .addHelpText("after", "\nExample:\n  millwright expected-switch list")
    .action(() => run(async (session) => (await load()).listExpectedSwitches(session)));
  row
    .command("show")
    .argument("<mac>", "MAC address of its BMC")
    .description("show an expected switch")
    .addHelpText("after", "\nExample:\n  millwright expected-switch show 02:00:5e:10:00:01")
    .action((mac: string) => run(async (session) => (await load()).showExpectedSwitch(session, mac)));
  row
    .command("set-nvos-address")
    .argument("<mac>", "MAC address of its BMC")
    .argument("[address]", "host or host:port; left out: the one that its BMC reports")
    .description("set where the operating system of a switch (NVOS) is reached, where its BMC does not report it")
    .addHelpText(
      "after",
      "\nThe password of NVOS is sent there only after it was given again (`site apply`, or the expected switch with nvos_password). A certificate that is pinned stays pinned until an administrator replaces it (`switch accept-certificate --nvos`).\n\nExample:\n  millwright expected-switch set-nvos-address 02:00:5e:10:00:01 10.0.0.7",
    )
    .action((mac: string, address: string | undefined) =>
      run(async (session) => (await load()).setNvosAddress(session, mac, address ?? "")),
    );
  row
    .command("delete")
    .argument("<mac>", "MAC address of its BMC")
    .description("take a switch off the expected inventory; a switch made from it stays")
    .option(...YES_OPTION)
    .addHelpText("after", "\nExample:\n  millwright expected-switch delete 02:00:5e:10:00:01")
    .action((mac: string, options: ConfirmOptions) =>
      run(async (session) => (await load()).deleteExpectedSwitch(session, mac, options)),
    );
}
