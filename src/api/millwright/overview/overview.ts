import { durationFromMs, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { AttentionReason, type OverviewService } from "../../../../contract/millwright/v1/overview_pb.js";
import { reachOf } from "../../../kernel/access/scope.ts";
import { countThings, type ThingGroup } from "../../../services/overview/count-things.ts";
import { describeList } from "../../../services/overview/describe-list.ts";
import type { OverviewDeps } from "../../../services/overview/listings.ts";
import { type AttentionGroup, getOverview, type KindCounts } from "../../../services/overview/overview.ts";
import { callerKey } from "../../transport/interceptors.ts";

const REASONS = {
  needs_person: AttentionReason.NEEDS_PERSON,
  trouble: AttentionReason.TROUBLE,
  above_sla: AttentionReason.ABOVE_SLA,
} as const;

const attentionOf = ({ reason, since, rack, ids, ...group }: AttentionGroup) => ({
  ...group,
  reason: REASONS[reason],
  since: timestampFromDate(since),
  rackId: rack ?? "",
  ids: [...ids],
});

const stateCountOf = ({ state, things }: KindCounts["states"][number]) => ({ state, things: BigInt(things) });

const kindOf = ({ kind, things, working, attention, aboveSla, states }: KindCounts) => ({
  kind,
  things: BigInt(things),
  working: BigInt(working),
  attention: BigInt(attention),
  aboveSla: BigInt(aboveSla),
  states: states.map(stateCountOf),
});

const secondsOf = (seconds: number) => durationFromMs(Math.round(seconds * 1_000));

const groupOf = ({ values, things, dwell }: ThingGroup) => ({
  values: [...values],
  things: BigInt(things),
  ...(dwell && {
    aboveSla: BigInt(dwell.aboveSla),
    inTrouble: BigInt(dwell.inTrouble),
    oldestSince: timestampFromDate(dwell.oldestSince),
    dwellP50: secondsOf(dwell.p50Seconds),
    dwellP95: secondsOf(dwell.p95Seconds),
  }),
});

export const overview = (deps: OverviewDeps): ServiceImpl<typeof OverviewService> => ({
  async getOverview({ kinds }, { values }) {
    const reach = reachOf(values.get(callerKey).scope);
    const { at, attention, isCut, kinds: counts } = await getOverview(deps, { kinds, reach });
    return {
      at: timestampFromDate(at),
      attention: attention.map(attentionOf),
      cut: isCut,
      kinds: counts.map(kindOf),
    };
  },
  async countThings(request, { values }) {
    const reach = reachOf(values.get(callerKey).scope);
    const { groups, total, isCut, at } = await countThings(deps, { ...request, reach });
    return { groups: groups.map(groupOf), total: BigInt(total), cut: isCut, at: timestampFromDate(at) };
  },
  describeList({ kind }) {
    const fields = describeList(deps, kind);
    return {
      fields: fields.map(({ operators, values, ...field }) => ({
        ...field,
        operators: [...operators],
        values: [...values],
      })),
    };
  },
});
