import type { Command } from "commander";

/** The ways to hand in a BMC password; see secret-input.ts for why there is none that takes it as it is. */
export const addPasswordOptions = (command: Command): Command =>
  command
    .option("--bmc-password-file <file>", "file with the BMC password in it")
    .option("--bmc-password-stdin", "read the BMC password from standard input")
    .addHelpText(
      "after",
      "\nThe BMC password is read from the file, from standard input, from MILLWRIGHT_BMC_PASSWORD, or asked for on the terminal.",
    );
