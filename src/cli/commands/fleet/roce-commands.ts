import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";

const SITE_OPTION = ["--site <site>", "a site on record"] as const;

/** The addresses that the ports of nodes get while nodes are onboarded. */
export function addRoceCommands(fleet: Command, run: Run): void {
  const load = () => import("./roce.ts");
  const roce = fleet.command("roce").description("addresses that the ports of nodes get (RoCE), by site and host name");
  roce
    .command("set")
    .argument("<hostname>", "of a node; it need not be on record yet")
    .description("give a node links in place of those that it had")
    .requiredOption(...SITE_OPTION)
    .requiredOption("--link <port=address@subnet...>", "a port, its address and its network; may be repeated")
    .addHelpText(
      "after",
      "\nExample:\n  millwright fleet roce set gpu-17 --site lab --link ib0=10.10.0.17@10.10.0.0/24",
    )
    .action((hostname: string, options: { site: string; link: string[] }) =>
      run(async (session) => (await load()).setRoce(session, hostname, options)),
    );
  roce
    .command("import")
    .description("give the nodes of a CSV file their links: all of it or nothing")
    .requiredOption(...SITE_OPTION)
    .requiredOption("-f, --file <file>", "columns hostname, port, subnet, ip_address; - for standard input")
    .addHelpText("after", "\nExample:\n  millwright fleet roce import --site lab --file roce.csv")
    .action((options: { site: string; file: string }) =>
      run(async (session) => (await load()).importRoce(session, options)),
    );
  roce
    .command("list")
    .description("list RoCE assignments")
    .option("--site <site>", "of this site alone")
    .action((options: { site?: string }) => run(async (session) => (await load()).listRoce(session, options)));
  roce
    .command("remove")
    .argument("<hostname>", "of a node")
    .description("forget the RoCE assignment of a node")
    .requiredOption(...SITE_OPTION)
    .option(...YES_OPTION)
    .action((hostname: string, options: ConfirmOptions & { site: string }) =>
      run(async (session) => (await load()).removeRoce(session, hostname, options)),
    );
}
