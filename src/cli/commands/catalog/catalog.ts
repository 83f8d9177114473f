import { type Command, Option } from "commander";
import type { Run } from "../../client/session.ts";
import { type ConfirmOptions, YES_OPTION } from "../../terminal/confirm.ts";
import { addListOptions, type ListOptions } from "../options/list-options.ts";
import { addCloudInitCommands } from "./cloud-init.ts";
import type { CreateClusterOptions, CreateImageOptions, UpdateClusterOptions } from "./manage.ts";

const KUBECONFIG_OPTION = [
  "--kubeconfig <file>",
  "file with its kubeconfig, or - for standard input; kept encrypted",
] as const;
const SKIP_PROBE_OPTION = ["--skip-probe", "record the kubeconfig without trying it"] as const;

/** What plans and machines refer to by name: clusters, images and scripts. */
export function addCatalogCommands(program: Command, run: Run): void {
  const load = () => import("./manage.ts");
  const cluster = program.command("cluster").description("Kubernetes clusters that machines can join");
  addListOptions(cluster.command("list").description("list clusters"), {
    filter: "api_url~example.com",
    order: "'created_at desc'",
  }).action((options: ListOptions) => run(async (session) => (await load()).listClusters(session, options)));
  cluster
    .command("create")
    .argument("<name>", "what plans and machines call it")
    .description("record a cluster")
    .requiredOption(...KUBECONFIG_OPTION)
    .option("--api-url <url>", "the server that the kubeconfig names; another one is refused")
    .option(...SKIP_PROBE_OPTION)
    .action((name: string, options: CreateClusterOptions) =>
      run(async (session) => (await load()).createCluster(session, name, options)),
    );
  cluster
    .command("update")
    .argument("<name>", "a cluster on record")
    .description("replace the kubeconfig of a cluster, such as one that has expired")
    .requiredOption(...KUBECONFIG_OPTION)
    .option(...SKIP_PROBE_OPTION)
    .option("--other-cluster", "accept another server without the same certificate authority")
    .addHelpText("after", "\nExample:\n  millwright cluster update prod-1 --kubeconfig new.yaml")
    .action((name: string, options: UpdateClusterOptions) =>
      run(async (session) => (await load()).updateCluster(session, name, options)),
    );
  cluster
    .command("delete")
    .argument("<name>", "a cluster that nothing refers to")
    .description("delete a cluster and its kubeconfig")
    .option(...YES_OPTION)
    .action((name: string, options: ConfirmOptions) =>
      run(async (session) => (await load()).deleteCluster(session, name, options)),
    );

  const image = program.command("image").description("OS images that machines can be repaved with");
  addListOptions(image.command("list").description("list images"), {
    filter: "'kind=iso AND seed=nocloud'",
    order: "'kind, name'",
  }).action((options: ListOptions) => run(async (session) => (await load()).listImages(session, options)));
  image
    .command("create")
    .argument("<name>", "what plans call it")
    .description("record an image")
    .addOption(new Option("--kind <kind>", "what it is").choices(["iso", "disk", "netboot"]).default("iso"))
    .requiredOption(
      "--location <place>",
      "where a BMC or an installer fetches it from; for a netboot image the id of its workflow",
    )
    .requiredOption("--digest <digest>", "the digest of the image: sha256: and 64 hexadecimal digits")
    .addOption(
      new Option("--success-proof <proof>", "how the installed system proves itself")
        .choices(["token", "ssh"])
        .default("ssh"),
    )
    .addOption(
      new Option(
        "--seed <format>",
        "what its installer reads: from a second medium, or over the network for a netboot image",
      ).choices(["nocloud", "autoinstall", "kickstart", "ignition"]),
    )
    .addOption(
      new Option(
        "--seed-on <place>",
        "where the installer of an iso looks for its seed: on a second medium, in the root of its own, or on either",
      ).choices(["medium", "image", "either"]),
    )
    .action((name: string, options: CreateImageOptions) =>
      run(async (session) => (await load()).createImage(session, name, options)),
    );
  image
    .command("delete")
    .argument("<name>", "an image that no active run installs")
    .description("delete an image")
    .option(...YES_OPTION)
    .action((name: string, options: ConfirmOptions) =>
      run(async (session) => (await load()).deleteImage(session, name, options)),
    );

  addCloudInitCommands(program, run);
  addScriptCommands(program, run);
}

function addScriptCommands(program: Command, run: Run): void {
  const loadScripts = () => import("../script/read.ts");
  const script = program.command("script").description("scripts that steps run on machines; files of the server");
  script
    .command("list")
    .description("list scripts, and what they do")
    .action(() => run(async (session) => (await loadScripts()).listScripts(session)));
  script
    .command("show")
    .argument("<ref>", "what script_ref says")
    .description("show a script with its text")
    .action((ref: string) => run(async (session) => (await loadScripts()).showScript(session, ref)));
}
