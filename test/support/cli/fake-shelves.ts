import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";
import { Forge, type PowerShelfMaintenanceRequest } from "../../../contract/forge/forge_pb.js";
import type { EventSchema } from "../../../contract/millwright/v1/event_pb.js";
import {
  DeletedShelves,
  type PowerShelf,
  PowerShelfSchema,
  PowerShelfService,
} from "../../../contract/millwright/v1/power_shelf_pb.js";
import {
  type WatchRequest,
  type WatchResponse,
  WatchResponseSchema,
  WatchService,
} from "../../../contract/millwright/v1/watch_pb.js";

/** For tests: a few shelves behind the services that commands talk to, and a stream that the test feeds. */
export interface FakeShelves {
  readonly shelves: Map<string, PowerShelf>;
  readonly maintenance: PowerShelfMaintenanceRequest[];
  readonly watches: WatchRequest[];
  put(shelf: MessageInitShape<typeof PowerShelfSchema>): void;
  /** What happens when a maintenance request arrives. */
  onMaintenance: (request: PowerShelfMaintenanceRequest) => void;
  emit(event: MessageInitShape<typeof EventSchema>): void;
  /** Breaks every open stream, as a server that goes away. */
  breakStreams(): void;
  routes(router: ConnectRouter): void;
}

export function createFakeShelves(): FakeShelves {
  const log: WatchResponse[] = [];
  let wake = () => {};
  let woken = new Promise<void>((resolve) => {
    wake = resolve;
  });
  let breaks = 0;
  const wakeAll = () => {
    const before = wake;
    woken = new Promise<void>((resolve) => {
      wake = resolve;
    });
    before();
  };
  const fake: FakeShelves = {
    shelves: new Map(),
    maintenance: [],
    watches: [],
    onMaintenance: () => {},
    put: (shelf) => {
      const whole = create(PowerShelfSchema, shelf);
      fake.shelves.set(whole.id, whole);
    },
    emit: (event) => {
      log.push(
        create(WatchResponseSchema, {
          message: { case: "event", value: { ...event, cursor: String(log.length + 1) } },
        }),
      );
      wakeAll();
    },
    breakStreams: () => {
      breaks++;
      wakeAll();
    },
    routes(router) {
      router.service(PowerShelfService, {
        getPowerShelf: ({ id }) => {
          const powerShelf = fake.shelves.get(id);
          if (!powerShelf) throw new ConnectError(`power shelf ${id} does not exist`, Code.NotFound);
          return { powerShelf };
        },
        listPowerShelves: ({ pageToken, rackId, state, powerState, bmcMac, deleted, stuckOnly, failingOnly }) => {
          const all = [...fake.shelves.values()].filter(
            (shelf) =>
              (rackId === "" || shelf.rackId === rackId) &&
              (state === "" || shelf.state === state) &&
              (powerState === "" || shelf.powerState === powerState) &&
              (!stuckOnly || shelf.stuck) &&
              (!failingOnly || shelf.failing) &&
              (bmcMac === "" || shelf.bmc?.mac === bmcMac) &&
              (deleted === DeletedShelves.INCLUDE ||
                (shelf.deletedAt !== undefined) === (deleted === DeletedShelves.ONLY)),
          );
          // One a page, so that whoever does not turn pages sees too few.
          const at = pageToken === "" ? 0 : Number(pageToken);
          return { powerShelves: all.slice(at, at + 1), nextPageToken: at + 1 < all.length ? String(at + 1) : "" };
        },
      });
      router.service(Forge, {
        setPowerShelfMaintenance: (request) => {
          fake.maintenance.push(request);
          fake.onMaintenance(request);
          return {};
        },
        findPowerShelvesByIds: ({ powerShelfIds }) => ({
          powerShelves: powerShelfIds.filter(({ id }) => fake.shelves.has(id)).map((id) => ({ id })),
        }),
        findPowerShelves: ({ name }) => ({
          powerShelves: [...fake.shelves.values()]
            .filter((shelf) => shelf.name === name)
            .map(({ id }) => ({ id: { id } })),
        }),
      });
      router.service(WatchService, {
        async *watch(request, { signal }) {
          fake.watches.push(request);
          const brokenBefore = breaks;
          const stopped = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
          let at = request.fromNow ? log.length : Number(request.fromCursor || "0");
          yield { message: { case: "bookmark", value: { cursor: String(at) } } };
          while (!signal.aborted) {
            if (breaks > brokenBefore) throw new ConnectError("server is going away", Code.Unavailable);
            const next = log[at];
            if (next) {
              at++;
              yield next;
            } else await Promise.race([woken, stopped]);
          }
        },
      });
    },
  };
  return fake;
}
