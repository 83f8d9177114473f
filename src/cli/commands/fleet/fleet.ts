import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";
import { addListOptions, type ListOptions } from "../options/list-options.ts";
import { addAllocationCommands } from "./allocation-commands.ts";
import { addNodeCommands } from "./node-commands.ts";
import type { SetProfileOptions } from "./profiles.ts";
import { addRoceCommands } from "./roce-commands.ts";
import type { AddSiteOptions, UpdateSiteOptions } from "./sites.ts";

const KEY_OPTION = [
  "--api-key-file <file>",
  "file with the API key of MAAS, or - for standard input; at a terminal, - asks for it; kept encrypted",
] as const;
const HTTP_OPTION = ["--allow-http", "accept an http address: the API key then travels unencrypted"] as const;
const SKIP_OPTION = ["--skip-probe", "record it without calling MAAS"] as const;
const SITE = ["<site>", "a site on record"] as const;

/** GPU nodes that are onboarded through MAAS. */
export function addFleetCommands(program: Command, run: Run): void {
  const fleet = program
    .command("fleet")
    .description("GPU nodes over MAAS: their sites, and how they are brought up, worked on and removed");
  addNodeCommands(fleet, run);
  addSiteCommands(fleet, run);
  addProfileCommands(fleet, run);
  addRoceCommands(fleet, run);
  addAllocationCommands(fleet, run);
  fleet
    .command("preflight")
    .argument(...SITE)
    .description("check whether nodes can be onboarded at a site; exit code 1 unless they can")
    .addHelpText("after", "\nExample:\n  millwright fleet preflight lab")
    .action((site: string) => run(async (session) => (await import("./preflight.ts")).preflight(session, site)));
  fleet
    .command("candidates")
    .description("list what could be onboarded: machines of MAAS, and what it has seen on its networks")
    .requiredOption("--site <site>", "a site on record")
    .option("--all", "also list what cannot be onboarded as they are, and why")
    .addHelpText("after", "\nExample:\n  millwright fleet candidates --site lab")
    .action((options: { site: string; all?: boolean }) =>
      run(async (session) => (await import("./preflight.ts")).listCandidates(session, options)),
    );
}

function addSiteCommands(fleet: Command, run: Run): void {
  const load = () => import("./sites.ts");
  const site = fleet.command("site").description("MAAS regions that nodes are onboarded through");
  site
    .command("add")
    .argument("<site>", "what you call it")
    .description("record a site")
    .requiredOption("--url <url>", "of MAAS, such as https://maas.example.com:5443/MAAS")
    .requiredOption(...KEY_OPTION)
    .option("--description <text>", "for people")
    .option("--retain-in-maas", "leave machines in MAAS when their nodes are removed")
    .option(...HTTP_OPTION)
    .option(...SKIP_OPTION)
    .addHelpText(
      "after",
      "\nExample:\n  millwright fleet site add lab --url https://maas.example.com:5443/MAAS --api-key-file key",
    )
    .action((name: string, options: AddSiteOptions) =>
      run(async (session) => (await load()).addSite(session, name, options)),
    );
  site
    .command("update")
    .argument(...SITE)
    .description("change a site; another address takes the API key again")
    .option("--url <url>", "of MAAS")
    .option(...KEY_OPTION)
    .option("--description <text>", "for people")
    .option("--enable", "let nodes be onboarded there again")
    .option("--disable", "begin nothing new there")
    .option("--retain-in-maas", "leave machines in MAAS when their nodes are removed")
    .option("--no-retain-in-maas", "delete machines in MAAS when their nodes are removed")
    .option(...HTTP_OPTION)
    .option(...SKIP_OPTION)
    .addHelpText("after", "\nExample:\n  millwright fleet site update lab --api-key-file new-key")
    .action((name: string, options: UpdateSiteOptions) =>
      run(async (session) => (await load()).updateSite(session, name, options)),
    );
  addListOptions(site.command("list").description("list sites"), {
    filter: "enabled=true",
    order: "'created_at desc'",
  }).action((options: ListOptions) => run(async (session) => (await load()).listSites(session, options)));
  site
    .command("show")
    .argument(...SITE)
    .description("show a site")
    .action((name: string) => run(async (session) => (await load()).showSite(session, name)));
  site
    .command("remove")
    .argument("<site>", "a site that nothing belongs to")
    .description("forget a site and its API key")
    .option(...YES_OPTION)
    .action((name: string, options: ConfirmOptions) =>
      run(async (session) => (await load()).removeSite(session, name, options)),
    );
}

function addProfileCommands(fleet: Command, run: Run): void {
  const load = () => import("./profiles.ts");
  const profile = fleet.command("profile").description("how nodes of one kind are brought up at a site");
  profile
    .command("set")
    .argument("<profile>", "what you call it")
    .description("make a profile, or replace it whole")
    .requiredOption("--site <site>", "a site on record")
    .option("--policy <field=value...>", "fields that differ from their defaults; may be repeated")
    .option("-f, --file <file>", "YAML or JSON with the fields, or - for standard input")
    .addHelpText(
      "after",
      "\nExample:\n  millwright fleet profile set h100 --site lab --policy distro_series=jammy max_deploy_retry_attempts=1",
    )
    .action((name: string, options: SetProfileOptions) =>
      run(async (session) => (await load()).setProfile(session, name, options)),
    );
  profile
    .command("list")
    .description("list profiles")
    .option("--site <site>", "of this site alone")
    .action((options: { site?: string }) => run(async (session) => (await load()).listProfiles(session, options)));
  profile
    .command("remove")
    .argument("<profile>", "a profile on record")
    .description("forget a profile")
    .requiredOption("--site <site>", "its site")
    .option(...YES_OPTION)
    .action((name: string, options: ConfirmOptions & { site: string }) =>
      run(async (session) => (await load()).removeProfile(session, name, options)),
    );
}
