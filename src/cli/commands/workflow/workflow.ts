import type { Command } from "commander";
import type { Run } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";

const load = () => import("./manage.ts");
const FILE = "YAML or JSON as `workflow show -o yaml` prints it, or - for standard input";

/** `workflow …`: what nodes are installed with. */
export function addWorkflowCommands(program: Command, run: Run): void {
  const workflow = program.command("workflow").description("workflows: what nodes install over the network");
  workflow
    .command("list")
    .description("list workflows")
    .option("--os-family <family>", "only those of linux, windows or bsd")
    .option("--arch <arch>", "only those for x86_64, arm64 or aarch64")
    .action((options: { osFamily?: string; arch?: string }) =>
      run(async (session) => (await load()).listWorkflows(session, options)),
    );
  workflow
    .command("show")
    .argument("<id>", "a workflow")
    .description("show a workflow with its steps")
    .action((id: string) => run(async (session) => (await load()).showWorkflow(session, id)));
  workflow
    .command("create")
    .description("make a workflow")
    .requiredOption("-f, --file <file>", FILE)
    .addHelpText(
      "after",
      `\nExample of a file:
  id: ubuntu-2404
  name: Ubuntu 24.04
  boot:
    method: kernel
    kernel_url: /files/ubuntu-2404/vmlinuz
    initrd_url: /files/ubuntu-2404/initrd
    cmdline: autoinstall ds=nocloud
  next_state: installed

Steps are carried out by the environment of \`millwright netboot environment\`:
  name: Golden image
  boot: { method: image, kernel_url: /files/environment/vmlinuz, initrd_url: /files/environment/initrd,
          image_url: /files/golden.img, image_digest: sha256:… }
  steps:
    - { sequence: 1, name: find disks, type: disk_scan }
    - { sequence: 2, name: write image, type: boot, timeout: 3600, on_failure: retry, max_retries: 2 }
    - { sequence: 3, name: note, type: script, config: { url: /files/note.sh }, on_failure: skip }`,
    )
    .action((options: { file: string }) => run(async (session) => (await load()).createWorkflow(session, options)));
  workflow
    .command("replace")
    .argument("<id>", "a workflow")
    .description("replace a workflow; what boots from now on gets the new one")
    .requiredOption("-f, --file <file>", FILE)
    .action((id: string, options: { file: string }) =>
      run(async (session) => (await load()).replaceWorkflow(session, id, options)),
    );
  workflow
    .command("delete")
    .argument("<id>", "a workflow")
    .description("stop offering a workflow; nodes that have it install nothing until they are given another")
    .option(...YES_OPTION)
    .action((id: string, options: ConfirmOptions) =>
      run(async (session) => (await load()).deleteWorkflow(session, id, options)),
    );
}
