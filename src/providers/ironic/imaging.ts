import { DeviceFailure } from "../../capabilities/device-failure.ts";
import type { Imaging, InstallOrder } from "../../capabilities/imaging.ts";
import { textAt, valueAt } from "../transport/device-json.ts";
import { mediumUrl } from "../transport/medium-url.ts";
import { bootFromDisk } from "./boot.ts";
import type { JsonPatch } from "./client.ts";
import type { IronicNode, Nodes } from "./node.ts";
import { bringToDeployable, DEPLOY_FAILED, deployTarget } from "./provision.ts";
import { ejectMedium } from "./virtual-media.ts";

/** What we leave in `instance_info`: whose installation it is, and which provision state it was prepared in. */
const MARK = "millwright";
const RAMDISK = "ramdisk";
const MEDIUM = ["boot_iso", "ramdisk_image_download_source"] as const;

/**
 * Installing by Ironic's own deployment. An ISO is booted once by its ramdisk deploy, and installs by itself; a disk image is
 * written by whatever deploy interface the node has, and learns who it is from its config drive.
 */
export function createIronicImaging(nodes: Nodes): Imaging {
  const { client } = nodes;
  return {
    async prepare(target, order, call) {
      const node = await bringToDeployable(nodes, target, call);
      if (isOf(node, order)) return;
      await client.patch(target, [...changesFor(node, order), markOf(node, order)], call);
    },

    async start(target, order, call) {
      const node = await nodes.readForCommand(target, call);
      if (!isOf(node, order)) {
        throw new DeviceFailure(
          "refused_by_device",
          "bmc",
          `${node.label} has been prepared for another installation meanwhile`,
          { disposition: "retry" },
        );
      }
      // Begun already: by whoever died before noting it.
      if (!isArmed(node)) return;
      await client.put(
        target,
        "/states/provision",
        { target: deployTarget(node), ...(order.kind === "disk" && { configdrive: configDrive(order) }) },
        call,
      );
    },

    async readProgress(target, order, call) {
      const node = await nodes.read(target, call);
      if (!isOf(node, order)) return { inserted: false, armed: false };
      const armed = isArmed(node);
      if (!armed && DEPLOY_FAILED.has(node.provision)) {
        throw new DeviceFailure(
          "refused_by_device",
          "bmc",
          `Ironic could not install ${node.label} (${node.provision}): ${node.lastError ?? "it does not say why"}`,
          { disposition: "retry" },
        );
      }
      return { inserted: true, armed };
    },

    async cleanUp(target, order, call) {
      const node = await nodes.read(target, call);
      if (!isOf(node, order)) return undefined;
      if (order.kind !== "disk") {
        await bootFromDisk(nodes, target, call);
        await ejectMedium(nodes, target, call);
      }
      await client.patch(target, leavingsIn(node), call);
      return undefined;
    },
  };
}

const isOf = (node: IronicNode, { token }: InstallOrder): boolean => textAt(node.instanceInfo, MARK, "order") === token;

/** Prepared, and nothing was begun since. */
const isArmed = (node: IronicNode): boolean => (textAt(node.instanceInfo, MARK, "since") ?? "") === node.provisionSince;

const markOf = (node: IronicNode, { token }: InstallOrder): JsonPatch =>
  add(MARK, { order: token, since: node.provisionSince });

const add = (name: string, value: unknown): JsonPatch => ({ op: "add", path: `/instance_info/${name}`, value });

function changesFor(node: IronicNode, order: InstallOrder): readonly JsonPatch[] {
  if (order.kind === "disk") {
    const [, algorithm, value] = /^(sha\d+):([0-9a-f]+)$/.exec(order.digest ?? "") ?? [];
    const checksum =
      algorithm === undefined ? [] : [add("image_os_hash_algo", algorithm), add("image_os_hash_value", value)];
    const leftOver = MEDIUM.filter((name) => valueAt(node.instanceInfo, name) !== undefined).map(remove);
    return [add("image_source", order.location), ...checksum, ...leftOver];
  }
  const asRamdisk: JsonPatch[] =
    node.deployInterface === RAMDISK ? [] : [{ op: "add", path: "/deploy_interface", value: RAMDISK }];
  return [
    ...asRamdisk,
    add("boot_iso", mediumUrl(order)),
    // The BMC fetches the very address: what is to be installed is told in it.
    add("ramdisk_image_download_source", "http"),
  ];
}

const remove = (name: string): JsonPatch => ({ op: "remove", path: `/instance_info/${name}` });

/** The medium, too: a conductor that takes an active node over puts it in again, and the machine would install itself anew. */
const leavingsIn = ({ instanceInfo }: IronicNode): readonly JsonPatch[] =>
  [...MEDIUM, MARK].filter((name) => valueAt(instanceInfo, name) !== undefined).map(remove);

/** As cloud-init reads it; JSON is YAML. */
function configDrive({ stamp, cloudInitRef }: InstallOrder): unknown {
  const files = stamp === undefined ? [] : [{ path: stamp.path, permissions: "0644", content: stamp.text }];
  return {
    meta_data: cloudInitRef === "" ? {} : { cloud_init_ref: cloudInitRef },
    user_data: `#cloud-config\n${JSON.stringify({ write_files: files })}\n`,
  };
}
