import { z } from "zod";
import { describeMachine } from "./control-descriptions.ts";
import {
  type ControlCall,
  type ControlOptions,
  noContent,
  noDevice,
  ok,
  partOf,
  type Reply,
  type Route,
  refused,
} from "./control-route.ts";
import type { Machine } from "./devices/machine.ts";
import { AILING, PART_IDS, SENSOR_IDS } from "./devices/machine-state.ts";
import { InvalidInput, parseInput } from "./invalid-input.ts";
import { CLUSTER_ROUTES } from "./kubernetes/control-routes.ts";
import { SYSTEM } from "./redfish/system-resources.ts";
import { BASTION_ADDRESS, JUMP_USERNAME, SSH_USERNAME } from "./site/fields.ts";
import { mediumNamed, mediumOf } from "./site/images.ts";
import { mediumContent } from "./site/medium.ts";

const netbootSchema = z.strictObject({
  image: z.string().min(1).max(128),
  cloud_init: z.string().max(500).nullable().optional(),
  token: z.string().max(500).nullable().optional(),
});
const sensorSchema = z.strictObject({
  /** Or a part that no sensor measures. */
  sensor: z.enum([...SENSOR_IDS, ...PART_IDS]),
  /** Null: well again. */
  health: z.enum(AILING).nullable(),
});
const joinSchema = z.strictObject({ cluster: z.string() });

/** What the person at the rack can do to machines, beyond what goes for every device. */
export const MACHINE_ROUTES: readonly Route[] = [
  [
    "GET",
    /^\/inventory\/machines$/,
    ({ options }) =>
      ok(
        machinesOf(options)
          .filter(isExpected)
          .map((each) => expected(each, options)),
      ),
  ],
  ["GET", /^\/images$/, ({ options, host }) => ok(describeImages(options, host))],
  ["GET", /^\/images\/([^/]+)$/, serveMedium],
  ["GET", /^\/clusters$/, ({ options }) => ok(options.clusters())],
  ...CLUSTER_ROUTES,
  ["GET", /^\/bastion$/, ({ options }) => ok({ ...bastion(options), host_key: options.keys.bastionHost.publicKey })],
  ["POST", /^\/devices\/([^/]+)\/crash$/, crash],
  ["POST", /^\/devices\/([^/]+)\/join$/, joinByHand],
  ["PUT", /^\/devices\/([^/]+)\/health$/, setHealth],
  ["PUT", /^\/devices\/([^/]+)\/netboot$/, arrangeNetboot],
  ["DELETE", /^\/devices\/([^/]+)\/netboot$/, forgetNetboot],
  ["GET", /^\/boot-server$/, ({ options }) => ok({ url: options.bootServer.url })],
  ["PUT", /^\/boot-server$/, setBootServer],
];

const machinesOf = ({ machines }: ControlOptions): readonly Machine[] => [...machines.values()];

/** Others stand in the racks without anybody having written them down. */
const isExpected = ({ spec }: Machine): boolean => !spec.isUnknown;

const bastion = ({ keys, endpoints }: ControlOptions) => ({
  endpoint: `${BASTION_ADDRESS}:${endpoints.sshPort}`,
  username: JUMP_USERNAME,
  private_key: keys.operator.privateKey,
});

/** Where several systems are behind the controller, the machine's own is named. */
const systemPath = (machine: Machine): string => (machine.has("several_systems") ? SYSTEM : "");

const expected = (machine: Machine, options: ControlOptions) => ({
  ...identityOf(machine),
  bmc_endpoint: `${machine.spec.address}:${options.endpoints.redfishPort}${systemPath(machine)}`,
  ...accessTo(machine, options),
});

const identityOf = ({ spec }: Machine) => ({
  machine_id: spec.id,
  serial: spec.serial,
  system_uuid: spec.systemUuid,
  mac_addresses: spec.macs,
  rack: spec.rack,
  slot: spec.slot,
});

const accessTo = ({ spec }: Machine, options: ControlOptions) => ({
  bmc_mac_address: spec.mac,
  bmc_username: spec.username,
  bmc_password: spec.password,
  ssh_endpoint: `${spec.sshAddress}:${options.endpoints.sshPort}`,
  ssh_username: SSH_USERNAME,
  ssh_password: spec.sshPassword,
  ssh_private_key: options.keys.operator.privateKey,
  ...(spec.behindBastion ? { jump: bastion(options) } : {}),
});

function describeImages({ site }: ControlOptions, host: string) {
  return site.images.map((image) => ({
    ref: image.ref,
    digest: image.digest,
    url: image.url,
    served_at: `http://${host}/images/${mediumOf(image)}`,
    kubelet_version: image.kubeletVersion,
    pxe_profiles: site.pxe.image.ref === image.ref ? [site.pxe.profile] : [],
  }));
}

/** For controllers that download what is inserted. */
function serveMedium({ options, id, range }: ControlCall): Reply {
  const image = mediumNamed(id, options.site.images);
  if (image === undefined) return refused(404, `there is no medium ${id}; GET /images lists them`);
  return partOf(mediumContent(image.ref), range);
}

function crash({ options, id }: ControlCall): Reply {
  const machine = options.machines.get(id);
  if (machine === undefined) return noDevice(id);
  if (!machine.crash()) return refused(409, `no operating system runs on ${id}`);
  return ok(describeMachine(machine, options.endpoints));
}

function setHealth({ options, id, body }: ControlCall): Reply {
  const machine = options.machines.get(id);
  if (machine === undefined) return noDevice(id);
  const { sensor, health } = parseInput(sensorSchema, body);
  machine.setAilment(sensor, health);
  return ok(describeMachine(machine, options.endpoints));
}

function joinByHand({ options, id, body }: ControlCall): Reply {
  const machine = options.machines.get(id);
  if (machine === undefined) return noDevice(id);
  const { cluster } = parseInput(joinSchema, body);
  if (!options.site.clusters.some(({ name }) => name === cluster))
    throw new InvalidInput("cluster", `there is no cluster ${cluster}; GET /clusters lists them`);
  if (!machine.joinAtOnce(cluster)) return refused(409, `no operating system runs on ${id}`);
  return ok(describeMachine(machine, options.endpoints));
}

function arrangeNetboot({ options, id, body }: ControlCall): Reply {
  const machine = options.machines.get(id);
  if (machine === undefined) return noDevice(id);
  const { image, cloud_init, token } = parseInput(netbootSchema, body);
  if (!options.site.images.some(({ ref }) => ref === image))
    throw new InvalidInput("image", `there is no image ${image}; GET /images lists them`);
  machine.setNetboot({ image, cloudInit: cloud_init ?? null, token: token ?? null });
  return noContent;
}

const bootServerSchema = z.strictObject({
  url: z
    .url({ protocol: /^https?$/ })
    .max(500)
    .nullable(),
});

function setBootServer({ options, body }: ControlCall): Reply {
  const { url } = parseInput(bootServerSchema, body);
  options.setBootServer(url === null ? null : url.replace(/\/+$/, ""));
  return ok({ url: options.bootServer.url });
}

function forgetNetboot({ options, id }: ControlCall): Reply {
  const machine = options.machines.get(id);
  if (machine === undefined) return noDevice(id);
  machine.setNetboot(null);
  return noContent;
}
