import type { BmcTarget } from "../../../capabilities/bmc-target.ts";
import { DeviceFailure } from "../../../capabilities/device-failure.ts";
import type { FirmwareUpdate, UpdateStarted } from "../../../capabilities/rack/firmware.ts";
import { bmcFailure } from "../../transport/bmc-failure.ts";
import { nameOf } from "../../transport/bmc-gateway.ts";
import type { Fetched } from "../../transport/gated-exchange.ts";
import type { RedfishClient } from "../client.ts";
import { linkAt, membersOf, type Resource, valueAt } from "../resource.ts";
import { imageUpload, multipartUpload } from "./image-upload.ts";
import { describeInstalled } from "./installed.ts";
import { taskStartedBy, withoutAddresses } from "./tasks.ts";
import {
  createUpdateServices,
  fetchesOver,
  pushUriOf,
  simpleUpdateOf,
  type UpdateService,
  waysOf,
} from "./update-service.ts";

/** More than any device has; a BMC that lists more is not followed. */
const MOST_PARTS = 128;

/** Updates of firmware by Redfish's `UpdateService`. */
export function createFirmwareUpdate(client: RedfishClient): FirmwareUpdate {
  const open = createUpdateServices(client);
  return {
    async readInstalled(target, call, only) {
      const paths = only ?? (await partsOf(await open(target, call)));
      const found: { readonly path: string; readonly item: Resource }[] = [];
      // One after the other: nobody is in a hurry for these, and others wait for the same BMC.
      for (const path of paths) {
        const item = await client.find(target, path, call);
        if (item !== undefined) found.push({ path, item });
      }
      return found.map(({ path, item }) => describeInstalled(path, item));

      async function partsOf({ resource }: UpdateService): Promise<readonly string[]> {
        const link = linkAt(resource, "FirmwareInventory");
        const collection = link === undefined ? undefined : await client.find(target, link, call);
        return membersOf(collection)
          .slice(0, MOST_PARTS)
          .map(({ path }) => path);
      }
    },

    readWays: async (target, call) => waysOf(await open(target, call)),

    async startUpdate(target, { uri, targets }, call) {
      const service = await open(target, call);
      const path = simpleUpdateOf(service);
      const protocol = new URL(uri).protocol === "https:" ? "HTTPS" : "HTTP";
      if (path === undefined) throw cannot(target, "fetches no images by itself");
      if (!fetchesOver(service, protocol)) throw cannot(target, `fetches no images over ${protocol}`);
      const order = { ImageURI: uri, TransferProtocol: protocol, ...(targets.length > 0 && { Targets: targets }) };
      return started(() => client.post(target, path, order, call));
    },

    async upload(target, image, stream) {
      const service = await open(target, stream);
      const multipart = pushUriOf(service, "multipart");
      if (multipart !== undefined) {
        return started(() => client.upload(target, multipart, multipartUpload(image, stream)));
      }
      const push = pushUriOf(service, "push");
      if (push === undefined) throw cannot(target, "takes no images");
      const options = pushOptions(service, image.targets);
      if (Object.keys(options).length > 0) await client.patch(target, service.path, options, stream);
      return started(() => client.upload(target, push, imageUpload(image, stream)));
    },
  };
}

/** What a push has no words for is set before: for which parts the image is, and that it is written at once. */
function pushOptions({ resource }: UpdateService, targets: readonly string[]): Resource {
  return {
    ...(valueAt(resource, "HttpPushUriTargets") !== undefined && { HttpPushUriTargets: targets }),
    ...(valueAt(resource, "HttpPushUriOptions", "HttpPushUriApplyTime") !== undefined && {
      HttpPushUriOptions: { HttpPushUriApplyTime: { ApplyTime: "Immediate" } },
    }),
  };
}

/**
 * A BMC that repeats the image's address in its refusal must not show it to everybody. One that is at another update already (409)
 * is busy, and refuses nothing.
 */
async function started(send: () => Promise<Fetched>): Promise<UpdateStarted> {
  try {
    return { task: taskStartedBy(await send()) };
  } catch (error) {
    if (!(error instanceof DeviceFailure)) throw error;
    const { code, disposition, facts, status, retryAfterMs } = error;
    const isInUse = status === 409;
    throw new DeviceFailure(isInUse ? "busy" : code, facts.at ?? "bmc", withoutAddresses(error.message), {
      disposition: isInUse ? "retry" : disposition,
      facts,
      cause: error,
      ...(status !== undefined && { status }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    });
  }
}

const cannot = (target: BmcTarget, what: string): DeviceFailure =>
  bmcFailure("unsupported", target, `${nameOf(target)}: this BMC ${what}`);
