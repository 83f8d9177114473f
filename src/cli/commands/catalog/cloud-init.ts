import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";
import { addListOptions, type ListOptions } from "../options/list-options.ts";
import type { CreateCloudInitOptions } from "./cloud-init-manage.ts";

const EXAMPLE = `
Example:
  millwright cloud-init create cloud-init/storage-node --file storage.yaml
  millwright plan create -f -   # with  repave: { image: ubuntu, cloud_init_ref: cloud-init/storage-node }
`;

export function addCloudInitCommands(program: Command, run: Run): void {
  const load = () => import("./cloud-init-manage.ts");
  const cloudInit = program
    .command("cloud-init")
    .description("documents that plans name as cloud_init_ref, for installed systems");
  addListOptions(cloudInit.command("list").description("list documents"), {
    filter: "name^=cloud-init/",
    order: "'created_at desc'",
  }).action((options: ListOptions) => run(async (session) => (await load()).listCloudInit(session, options)));
  cloudInit
    .command("show")
    .argument("<name>", "what cloud_init_ref says")
    .description("show a document with its content")
    .action((name: string) => run(async (session) => (await load()).showCloudInit(session, name)));
  cloudInit
    .command("create")
    .argument("<name>", "what plans call it")
    .description("record a document; it does not change afterwards")
    .requiredOption(
      "--file <file>",
      "file with cloud-config, Ignition's JSON or a kickstart file; - for standard input",
    )
    .addHelpText("after", EXAMPLE)
    .action((name: string, options: CreateCloudInitOptions) =>
      run(async (session) => (await load()).createCloudInit(session, name, options)),
    );
  cloudInit
    .command("delete")
    .argument("<name>", "a document; runs that were started keep their copies")
    .description("delete a document")
    .option(...YES_OPTION)
    .action((name: string, options: ConfirmOptions) =>
      run(async (session) => (await load()).deleteCloudInit(session, name, options)),
    );
}
