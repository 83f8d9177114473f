import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { HistoryService } from "../../../contract/millwright/v1/history_pb.js";
import { reachOf } from "../../kernel/access/scope.ts";
import type { ServiceDeps } from "../../services/call/deps.ts";
import { outOfReach } from "../../services/call/reach.ts";
import { countEventsIn, findEventCursor, pageEvents } from "../../services/system/events.ts";
import { pageHistory } from "../../services/system/history.ts";
import { makeReport } from "../../services/system/report.ts";
import { dateFrom } from "../convert/fields.ts";
import { callerKey } from "../transport/interceptors.ts";
import { eventOf } from "./event-messages.ts";

export const history = (deps: ServiceDeps): ServiceImpl<typeof HistoryService> => ({
  async listHistory({ kind, id, pageSize, pageToken, types, newestFirst }) {
    const page = await pageHistory(deps, { kind, id, pageSize, pageToken, types, newestFirst });
    return {
      events: page.items.map(eventOf),
      nextPageToken: page.nextPageToken,
      ...(page.removal && {
        removedEntries: BigInt(page.removal.entries),
        removedUntil: timestampFromDate(page.removal.until),
      }),
    };
  },
  async listEvents({ since, until, ...request }, { values }) {
    const caller = values.get(callerKey);
    const refused = await outOfReach(deps, caller, request.things);
    if (refused) throw refused;
    const page = await pageEvents(deps, {
      ...request,
      reach: reachOf(caller.scope),
      since: dateFrom(since, "since"),
      until: dateFrom(until, "until"),
    });
    return {
      events: page.items.map(eventOf),
      nextPageToken: page.nextPageToken,
      ...(page.searchedTo && { searchedTo: timestampFromDate(page.searchedTo) }),
    };
  },
  async getEventCursor({ at }) {
    return { cursor: await findEventCursor(deps, dateFrom(at, "at")) };
  },
  async countEvents({ since, until, buckets, kinds, types }, { values }) {
    const reach = reachOf(values.get(callerKey).scope);
    const range = { since: dateFrom(since, "since"), until: dateFrom(until, "until") };
    const counts = await countEventsIn(deps, { ...range, buckets, kinds, types, reach });
    return {
      buckets: counts.buckets.map(({ since: at, events }) => ({
        since: timestampFromDate(at),
        events: BigInt(events),
      })),
      estimated: counts.isEstimated,
    };
  },
  async getReport({ since }) {
    const report = await makeReport(deps, since ? timestampDate(since) : null);
    return {
      since: timestampFromDate(report.since),
      until: timestampFromDate(report.until),
      failures: report.failures.map(eventOf),
      interventions: report.interventions.map(eventOf),
      doings: report.doings.map(({ last, ...doing }) => ({ ...doing, lastAt: timestampFromDate(last) })),
      openMachineIds: [...report.openMachineIds],
      cut: report.isCut,
    };
  },
});
