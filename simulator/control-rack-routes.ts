import { type ControlCall, type ControlOptions, ok, type Reply, type Route, refused } from "./control-route.ts";
import type { Switch } from "./devices/switch.ts";
import { firmwareRecords, imageNamed } from "./site/firmware.ts";
import { profileNameOf, profileOf } from "./site/racks.ts";

/** What a site writes down of its racks and their switches, and the firmware that there is for them. */
export const RACK_ROUTES: readonly Route[] = [
  [
    "GET",
    /^\/inventory\/switches$/,
    ({ options }) => ok([...options.switches.values()].map((each) => expectedSwitch(each, options))),
  ],
  ["GET", /^\/inventory\/racks$/, ({ options }) => ok(options.site.racks.map((rack) => expectedRack(rack)))],
  ["GET", /^\/inventory\/profiles$/, ({ options }) => ok(profiles(options))],
  [
    "GET",
    /^\/rack-manager$/,
    ({ options }) => {
      const manager = options.rackManager();
      return manager === undefined ? refused(404, "the site has no rack manager") : ok(manager);
    },
  ],
  ["GET", /^\/firmware\/catalogue$/, ({ options, host }) => ok(firmwareRecords(options.site, imagesAt(host)))],
  ["GET", /^\/firmware\/images\/([^/]+)$/, image],
];

const imagesAt = (host: string): string => `http://${host}/firmware/images`;

const expectedSwitch = ({ spec }: Switch, { endpoints }: ControlOptions) => ({
  bmc_mac_address: spec.mac,
  bmc_username: spec.username,
  bmc_password: spec.password,
  switch_serial_number: spec.serial,
  bmc_ip_address: `${spec.address}:${endpoints.redfishPort}`,
  rack_id: spec.rack,
  nvos_username: spec.nvos.username,
  nvos_password: spec.nvos.password,
  nvos_mac_addresses: [spec.nvos.mac],
  metadata: { name: spec.id },
});

const expectedRack = (rack: ControlOptions["site"]["racks"][number]) => ({
  rack_id: rack.id,
  rack_profile_id: profileNameOf(rack),
  metadata: { name: rack.id },
});

const profiles = ({ site }: ControlOptions) => [
  ...new Map(site.racks.map((rack) => [profileNameOf(rack), profileOf(rack)])).values(),
];

/** With the rest of what was fetched in part, for whoever asks for it. */
function image({ id, range }: ControlCall): Reply {
  const content = imageNamed(id);
  if (content === undefined) return refused(404, `there is no image ${id}; GET /firmware/catalogue lists them`);
  const from = /^bytes=(\d{1,12})-$/.exec(range ?? "")?.[1];
  if (from === undefined) return { status: 200, content };
  if (Number(from) >= content.length) return { status: 416, headers: { "Content-Range": `bytes */${content.length}` } };
  const headers = { "Content-Range": `bytes ${from}-${content.length - 1}/${content.length}` };
  return { status: 206, content: content.subarray(Number(from)), headers };
}
