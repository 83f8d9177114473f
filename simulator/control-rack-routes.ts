import { type ControlCall, type ControlOptions, ok, partOf, type Reply, type Route, refused } from "./control-route.ts";
import { BASTION_ADDRESS, JUMP_USERNAME, SSH_USERNAME } from "./site/fields.ts";
import { firmwareRecords, imageNamed } from "./site/firmware.ts";
import { expectedRack, expectedSwitch, profilesOf, siteFileOf } from "./site/site-file.ts";

/** What a site writes down of its racks and their switches, and the firmware that there is for them. */
export const RACK_ROUTES: readonly Route[] = [
  [
    "GET",
    /^\/inventory\/switches$/,
    ({ options: { switches, endpoints } }) =>
      ok([...switches.values()].map(({ spec }) => expectedSwitch(spec, endpoints.redfishPort))),
  ],
  ["GET", /^\/inventory\/racks$/, ({ options }) => ok(options.site.racks.map(expectedRack))],
  ["GET", /^\/inventory\/profiles$/, ({ options }) => ok(profilesOf(options.site))],
  ["GET", /^\/inventory\/site$/, ({ options }) => ok(siteFile(options))],
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

/** The whole site in one file. */
const siteFile = ({ site, keys, endpoints: { redfishPort, sshPort } }: ControlOptions) =>
  siteFileOf(site, {
    redfishPort,
    sshPort,
    ssh: { username: SSH_USERNAME, privateKey: keys.operator.privateKey },
    jump: {
      endpoint: `${BASTION_ADDRESS}:${sshPort}`,
      username: JUMP_USERNAME,
      hostKey: keys.bastionHost.publicKey,
    },
  });

/** With the rest of what was fetched in part, for whoever asks for it. */
function image({ id, range }: ControlCall): Reply {
  const content = imageNamed(id);
  if (content === undefined) return refused(404, `there is no image ${id}; GET /firmware/catalogue lists them`);
  return partOf(content, range);
}
